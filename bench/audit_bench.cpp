// The audit log against the simplest durable writer: one write and one fdatasync an entry, no hash, no signature.
// Usage: audit_bench [--quick] [--dir DIR]. The log lies in DIR (default: the current folder), because a folder in
// memory would make every sync free.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <future>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "gateway/audit/log.h"
#include "gateway/audit/verifier.h"
#include "process.h"

namespace {

using namespace hive;
using bench::give_up;
using bench::processor_seconds;
using SteadyClock = std::chrono::steady_clock;

template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error().message);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// What a call of run_command leaves in the log.
audit::Record typical_record(std::uint64_t number) {
  audit::Record record;
  record.kind = number % 2 == 0 ? audit::RecordKind::intent : audit::RecordKind::outcome;
  record.call_id = std::to_string(number / 2);
  record.request_id = "7f3a9c1e5b2d4860";
  record.principal = "ann@example.org";
  record.role = "operator";
  record.surface = "rest";
  record.action = "tool_call";
  record.agent = "edge-1";
  record.tool = "run_command";
  record.tier = "write";
  record.arguments = R"({"name":"systemctl","args":["restart","nginx"]})";
  if (number % 2 == 1) {
    record.outcome = protocol::Outcome::success;
    record.duration_us = 1234;
  }
  return record;
}

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(SteadyClock::now() - begin_).count(); }

 private:
  SteadyClock::time_point begin_ = SteadyClock::now();
};

// Of all threads; tells the cost also when other programs want the same cores.
double naive_entries_per_second(const std::string& path, double seconds) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) give_up(system_error(errno, path).message);
  const std::string line = std::string(330, 'x') + "\n";
  off_t offset = 0;
  std::uint64_t count = 0;
  Stopwatch watch;
  while (watch.seconds() < seconds) {
    if (::pwrite(fd.get(), line.data(), line.size(), offset) != static_cast<ssize_t>(line.size()) ||
        ::fdatasync(fd.get()) != 0) {
      give_up(system_error(errno, path).message);
    }
    offset += static_cast<off_t>(line.size());
    ++count;
  }
  return static_cast<double>(count) / watch.seconds();
}

double unwaited_entries_per_second(audit::Log& log, std::uint64_t count) {
  Stopwatch watch;
  for (std::uint64_t i = 0; i < count; ++i) {
    while (!log.append(typical_record(i)))
      must(log.flush());
  }
  must(log.flush());
  return static_cast<double>(count) / watch.seconds();
}

// `callers` entries are always under way, and each is followed by the next when it is durable.
class WaitingCallers {
 public:
  WaitingCallers(audit::Log& log, std::uint64_t count) : log_(log), count_(count) {}

  double entries_per_second(unsigned callers) {
    Stopwatch watch;
    for (unsigned i = 0; i < callers; ++i)
      next();
    finished_.get_future().wait();
    return static_cast<double>(count_) / watch.seconds();
  }

 private:
  void next() {
    std::uint64_t number = started_++;
    if (number >= count_) return;
    must(log_.append(typical_record(number), [this](Result<std::uint64_t> seq) {
      must(std::move(seq));
      if (++done_ == count_) {
        finished_.set_value();
      } else {
        next();
      }
    }));
  }

  audit::Log& log_;
  std::uint64_t count_;
  std::atomic<std::uint64_t> started_ = 0;
  std::atomic<std::uint64_t> done_ = 0;
  std::promise<void> finished_;
};

void report(std::string_view what, double rate, double naive) {
  std::printf("%-46.*s %9.0f entries/s  %7.1f times the naive writer\n", static_cast<int>(what.size()), what.data(),
              rate, rate / naive);
}

void run(const std::filesystem::path& folder, bool quick) {
  const std::string path = (folder / "audit.log").string();
  auto key = must(crypto::PrivateKey::generate("bench"));
  double naive = naive_entries_per_second((folder / "naive.log").string(), quick ? 0.5 : 2);
  report("durable, one write and one sync an entry", naive, naive);
  {
    auto log = must(audit::Log::open({.path = path, .origin = "bench.example/audit"}, key));
    report("durable and signed, one caller waiting", WaitingCallers(*log, quick ? 1000 : 5000).entries_per_second(1),
           naive);
    report("durable and signed, 64 callers waiting",
           WaitingCallers(*log, quick ? 30'000 : 300'000).entries_per_second(64), naive);
    report("durable and signed, nobody waiting", unwaited_entries_per_second(*log, quick ? 100'000 : 1'000'000), naive);
  }
  Stopwatch watch;
  double cpu_before = processor_seconds();
  auto verified = must(audit::verify_log(path, {.key = key.public_key()}));
  double seconds = watch.seconds();
  double cpu_seconds = processor_seconds() - cpu_before;
  if (!verified.good()) give_up(verified.failure->reason);
  auto entries = static_cast<double>(verified.entries);
  std::printf("%-46s %9.0f entries/s; %.2f microseconds of processor time each, %.0f bytes, %llu checkpoints\n",
              "verified on one core", entries / seconds, cpu_seconds * 1e6 / entries,
              static_cast<double>(verified.bytes) / entries, static_cast<unsigned long long>(verified.checkpoints));
}

}  // namespace

int main(int argc, char** argv) {
  bool quick = false;
  std::string parent = ".";
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "--quick") {
      quick = true;
    } else if (word == "--dir" && i + 1 < argc) {
      parent = argv[++i];
    } else {
      std::fprintf(stderr, "usage: %s [--quick] [--dir DIR]\n", argv[0]);
      return 2;
    }
  }
  std::string folder = parent + "/audit-bench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) give_up(system_error(errno, folder).message);
  run(folder, quick);
  std::filesystem::remove_all(folder);
  return 0;
}
