#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace hive::agent {

/// Usage of the machine, or of the container the agent runs in. Names and units are the reference's.
struct Metrics {
  double cpu_usage_percent = 0;
  double load_avg_1m = 0;
  double load_avg_5m = 0;
  double load_avg_15m = 0;
  double mem_total_mb = 0;  ///< MiB
  double mem_free_mb = 0;
  double mem_used_mb = 0;
  double mem_used_percent = 0;
  double disk_total_gb = 0;  ///< GiB
  double disk_used_gb = 0;
  double disk_free_gb = 0;
  double disk_used_percent = 0;
  bool cpu_of_container = false;     ///< measured against a cgroup's quota instead of the machine's processors
  bool memory_of_container = false;  ///< a cgroup's limit is tighter than the machine's memory
};

std::string to_json(const Metrics& metrics);

/// Where the figures come from; tests put a folder of their own there.
struct MetricsSources {
  std::string proc = "/proc";
  std::string disk = "/";
};

/// Reads the figures from files that stay open, without ever waiting: the CPU share is that of the time since the last
/// sample. Calls that come within the life of a sample share it, so a flood of calls costs little. One thread.
class MetricsSampler {
 public:
  static constexpr std::chrono::milliseconds sample_life{100};

  /// Takes the first sample of the counters.
  static Result<std::unique_ptr<MetricsSampler>> create(const MetricsSources& sources = {},
                                                        const Clock& clock = system_clock());

  Result<Metrics> sample();

 private:
  struct Counters {
    double busy = 0;   // processor time used
    double total = 0;  // processor time there was
  };
  // The limits of the container, from the root of the cgroup file system as we see it. A limit of the agent's own
  // service, which stands deeper, says nothing about the machine and is not looked at.
  struct Container {
    UniqueFd memory_limit;
    UniqueFd memory_usage;
    UniqueFd memory_stat;
    UniqueFd cpu_usage;
    double cpu_quota_cores = 0;  // 0: none
    bool usage_in_stat = false;  // cgroup v2: usage_usec within cpu.stat
  };

  MetricsSampler(const MetricsSources& sources, const Clock& clock) : sources_(sources), clock_(clock) {}
  void find_container();
  [[nodiscard]] std::optional<Counters> read_counters() const;
  Result<void> read_memory(Metrics& metrics) const;
  Result<void> read_load(Metrics& metrics) const;
  Result<void> read_disk(Metrics& metrics) const;
  void measure_cpu(Metrics& metrics);

  MetricsSources sources_;
  const Clock& clock_;
  UniqueFd stat_;
  UniqueFd meminfo_;
  UniqueFd loadavg_;
  Container container_;
  Counters last_counters_;
  double last_cpu_percent_ = 0;
  std::optional<Metrics> last_;
  SteadyTime last_time_;
};

}  // namespace hive::agent
