#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace hive::priv {

/// The uid and process at the other end of a connection.
struct PeerIds {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

/// What the host's journal gets for one request, whether it was done or refused.
struct JournalEntry {
  PeerIds peer;
  std::string op;                                                 ///< as the caller sent it, cut and escaped
  std::string container;                                          ///< likewise
  std::string result;                                             ///< "ok" or a refusal's code
  std::string message;                                            ///< of a refusal, with its detail
  std::vector<std::pair<std::string_view, std::string>> numbers;  ///< of a switch
  std::chrono::microseconds duration{0};
};

/// Where entries go. Thread-safe.
class Journal {
 public:
  virtual ~Journal() = default;
  virtual void write(const JournalEntry& entry) = 0;
};

/// One line with structured fields (HIVE_OP=, HIVE_CONTAINER=, ...) in the systemd journal, or a line on standard error
/// where there is none.
class HostJournal final : public Journal {
 public:
  HostJournal();
  void write(const JournalEntry& entry) override;

 private:
  bool to_journald_;
};

/// The line that people read: `op=start container=h-iris result=ok peer_uid=0 peer_pid=12 duration_us=210`.
std::string journal_line(const JournalEntry& entry);

}  // namespace hive::priv
