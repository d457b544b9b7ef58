#include "priv/journal.h"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <sys/uio.h>
#include <syslog.h>
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "base/strings.h"

namespace hive::priv {

namespace {

// systemd sets this for services whose standard error goes to the journal.
constexpr const char* journal_stream = "JOURNAL_STREAM";

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

}  // namespace

HostJournal::HostJournal() : to_journald_(std::getenv(journal_stream) != nullptr) {}

std::string journal_line(const JournalEntry& entry) {
  auto word = [](const std::string& text) { return text.empty() ? std::string("-") : escape_for_terminal(text); };
  std::string line =
      fmt::format("op={} container={} result={} peer_uid={} peer_pid={} duration_us={}", word(entry.op),
                  word(entry.container), entry.result, entry.peer.uid, entry.peer.pid, entry.duration.count());
  for (const auto& [name, value] : entry.numbers)
    line += fmt::format(" {}={}", name, word(value));
  if (!entry.message.empty()) line += fmt::format(" message={}", quote(entry.message));
  return line;
}

void HostJournal::write(const JournalEntry& entry) {
  std::string line = journal_line(entry);
  if (!to_journald_) {
    fmt::print(stderr, "hive-priv: {}\n", line);
    std::fflush(stderr);
    return;
  }
  int priority = entry.result == "ok" ? LOG_INFO : LOG_WARNING;
  std::vector<std::string> fields = {
      "MESSAGE=" + line,
      fmt::format("PRIORITY={}", priority),
      "HIVE_OP=" + escape_for_terminal(entry.op),
      "HIVE_CONTAINER=" + escape_for_terminal(entry.container),
      "HIVE_RESULT=" + entry.result,
      fmt::format("HIVE_PEER_UID={}", entry.peer.uid),
      fmt::format("HIVE_PEER_PID={}", entry.peer.pid),
      fmt::format("HIVE_DURATION_US={}", entry.duration.count()),
  };
  for (const auto& [name, value] : entry.numbers)
    fields.push_back(fmt::format("HIVE_{}={}", upper(name), value));
  std::vector<iovec> parts;
  for (std::string& field : fields)
    parts.push_back({.iov_base = field.data(), .iov_len = field.size()});
  // Nothing else can be told where the journal itself fails; systemd keeps standard error as a second way.
  if (sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) < 0) fmt::print(stderr, "{}\n", line);
}

}  // namespace hive::priv
