// What a salvage costs next to `cp -a --reflink=auto` of the same tree, measured in turn, each made durable; and what a
// request costs that finds nothing to do. Needs root.
// Usage: salvage_bench [--quick] [--dir DIR]        DIR: on the file system to measure (default: the temporary folder)

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "priv/operations.h"
#include "priv/salvage.h"
#include "priv/tree_copy.h"
#include "process.h"

namespace {

using namespace hive;
using bench::give_up;
using namespace hive::priv;
namespace fs = std::filesystem;

double seconds_of(const std::function<void()>& work) {
  auto begun = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void make_durable(const fs::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY));
  if (!fd || ::syncfs(fd.get()) != 0) give_up("syncfs " + folder.string());
}

// What an agent leaves: many small files, some large ones.
struct Tree {
  const char* name;
  int small_files;
  int large_files;
  size_t large_bytes;
};

std::uint64_t make_tree(const fs::path& folder, const Tree& tree) {
  fs::create_directories(folder);
  std::mt19937 random(1);
  std::string noise(tree.large_bytes, '\0');
  for (char& c : noise)
    c = static_cast<char>(random());
  std::uint64_t bytes = 0;
  for (int i = 0; i < tree.small_files; ++i) {
    fs::path below = folder / fmt::format("d{}", i / 100);
    if (i % 100 == 0) fs::create_directories(below);
    size_t size = 200 + random() % 8000;
    std::ofstream(below / fmt::format("f{}", i), std::ios::binary) << std::string_view(noise).substr(0, size);
    bytes += size;
  }
  for (int i = 0; i < tree.large_files; ++i) {
    std::ofstream(folder / fmt::format("large{}", i), std::ios::binary) << noise;
    bytes += noise.size();
  }
  make_durable(folder);
  return bytes;
}

void salvage(const fs::path& from, const fs::path& to) {
  fs::create_directories(to / "tree");
  fs::create_directories(to / "links");
  UniqueFd source(::open(from.c_str(), O_RDONLY | O_DIRECTORY));
  UniqueFd tree(::open((to / "tree").c_str(), O_RDONLY | O_DIRECTORY));
  UniqueFd links(::open((to / "links").c_str(), O_RDONLY | O_DIRECTORY));
  CopyOptions options{.admit = [](std::uint64_t) -> Result<bool> { return true; }};
  auto report = copy_tree(source.get(), tree.get(), links.get(), Exclusions(), {}, options);
  if (!report || report->out_of_space) give_up(report ? "the disk is full" : report.error().message);
  make_durable(to);
}

void cp(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  pid_t child = ::fork();
  if (child == 0) {
    ::execlp("cp", "cp", "-a", "--reflink=auto", from.c_str(), to.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) give_up("cp failed");
  make_durable(to);
}

void compare(const fs::path& folder, const Tree& tree, int rounds) {
  fs::path from = folder / "from";
  std::uint64_t bytes = make_tree(from, tree);
  std::vector<double> ours;
  std::vector<double> theirs;
  for (int round = 0; round < rounds; ++round) {
    auto measure = [&](std::vector<double>& times, void (*copy)(const fs::path&, const fs::path&)) {
      fs::path to = folder / "to";
      times.push_back(seconds_of([&] { copy(from, to); }));
      fs::remove_all(to);
      make_durable(folder);
    };
    // Who goes first changes, because the first warms the caches.
    if (round % 2 == 0) measure(theirs, cp);
    measure(ours, salvage);
    if (round % 2 != 0) measure(theirs, cp);
  }
  fs::remove_all(from);
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i)
    ratios.push_back(ours[i] / theirs[i]);
  fmt::print("{:<34} {:>7.0f} MB  salvage {:>8.1f} ms {:>7.0f} MB/s   cp -a {:>8.1f} ms   ours : it {:.2f}\n",
             tree.name, static_cast<double>(bytes) / 1e6, median(ours) * 1e3,
             static_cast<double>(bytes) / 1e6 / median(ours), median(theirs) * 1e3, median(ratios));
}

class NoJournal final : public Journal {
 public:
  void write(const JournalEntry&) override {}
};

// The request that is sent before every start, when the last one has done everything.
void measure_idle_request(const fs::path& folder) {
  Layout layout{.anchor = (folder / "host").string()};
  for (std::string_view path : {"/etc/nixos-containers", "/var/lib/nixos-containers/h-iris", "/var/lib/hive-priv",
                                "/var/lib/hyperhive/agents/iris/work"}) {
    fs::create_directories(layout.anchor + std::string(path));
  }
  std::ofstream(layout.anchor + "/etc/nixos-containers/h-iris.conf") << "AUTO_START=0\n";
  Settings settings = Settings::defaults(layout);
  auto units = no_units();
  Host host{.clock = system_clock(), .units = *units};
  NoJournal journal;
  Desk desk(layout, settings, host, journal);
  constexpr std::string_view request =
      R"({"op":"write_nspawn_flags","container":"h-iris","binds":[{"host_path":"/var/lib/hyperhive/agents/iris/work",)"
      R"("container_path":"/agents/iris/work"}],"isolation":{"bridge":"hive0","gateway_ip":"10.42.0.1"}})";
  if (!desk.answer(request, {}).starts_with(R"({"ok":true)")) give_up("the request was refused");
  std::vector<double> times;
  for (int i = 0; i < 1000; ++i)
    times.push_back(seconds_of([&] { desk.answer(request, {}); }));
  std::ranges::sort(times);
  fmt::print("nothing to do: p50 {:.3f} ms, p99 {:.3f} ms\n", times[500] * 1e3, times[990] * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  bool quick = false;
  fs::path parent = fs::temp_directory_path();
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "--quick") {
      quick = true;
    } else if (word == "--dir" && i + 1 < argc) {
      parent = argv[++i];
    } else {
      give_up("usage: salvage_bench [--quick] [--dir DIR]");
    }
  }
  if (::geteuid() != 0) give_up("owners are set, which needs root");
  std::string pattern = (parent / "salvage-bench-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) give_up("cannot make a folder in " + parent.string());
  fs::path folder = pattern;
  int rounds = quick ? 3 : 7;
  compare(folder, {"5,000 small files", 5000, 0, size_t{1} << 20}, rounds);
  compare(folder, {"4 files of 64 MiB", 0, 4, size_t{64} << 20}, rounds);
  measure_idle_request(folder);
  fs::remove_all(folder);
}
