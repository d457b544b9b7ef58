#include "gateway/audit/refusal_log.h"

#include <fmt/format.h>

namespace hive::audit {

namespace {

const std::string other_principals = "other principals";

/// One entry for all that were counted; the last of them stands for the others.
Record summary(const std::string& principal, std::uint64_t count, Record last) {
  last.principal = principal;
  last.detail = fmt::format("{} more like this: {}", count, last.detail);
  return last;
}

}  // namespace

std::optional<Record> RefusalLog::admit(Record refusal) {
  std::lock_guard lock(mutex_);
  SteadyTime now = clock_.steady_now();
  bool has_room = refused_.contains(refusal.principal) || refused_.size() < options_.max_principals;
  auto [entry, is_new] = refused_.try_emplace(has_room ? refusal.principal : other_principals);
  quiet_.store(false, std::memory_order_relaxed);
  Refused& refused = entry->second;
  if (is_new) refused.period_began = now;
  if (refused.written < options_.written_in_a_period) {
    ++refused.written;
    return refusal;
  }
  ++refused.counted;
  refused.last = std::move(refusal);
  refused.last.arguments = {};
  return std::nullopt;
}

std::vector<Record> RefusalLog::take_due(bool all) {
  std::vector<Record> due;
  if (quiet_.load(std::memory_order_relaxed)) return due;
  std::lock_guard lock(mutex_);
  SteadyTime now = clock_.steady_now();
  // Every request comes by here: look through the principals now and then.
  if (!all && now - last_collection_ < std::chrono::seconds(1)) return due;
  last_collection_ = now;
  for (auto entry = refused_.begin(); entry != refused_.end();) {
    Refused& refused = entry->second;
    if (!all && now - refused.period_began < options_.period) {
      ++entry;
      continue;
    }
    if (refused.counted > 0) due.push_back(summary(entry->first, refused.counted, std::move(refused.last)));
    entry = refused_.erase(entry);
  }
  quiet_.store(refused_.empty(), std::memory_order_relaxed);
  return due;
}

}  // namespace hive::audit
