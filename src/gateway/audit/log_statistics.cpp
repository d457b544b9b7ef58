#include "gateway/audit/log_statistics.h"

#include <algorithm>

namespace hive::audit {

namespace {
constexpr size_t max_listed = 100;
constexpr size_t max_distinct = 64;
}  // namespace

void LogStatistics::count(std::map<std::string, std::uint64_t, std::less<>>& counts, const EntryView& entry,
                          Field field) {
  std::string_view raw = entry.raw(field);
  if (raw.empty()) return;
  // Without escapes, which our own names never have, the text needs no copy.
  std::string_view name = raw.substr(1, raw.size() - 2);
  auto found = counts.find(name);
  if (found != counts.end()) {
    ++found->second;
  } else if (counts.size() < max_distinct) {
    counts.emplace(name, 1);
  } else {
    ++counts["(other)"];
  }
}

void LogStatistics::add(const EntryView& entry) {
  count(by_kind_, entry, Field::kind);
  count(by_outcome_, entry, Field::outcome);
  if (first_time_.empty()) first_time_ = entry.text(Field::time);
  std::string_view time = entry.raw(Field::time);
  last_time_.assign(time.substr(1, time.size() - 2));
  if (entry.equals(Field::kind, "intent")) {
    open_calls_.emplace(entry.text(Field::call_id), entry.seq());
  } else if (entry.equals(Field::kind, "outcome")) {
    if (!open_calls_.empty()) open_calls_.erase(entry.text(Field::call_id));
  } else if (entry.equals(Field::action, "log_recovered") || entry.equals(Field::action, "log_write_resumed")) {
    if (recoveries_.size() < max_listed) {
      recoveries_.push_back(
          {entry.seq(), entry.text(Field::time), entry.text(Field::action), entry.text(Field::detail)});
    }
  }
}

void LogStatistics::fill(VerifyReport& report) const {
  report.by_kind = by_kind_;
  report.by_outcome = by_outcome_;
  report.first_time = first_time_;
  report.last_time = last_time_;
  report.recoveries = recoveries_;
  report.intents_without_outcome = open_calls_.size();
  std::vector<std::pair<std::uint64_t, std::string_view>> open;
  for (const auto& [call_id, seq] : open_calls_)
    open.emplace_back(seq, call_id);
  size_t listed = std::min(open.size(), max_listed);
  std::ranges::partial_sort(open, open.begin() + static_cast<std::ptrdiff_t>(listed));
  report.open_call_ids.clear();
  for (size_t i = 0; i < listed; ++i)
    report.open_call_ids.emplace_back(open[i].second);
}

}  // namespace hive::audit
