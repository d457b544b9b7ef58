#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "net/ssh/traffic.h"

struct ssh_session_struct;
struct ssh_event_struct;
struct ssh_key_struct;

/// The wrapper that keeps the traps of libssh 0.10 in one place. Internal to this room; the header stays free of
/// libssh.
namespace hive::net::ssh {

/// The only algorithms that either side offers.
inline constexpr const char* key_exchanges = "curve25519-sha256,curve25519-sha256@libssh.org";
inline constexpr const char* host_key_types = "ssh-ed25519";
inline constexpr const char* ciphers = "chacha20-poly1305@openssh.com,aes256-gcm@openssh.com,aes128-gcm@openssh.com";
inline constexpr const char* macs = "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com";
inline constexpr const char* compressions = "none";

struct KeyDeleter {
  void operator()(ssh_key_struct* key) const;
};
using KeyHandle = std::unique_ptr<ssh_key_struct, KeyDeleter>;

/// One libssh session and the private event loop that steps it. Used by one thread at a time; may move between threads.
class Session {
 public:
  Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  /// A session that never blocks, offers the algorithms above and refuses every request that comes as a message.
  static Result<Session> create();

  [[nodiscard]] ssh_session_struct* get() const { return session_.get(); }

  /// What one step did.
  enum class Step { idle, worked, dead };
  /// Handles what the descriptor brings and sends what is waiting, without blocking. Calls the callbacks. Never call it
  /// from a callback. Reads at most 4 KiB.
  [[nodiscard]] Step step();

  /// False once the connection is gone or the protocol has failed; the descriptor may be closed already.
  [[nodiscard]] bool is_alive() const;
  /// -1 once libssh has closed it.
  [[nodiscard]] int fd() const;
  /// Bytes wait for the socket to take them. ssh_get_poll_flags() would say so after every write.
  [[nodiscard]] bool has_pending_output() const;
  /// Asks the peer for an answer, without waiting for it; not twice at a time. Calls the callbacks.
  void ask_for_answer();
  /// Bytes that came from the peer, bytes that its machine has acknowledged, and whether some are under way.
  [[nodiscard]] Traffic traffic() const;
  [[nodiscard]] std::uint64_t received_bytes() const;
  [[nodiscard]] std::uint64_t received_packets() const;
  /// The last error of the session, escaped.
  [[nodiscard]] std::string error_text() const;

  /// Ends the connection and frees everything; channels are gone afterwards. A reason is told to the peer. Never call
  /// it from a callback.
  void reset(const std::string& reason = {});

 private:
  struct SessionDeleter {
    void operator()(ssh_session_struct* session) const;
  };
  struct EventDeleter {
    void operator()(ssh_event_struct* event) const;
  };
  struct Counters;
  // What libssh counts into: it must outlive the session.
  std::unique_ptr<Counters> counters_;
  // The event refers to the session: declared after it, so freed before it.
  std::unique_ptr<ssh_session_struct, SessionDeleter> session_;
  std::unique_ptr<ssh_event_struct, EventDeleter> event_;
  bool attached_ = false;
  bool failed_ = false;
};

}  // namespace hive::net::ssh
