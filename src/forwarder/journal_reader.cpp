#include "forwarder/journal_reader.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <systemd/sd-journal.h>

#include "base/strings.h"

namespace hive::forwarder {

namespace {

// journald itself cuts a line at 48 KiB; a native message may be larger and is cut here.
constexpr size_t max_message_bytes = size_t{64} << 10;
constexpr size_t max_field_bytes = 512;
constexpr std::chrono::milliseconds longest_wait = std::chrono::seconds(5);

std::unexpected<Error> journal_error(int result, std::string_view what) {
  return std::unexpected(system_error(-result, fmt::format("journal: {}", what)));
}

struct Free {
  void operator()(char* text) const { std::free(text); }  // NOLINT(cppcoreguidelines-no-malloc): sd_journal's
};

}  // namespace

void JournalReader::Close::operator()(sd_journal* journal) const {
  sd_journal_close(journal);
}

Result<JournalReader> JournalReader::open(const std::string& folder, const std::optional<Position>& position) {
  sd_journal* opened = nullptr;
  if (int result = sd_journal_open_directory(&opened, folder.c_str(), 0); result < 0) {
    return journal_error(result, folder);
  }
  JournalReader reader;
  reader.journal_.reset(opened);
  sd_journal_set_data_threshold(opened, max_message_bytes);
  reader.fd_ = sd_journal_get_fd(opened);
  if (reader.fd_ < 0) return journal_error(reader.fd_, folder);
  TRY(reader.seek(position));
  return reader;
}

Result<void> JournalReader::seek(const std::optional<Position>& position) {
  passed_ = position;
  if (position) {
    // A cursor that is not there leads to the entry nearest in time, which in another journal means nothing.
    int result = sd_journal_seek_cursor(journal_.get(), position->cursor.c_str());
    if (result >= 0) result = sd_journal_next(journal_.get());
    if (result > 0 && sd_journal_test_cursor(journal_.get(), position->cursor.c_str()) > 0) return {};
  }
  if (int result = sd_journal_seek_head(journal_.get()); result < 0) return journal_error(result, "seek");
  return {};
}

std::string JournalReader::field(const char* name) const {
  const void* data = nullptr;
  size_t length = 0;
  if (sd_journal_get_data(journal_.get(), name, &data, &length) < 0) return {};
  std::string_view text(static_cast<const char*>(data), length);
  text.remove_prefix(std::min(text.find('=') + 1, text.size()));
  return std::string(text.substr(0, std::string_view(name) == "MESSAGE" ? max_message_bytes : max_field_bytes));
}

Result<JournalEntry> JournalReader::current() const {
  JournalEntry entry;
  char* cursor = nullptr;
  if (int result = sd_journal_get_cursor(journal_.get(), &cursor); result < 0) return journal_error(result, "cursor");
  entry.cursor = std::unique_ptr<char, Free>(cursor).get();
  if (int result = sd_journal_get_realtime_usec(journal_.get(), &entry.realtime_us); result < 0) {
    return journal_error(result, "time");
  }
  sd_id128_t boot{};
  if (int result = sd_journal_get_monotonic_usec(journal_.get(), &entry.monotonic_us, &boot); result < 0) {
    return journal_error(result, "time");
  }
  char boot_text[SD_ID128_STRING_MAX];
  entry.boot_id = sd_id128_to_string(boot, boot_text);
  entry.priority = static_cast<int>(parse_int64(field("PRIORITY")).value_or(6));
  entry.message = field("MESSAGE");
  entry.unit = field("_SYSTEMD_UNIT");
  entry.identifier = field("SYSLOG_IDENTIFIER");
  entry.pid = field("_PID");
  return entry;
}

Result<std::optional<JournalEntry>> JournalReader::next() {
  while (true) {
    const int result = sd_journal_next(journal_.get());
    if (result < 0) return journal_error(result, "next entry");
    if (result == 0) return std::nullopt;
    JournalEntry entry = TRY(current());
    // Only where the cursor was not found: of entries in its very microsecond some may not have been sent, so those
    // come again, with their old ids.
    const bool known = passed_ && entry.boot_id == passed_->boot_id && entry.monotonic_us < passed_->monotonic_us;
    if (known) continue;
    return entry;
  }
}

std::chrono::milliseconds JournalReader::patience() const {
  std::uint64_t until_us = 0;
  if (sd_journal_get_timeout(journal_.get(), &until_us) < 0 || until_us == UINT64_MAX) return longest_wait;
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now().time_since_epoch());  // CLOCK_MONOTONIC, as sd_journal's
  auto left = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::microseconds(until_us) - now);
  return std::clamp(left, std::chrono::milliseconds(0), longest_wait);
}

Result<void> JournalReader::refresh() {
  if (int result = sd_journal_process(journal_.get()); result < 0) return journal_error(result, "changes");
  return {};
}

}  // namespace hive::forwarder
