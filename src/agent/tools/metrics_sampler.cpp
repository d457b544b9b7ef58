#include "agent/tools/metrics_sampler.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>

#include "base/file.h"
#include "base/strings.h"

namespace hive::agent {

namespace {

constexpr double mib = 1024.0 * 1024.0;
constexpr double gib = mib * 1024.0;

UniqueFd open_file(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// What the file holds now; files of /proc and of cgroups are written anew at every read from their start.
std::string read_now(const UniqueFd& fd, size_t max_bytes) {
  std::string text(max_bytes, '\0');
  size_t size = 0;
  while (fd && size < max_bytes) {
    ssize_t count = ::pread(fd.get(), text.data() + size, max_bytes - size, static_cast<off_t>(size));
    if (count <= 0) break;
    size += static_cast<size_t>(count);
  }
  text.resize(size);
  return text;
}

std::optional<double> to_number(std::string_view text) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  size_t at = 0;
  while ((at = text.find_first_not_of(" \t\n", at)) != std::string_view::npos) {
    size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
    found.push_back(text.substr(at, end - at));
    at = end;
  }
  return found;
}

// The number after "key" at the start of a line.
std::optional<double> value_of(std::string_view text, std::string_view key) {
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    auto rest = words(line.substr(key.size()));
    if (!rest.empty()) return to_number(rest[0]);
  }
  return std::nullopt;
}

std::optional<double> single_value(const UniqueFd& fd) {
  return to_number(trim(read_now(fd, 64)));
}

}  // namespace

std::string to_json(const Metrics& metrics) {
  auto source = [](bool container) { return container ? "container" : "host"; };
  return fmt::format(
      R"({{"cpu_usage_percent":{},"load_avg_1m":{},"load_avg_5m":{},"load_avg_15m":{},"mem_total_mb":{},)"
      R"("mem_free_mb":{},"mem_used_mb":{},"mem_used_percent":{},"disk_total_gb":{},"disk_used_gb":{},)"
      R"("disk_free_gb":{},"disk_used_percent":{},"source":{{"cpu":"{}","memory":"{}"}}}})",
      metrics.cpu_usage_percent, metrics.load_avg_1m, metrics.load_avg_5m, metrics.load_avg_15m, metrics.mem_total_mb,
      metrics.mem_free_mb, metrics.mem_used_mb, metrics.mem_used_percent, metrics.disk_total_gb, metrics.disk_used_gb,
      metrics.disk_free_gb, metrics.disk_used_percent, source(metrics.cpu_of_container),
      source(metrics.memory_of_container));
}

Result<std::unique_ptr<MetricsSampler>> MetricsSampler::create(const MetricsSources& sources, const Clock& clock) {
  std::unique_ptr<MetricsSampler> sampler(new MetricsSampler(sources, clock));
  sampler->stat_ = open_file(sources.proc + "/stat");
  sampler->meminfo_ = open_file(sources.proc + "/meminfo");
  sampler->loadavg_ = open_file(sources.proc + "/loadavg");
  if (!sampler->meminfo_) return std::unexpected(system_error(errno, "open " + sources.proc + "/meminfo"));
  if (!sampler->loadavg_) return std::unexpected(system_error(errno, "open " + sources.proc + "/loadavg"));
  sampler->find_container();
  sampler->last_time_ = clock.steady_now();
  sampler->last_counters_ = sampler->read_counters().value_or(Counters{});
  return sampler;
}

void MetricsSampler::find_container() {
  // Fields of mountinfo: id parent device root mount-point options [optional...] - type source super-options; proc(5).
  auto mounts = read_file(sources_.proc + "/self/mountinfo", size_t{1} << 20);
  if (!mounts) return;
  for (std::string_view line : split(*mounts, '\n')) {
    auto fields = words(line);
    auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 6 || std::distance(dash, fields.end()) < 4) continue;
    std::string_view type = dash[1];
    std::string_view options = dash[3];
    std::string folder(fields[4]);
    auto has_controller = [&](std::string_view name) {
      auto all = split(options, ',');
      return type == "cgroup" && std::ranges::find(all, name) != all.end();
    };
    if (type == "cgroup2") {
      if (UniqueFd limit = open_file(folder + "/memory.max")) {
        container_.memory_limit = std::move(limit);
        container_.memory_usage = open_file(folder + "/memory.current");
        container_.memory_stat = open_file(folder + "/memory.stat");
      }
      auto quota = read_file(folder + "/cpu.max", 256);
      auto parts = quota ? words(*quota) : std::vector<std::string_view>();
      if (parts.size() == 2 && to_number(parts[0]).value_or(0) > 0 && to_number(parts[1]).value_or(0) > 0) {
        container_.cpu_quota_cores = *to_number(parts[0]) / *to_number(parts[1]);
        container_.cpu_usage = open_file(folder + "/cpu.stat");
        container_.usage_in_stat = true;
      }
    }
    if (has_controller("memory") && !container_.memory_limit) {
      container_.memory_limit = open_file(folder + "/memory.limit_in_bytes");
      container_.memory_usage = open_file(folder + "/memory.usage_in_bytes");
      container_.memory_stat = open_file(folder + "/memory.stat");
    }
    if (has_controller("cpu") && container_.cpu_quota_cores <= 0) {
      double quota = single_value(open_file(folder + "/cpu.cfs_quota_us")).value_or(-1);
      double period = single_value(open_file(folder + "/cpu.cfs_period_us")).value_or(-1);
      if (quota > 0 && period > 0) container_.cpu_quota_cores = quota / period;
    }
    if (has_controller("cpuacct") && !container_.cpu_usage) container_.cpu_usage = open_file(folder + "/cpuacct.usage");
  }
  if (!container_.cpu_usage) container_.cpu_quota_cores = 0;
}

std::optional<MetricsSampler::Counters> MetricsSampler::read_counters() const {
  if (container_.cpu_quota_cores > 0) {
    // Seconds of processor time used; how much there was follows from the clock.
    std::optional<double> used;
    if (container_.usage_in_stat) {
      used = value_of(read_now(container_.cpu_usage, 4096), "usage_usec ");
      if (used) *used /= 1e6;
    } else {
      used = single_value(container_.cpu_usage);
      if (used) *used /= 1e9;
    }
    if (!used) return std::nullopt;
    double now = std::chrono::duration<double>(clock_.steady_now().time_since_epoch()).count();
    return Counters{.busy = *used, .total = now * container_.cpu_quota_cores};
  }
  // The first line alone: cpu user nice system idle iowait irq softirq steal guest guest_nice. The number of fields
  // depends on the kernel.
  std::string text = read_now(stat_, 512);
  std::string_view line = std::string_view(text).substr(0, text.find('\n'));
  auto fields = words(line);
  if (fields.size() < 5 || fields[0] != "cpu") return std::nullopt;
  Counters counters;
  double idle = 0;
  // Guest time is part of user time already.
  for (size_t i = 1; i < std::min<size_t>(fields.size(), 9); ++i) {
    auto value = to_number(fields[i]);
    if (!value) return std::nullopt;
    counters.total += *value;
    if (i == 4 || i == 5) idle += *value;
  }
  counters.busy = counters.total - idle;
  return counters;
}

void MetricsSampler::measure_cpu(Metrics& metrics) {
  metrics.cpu_of_container = container_.cpu_quota_cores > 0;
  if (auto counters = read_counters()) {
    double total = counters->total - last_counters_.total;
    double busy = counters->busy - last_counters_.busy;
    if (total > 0) last_cpu_percent_ = std::clamp(busy / total * 100.0, 0.0, 100.0);
    last_counters_ = *counters;
  }
  metrics.cpu_usage_percent = last_cpu_percent_;
}

Result<void> MetricsSampler::read_memory(Metrics& metrics) const {
  std::string text = read_now(meminfo_, size_t{8} << 10);
  double total = value_of(text, "MemTotal:").value_or(0) * 1024;
  if (total <= 0) return fail(ErrorCode::io, "{}/meminfo has no MemTotal", sources_.proc);
  double free = value_of(text, "MemFree:").value_or(0) * 1024;
  double available = value_of(text, "MemAvailable:").value_or(0) * 1024;
  double used = total - (available > 0 ? available : free);
  auto limit = single_value(container_.memory_limit);
  auto usage = single_value(container_.memory_usage);
  if (limit && usage && *limit > 0 && *limit < total) {
    // What the kernel can give back at once is not in use, as with MemAvailable.
    std::string stat = read_now(container_.memory_stat, size_t{8} << 10);
    double cache = value_of(stat, "total_inactive_file ").value_or(value_of(stat, "inactive_file ").value_or(0));
    metrics.memory_of_container = true;
    total = *limit;
    free = std::max(0.0, total - *usage);
    used = std::clamp(*usage - cache, 0.0, total);
  }
  metrics.mem_total_mb = total / mib;
  metrics.mem_free_mb = free / mib;
  metrics.mem_used_mb = used / mib;
  metrics.mem_used_percent = used / total * 100.0;
  return {};
}

Result<void> MetricsSampler::read_load(Metrics& metrics) const {
  std::string text = read_now(loadavg_, 128);
  auto fields = words(text);
  if (fields.size() < 3) return fail(ErrorCode::io, "{}/loadavg has fewer than three fields", sources_.proc);
  metrics.load_avg_1m = to_number(fields[0]).value_or(0);
  metrics.load_avg_5m = to_number(fields[1]).value_or(0);
  metrics.load_avg_15m = to_number(fields[2]).value_or(0);
  return {};
}

Result<void> MetricsSampler::read_disk(Metrics& metrics) const {
  struct statvfs status{};
  if (::statvfs(sources_.disk.c_str(), &status) < 0)
    return std::unexpected(system_error(errno, "statvfs " + sources_.disk));
  auto unit = static_cast<double>(status.f_frsize);
  double total = static_cast<double>(status.f_blocks) * unit;
  double used = total - static_cast<double>(status.f_bfree) * unit;
  metrics.disk_total_gb = total / gib;
  metrics.disk_used_gb = used / gib;
  metrics.disk_free_gb = static_cast<double>(status.f_bavail) * unit / gib;
  metrics.disk_used_percent = total > 0 ? used / total * 100.0 : 0;
  return {};
}

Result<Metrics> MetricsSampler::sample() {
  SteadyTime now = clock_.steady_now();
  if (last_ && now - last_time_ < sample_life) return *last_;
  Metrics metrics;
  TRY(read_memory(metrics));
  TRY(read_load(metrics));
  TRY(read_disk(metrics));
  measure_cpu(metrics);
  last_ = metrics;
  last_time_ = now;
  return metrics;
}

}  // namespace hive::agent
