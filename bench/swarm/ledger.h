#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace hive::swarm {

/// Keeps count of who is online and how long it took, and tells it as JSON, one object a line. Thread-safe.
///
/// An agent is online once the gateway has asked it something and got the answer: then the gateway knows it. A wave is
/// the time from the start, or from the first loss after everybody was online, until everybody is online again.
class Ledger {
 public:
  Ledger(std::size_t agents, const Clock& clock, std::function<void(const std::string& line)> print);

  void dialling(std::size_t agent);
  void dial_failed(std::size_t agent, std::string_view reason);
  void answered(std::size_t agent);
  void lost(std::size_t agent, std::string_view reason);

  /// Prints the state now as the event `name`.
  void report(std::string_view name);
  /// Prints the counts if they have changed since they were last printed.
  void report_changes();

  [[nodiscard]] std::uint64_t connections() const;

 private:
  struct Agent {
    bool online = false;
    SteadyTime away_since;
  };

  // All with mutex_ held.
  void begin_wave();
  void count_reason(std::string_view reason);
  [[nodiscard]] double seconds_since(SteadyTime time) const;
  [[nodiscard]] std::string wave_as_json() const;

  const Clock& clock_;
  const std::function<void(const std::string& line)> print_;
  const SteadyTime start_;
  mutable std::mutex mutex_;
  std::vector<Agent> agents_;
  std::size_t online_ = 0;
  std::uint64_t connections_ = 0;  // since the start
  SteadyTime wave_start_;
  std::uint64_t dials_ = 0;  // this and what follows: of the wave
  std::uint64_t failed_ = 0;
  std::vector<std::uint32_t> dials_each_second_;
  std::vector<std::uint32_t> return_ms_;
  std::map<std::string, std::uint64_t, std::less<>> reasons_;  // of failed dials and losses
  std::string last_counts_;
};

}  // namespace hive::swarm
