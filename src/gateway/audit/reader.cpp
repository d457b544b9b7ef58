#include "gateway/audit/reader.h"

#include <algorithm>

#include "base/strings.h"
#include "gateway/audit/backward_lines.h"
#include "gateway/audit/checkpoint.h"
#include "gateway/audit/entry.h"
#include "gateway/audit/line_reader.h"
#include "gateway/audit/log_source.h"

namespace hive::audit {

namespace {

constexpr size_t max_page_entries = 1000;
constexpr size_t max_page_bytes = size_t{8} << 20;
constexpr std::uint64_t max_bytes_read = std::uint64_t{64} << 20;

bool matches_text(const EntryView& entry, Field field, const std::string& wanted) {
  return wanted.empty() || entry.equals(field, wanted);
}

Result<void> check_time(std::string_view name, std::string_view time) {
  if (time.empty() || is_time_prefix(time)) return {};
  return fail(ErrorCode::invalid_argument, "{} must be a time in UTC like 2026-11-30T12:57:23Z, not {}", name,
              quote(time));
}

// RFC 3339 in UTC sorts as text; a time stamp cut short stands for the whole second, minute or day.
bool matches_time(const EntryView& entry, const Query& query) {
  if (query.since.empty() && query.until.empty()) return true;
  auto bare = [](std::string_view time) { return time.substr(0, time.find_last_not_of('Z') + 1); };
  std::string time = entry.text(Field::time);
  std::string_view stamp = bare(time);
  std::string_view since = bare(query.since);
  std::string_view until = bare(query.until);
  return stamp >= since && (until.empty() || stamp.substr(0, until.size()) <= until);
}

bool matches(const EntryView& entry, const Query& query) {
  return matches_text(entry, Field::principal, query.principal) && matches_text(entry, Field::agent, query.agent) &&
         matches_text(entry, Field::action, query.action) && matches_text(entry, Field::tool, query.tool) &&
         matches_text(entry, Field::call_id, query.call_id) &&
         matches_text(entry, Field::request_id, query.request_id) && matches_text(entry, Field::reason, query.reason) &&
         (!query.outcome || entry.equals(Field::outcome, protocol::to_string(*query.outcome))) &&
         matches_time(entry, query);
}

// The first entry at or behind `offset`: its number, or nullopt if there is none before `end`.
Result<std::optional<std::uint64_t>> seq_behind(const LogSource& source, const std::string& path, std::uint64_t offset,
                                                std::uint64_t end) {
  // One byte back, so that a line which begins exactly at `offset` is not taken for the rest of the one before.
  LineReader reader(source.fd.get(), path, offset == 0 ? 0 : offset - 1);
  if (offset > 0) TRY(reader.next());
  while (true) {
    if (reader.offset() >= end) return std::nullopt;
    auto line = TRY(reader.next());
    if (!line) return std::nullopt;
    if (is_checkpoint_line(*line)) continue;
    EntryView entry = TRY_CONTEXT(path, EntryView::parse(*line));
    return entry.seq();
  }
}

// Just behind a line from which going backwards meets every entry before `before_seq`. Numbers rise, so halving finds
// it.
Result<std::uint64_t> end_for(const LogSource& source, const std::string& path, std::uint64_t before_seq,
                              std::uint64_t end) {
  std::uint64_t low = 0;
  std::uint64_t high = end;
  constexpr std::uint64_t close_enough = 262144;
  while (high - low > close_enough) {
    std::uint64_t middle = low + (high - low) / 2;
    auto seq = TRY(seq_behind(source, path, middle, high));
    if (seq && *seq < before_seq) {
      low = middle;
    } else {
      high = middle;
    }
  }
  // `high` may stand inside a line whose entry is still wanted.
  LineReader reader(source.fd.get(), path, high == 0 ? 0 : high - 1);
  if (high > 0 && high < end) TRY(reader.next());
  return high < end ? std::min(reader.offset(), end) : end;
}

}  // namespace

bool is_time_prefix(std::string_view text) {
  constexpr std::string_view form = "0000-00-00T00:00:00.000000000";
  if (text.ends_with('Z')) text.remove_suffix(1);
  if (text.size() < 4 || text.size() > form.size()) return false;
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_digit(form[i]) ? !is_digit(text[i]) : text[i] != form[i]) return false;
  }
  return true;
}

Result<Page> read_entries(const std::string& path, const Query& query) {
  TRY(check_time("since", query.since));
  TRY(check_time("until", query.until));
  LogSource source = TRY(LogSource::open(path));
  std::uint64_t end = TRY(last_line_end(source.fd.get(), path, source.size));
  // What no checkpoint covers yet may still be taken back by the writer.
  bool sealed = false;
  std::optional<BackwardLines> lines(std::in_place, source.fd.get(), path, end);
  while (!sealed) {
    auto line = TRY(lines->next());
    if (!line) return Page{};
    sealed = is_checkpoint_line(*line);
  }
  if (query.before_seq) {
    std::uint64_t from = TRY(end_for(source, path, *query.before_seq, lines->offset()));
    lines.emplace(source.fd.get(), path, from);
  }

  Page page;
  size_t limit = std::clamp<size_t>(query.limit, 1, max_page_entries);
  size_t page_bytes = 0;
  std::uint64_t start = lines->offset();
  std::optional<std::uint64_t> oldest_seen;
  while (auto line = TRY(lines->next())) {
    if (is_checkpoint_line(*line)) continue;
    EntryView entry = TRY_CONTEXT(path, EntryView::parse(*line));
    if (query.before_seq && entry.seq() >= *query.before_seq) continue;
    bool enough = page.entries.size() >= limit || page_bytes >= max_page_bytes ||
                  (start - lines->offset() > max_bytes_read && oldest_seen);
    if (enough) {
      page.before_seq = oldest_seen.value_or(query.before_seq.value_or(entry.seq() + 1));
      return page;
    }
    oldest_seen = entry.seq();
    if (!matches(entry, query)) continue;
    page_bytes += line->size();
    page.entries.emplace_back(*line);
  }
  return page;
}

Result<SealedCheckpoint> read_ssh_signed_checkpoint(const std::string& path) {
  LogSource source = TRY(LogSource::open(path));
  std::uint64_t end = TRY(last_line_end(source.fd.get(), path, source.size));
  BackwardLines lines(source.fd.get(), path, end);
  while (auto line = TRY(lines.next())) {
    if (!is_checkpoint_line(*line)) continue;
    SealedCheckpoint sealed = TRY_CONTEXT(path, parse_checkpoint_line(*line));
    if (!sealed.ssh_signature.empty()) return sealed;
  }
  return fail(ErrorCode::not_found, "{}: it has no checkpoint with an SSH signature", path);
}

}  // namespace hive::audit
