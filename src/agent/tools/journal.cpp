#include "agent/tools/journal.h"

#include <algorithm>
#include <array>

#include "agent/command_tool.h"
#include "base/strings.h"

namespace hive::agent {

namespace {

constexpr std::array<std::string_view, 8> priorities = {"emerg",   "alert",  "crit", "err",
                                                        "warning", "notice", "info", "debug"};
constexpr std::array<std::string_view, 15> time_units = {
    "s", "sec", "second", "seconds", "m", "min", "minute", "minutes", "h", "hr", "hour", "hours", "d", "day", "days"};

// Whether the text has the shape of the picture, in which 0 stands for any digit and everything else for itself.
bool has_shape(std::string_view text, std::string_view picture) {
  if (text.size() != picture.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    bool fits = picture[i] == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == picture[i];
    if (!fits) return false;
  }
  return true;
}

bool is_span_into_the_past(std::string_view text) {
  if (!text.starts_with('-')) return false;
  text.remove_prefix(1);
  size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 6) return false;
  return std::ranges::find(time_units, text.substr(digits)) != time_units.end();
}

}  // namespace

Result<std::string> journal_time(std::string_view text) {
  if (is_span_into_the_past(text) || has_shape(text, "0000-00-00") || has_shape(text, "0000-00-00 00:00:00")) {
    return std::string(text);
  }
  if (has_shape(text, "0000-00-00T00:00:00Z")) {
    return fmt::format("{} {} UTC", text.substr(0, 10), text.substr(11, 8));
  }
  return fail(ErrorCode::invalid_argument,
              "Invalid since: use 2026-11-30T12:00:00Z, 2026-11-30 12:00:00, 2026-11-30 or -15min");
}

Result<std::vector<std::string>> journal_arguments(const JournalQuery& query) {
  std::vector<std::string> arguments = {"--no-pager", "--quiet", "--output=short-iso",
                                        fmt::format("--lines={}", query.lines)};
  if (query.unit) {
    if (!is_plain_name(*query.unit, "@:._-")) {
      return fail(ErrorCode::invalid_argument,
                  "Invalid unit: use letters, digits and @ : . _ -, starting with a letter or digit");
    }
    arguments.push_back("--unit=" + *query.unit);
  }
  if (query.since) arguments.push_back("--since=" + TRY(journal_time(*query.since)));
  if (query.priority) {
    if (std::ranges::find(priorities, *query.priority) == priorities.end()) {
      return fail(ErrorCode::invalid_argument,
                  "Invalid priority: use emerg, alert, crit, err, warning, notice, info or debug");
    }
    arguments.push_back("--priority=" + *query.priority);
  }
  return arguments;
}

std::vector<std::string> journal_entries(std::string_view output) {
  std::vector<std::string> entries;
  if (output.ends_with('\n')) output.remove_suffix(1);
  if (output.empty()) return entries;
  for (std::string_view line : split(output, '\n')) {
    if (line.starts_with(' ') && !entries.empty()) {
      entries.back() += '\n';
      entries.back() += line;
    } else {
      entries.emplace_back(line);
    }
  }
  return entries;
}

}  // namespace hive::agent
