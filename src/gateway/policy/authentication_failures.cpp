#include "gateway/policy/authentication_failures.h"

namespace hive::policy {

namespace {
const std::string other_sources = "other sources";
}

std::optional<std::chrono::seconds> AuthenticationFailures::must_wait(const std::string& source) {
  if (quiet_.load(std::memory_order_relaxed)) return std::nullopt;
  std::lock_guard lock(mutex_);
  auto found = sources_.find(source);
  if (found == sources_.end() && sources_.size() >= options_.max_sources) found = sources_.find(other_sources);
  if (found == sources_.end() || found->second.failures < options_.free_failures) return std::nullopt;
  auto left = found->second.period_began + options_.period - clock_.steady_now();
  if (left <= SteadyTime::duration::zero()) return std::nullopt;
  return std::chrono::ceil<std::chrono::seconds>(left);
}

std::vector<AuthenticationFailures::Report> AuthenticationFailures::record(const std::string& source,
                                                                           std::string_view reason,
                                                                           std::string_view detail) {
  std::vector<Report> reports;
  std::lock_guard lock(mutex_);
  SteadyTime now = clock_.steady_now();
  collect_due(now, false, reports);
  // A flood from ever new sources must not push out what is known about the others.
  bool has_room = sources_.contains(source) || sources_.size() < options_.max_sources;
  const std::string& name = has_room ? source : other_sources;
  auto [entry, is_new] = sources_.try_emplace(name);
  quiet_.store(false, std::memory_order_relaxed);
  Source& counted = entry->second;
  if (is_new) counted.period_began = now;
  ++counted.failures;
  ++counted.unreported;
  counted.reason = reason;
  counted.detail = detail;
  if (is_new) report(name, counted, reports);
  return reports;
}

std::vector<AuthenticationFailures::Report> AuthenticationFailures::take_due(bool all) {
  std::vector<Report> reports;
  if (quiet_.load(std::memory_order_relaxed)) return reports;
  std::lock_guard lock(mutex_);
  SteadyTime now = clock_.steady_now();
  // The request path comes by here: look through the sources now and then, not for every request.
  if (!all && now - last_collection_ < std::chrono::seconds(1)) return reports;
  collect_due(now, all, reports);
  return reports;
}

void AuthenticationFailures::collect_due(SteadyTime now, bool all, std::vector<Report>& reports) {
  if (!all && now - last_collection_ < std::chrono::seconds(1)) return;
  last_collection_ = now;
  if (now - reports_period_began_ >= options_.period) {
    reports_period_began_ = now;
    reports_ = 0;
  }
  for (auto entry = sources_.begin(); entry != sources_.end();) {
    Source& source = entry->second;
    if (!all && now - source.period_began < options_.period) {
      ++entry;
      continue;
    }
    if (source.unreported == 0) {
      entry = sources_.erase(entry);
      continue;
    }
    // Remembered for another period, in which it gets no further entry. What found no place in the log this time stays
    // counted.
    report(entry->first, source, reports);
    source.period_began = now;
    source.failures = 0;
    ++entry;
  }
  quiet_.store(sources_.empty(), std::memory_order_relaxed);
}

void AuthenticationFailures::report(const std::string& name, Source& source, std::vector<Report>& reports) {
  if (reports_ >= options_.max_reports_a_period) return;
  ++reports_;
  reports.push_back({name, source.unreported, source.reason, source.detail});
  source.unreported = 0;
}

}  // namespace hive::policy
