#include "swarm/ledger.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/utf8.h"
#include "protocol/json.h"

namespace hive::swarm {

namespace {

/// Of a wave; whoever leaves a swarm running for longer looks at the end of it.
constexpr std::size_t max_seconds = 600;
constexpr std::size_t max_reasons = 20;
constexpr std::size_t max_reason_bytes = 200;

std::uint32_t percentile(const std::vector<std::uint32_t>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<std::size_t>(static_cast<double>(sorted.size() - 1) * share)];
}

}  // namespace

Ledger::Ledger(std::size_t agents, const Clock& clock, std::function<void(const std::string& line)> print)
    : clock_(clock), print_(std::move(print)), start_(clock.steady_now()), agents_(agents) {
  for (Agent& agent : agents_)
    agent.away_since = start_;
  wave_start_ = start_;
}

void Ledger::begin_wave() {
  wave_start_ = clock_.steady_now();
  dials_ = failed_ = 0;
  dials_each_second_.clear();
  return_ms_.clear();
  reasons_.clear();
}

void Ledger::dialling(std::size_t /*agent*/) {
  std::lock_guard lock(mutex_);
  ++dials_;
  const auto second = static_cast<std::size_t>(seconds_since(wave_start_));
  if (second >= max_seconds) return;
  if (dials_each_second_.size() <= second) dials_each_second_.resize(second + 1);
  ++dials_each_second_[second];
}

void Ledger::dial_failed(std::size_t /*agent*/, std::string_view reason) {
  std::lock_guard lock(mutex_);
  ++failed_;
  count_reason(reason);
}

void Ledger::answered(std::size_t agent) {
  std::lock_guard lock(mutex_);
  if (agents_[agent].online) return;
  agents_[agent].online = true;
  ++online_;
  ++connections_;
  const auto away = clock_.steady_now() - agents_[agent].away_since;
  // A wave that never ends, as with --churn, must not grow without end.
  if (return_ms_.size() < 10 * agents_.size()) {
    return_ms_.push_back(
        static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(away).count()));
  }
  if (online_ < agents_.size()) return;
  print_(fmt::format(R"({{"event":"all_online",{}}})", wave_as_json()));
  last_counts_.clear();
}

void Ledger::lost(std::size_t agent, std::string_view reason) {
  std::lock_guard lock(mutex_);
  if (!agents_[agent].online) return;
  if (online_ == agents_.size()) begin_wave();
  count_reason(reason);
  agents_[agent].online = false;
  agents_[agent].away_since = clock_.steady_now();
  --online_;
}

void Ledger::count_reason(std::string_view reason) {
  const std::string_view text = utf8::truncate(reason, max_reason_bytes);
  auto found = reasons_.find(text);
  if (found == reasons_.end()) {
    found = reasons_.size() < max_reasons ? reasons_.emplace(text, 0).first : reasons_.try_emplace("others", 0).first;
  }
  ++found->second;
}

double Ledger::seconds_since(SteadyTime time) const {
  return std::chrono::duration<double>(clock_.steady_now() - time).count();
}

std::string Ledger::wave_as_json() const {
  std::vector<std::uint32_t> sorted = return_ms_;
  std::ranges::sort(sorted);
  std::string reasons;
  for (const auto& [reason, count] : reasons_)
    reasons += fmt::format("{}{}:{}", reasons.empty() ? "" : ",", json::encode_string(reason), count);
  return fmt::format(
      R"("agents":{},"online":{},"connections":{},"seconds":{:.3f},"wave_seconds":{:.3f},"dials":{},"failed_dials":{},)"
      R"("return_ms":{{"p50":{},"p90":{},"p99":{},"max":{}}},"dials_each_second":[{}],"reasons":{{{}}})",
      agents_.size(), online_, connections_, seconds_since(start_), seconds_since(wave_start_), dials_, failed_,
      percentile(sorted, 0.5), percentile(sorted, 0.9), percentile(sorted, 0.99), percentile(sorted, 1),
      fmt::join(dials_each_second_, ","), reasons);
}

void Ledger::report(std::string_view name) {
  std::lock_guard lock(mutex_);
  print_(fmt::format(R"({{"event":"{}",{}}})", name, wave_as_json()));
}

void Ledger::report_changes() {
  std::lock_guard lock(mutex_);
  std::string counts = fmt::format(R"("online":{},"connections":{},"dials":{},"failed_dials":{})", online_,
                                   connections_, dials_, failed_);
  if (counts == last_counts_) return;
  print_(fmt::format(R"({{"event":"count","seconds":{:.3f},{}}})", seconds_since(start_), counts));
  last_counts_ = std::move(counts);
}

std::uint64_t Ledger::connections() const {
  std::lock_guard lock(mutex_);
  return connections_;
}

}  // namespace hive::swarm
