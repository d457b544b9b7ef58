// The real connections under the registry, again and again: nothing may stay behind.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "gateway/upstreams/registry_fixture.h"

namespace hive::upstreams {
namespace {

using test::RegistryTest;

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

std::size_t resident_kib() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  std::size_t resident = 0;
  file >> pages >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 1024;
}

/// Children of this process, zombies too.
std::size_t children() {
  std::size_t count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    std::size_t name_end = text.rfind(") ");
    if (name_end == std::string::npos) continue;
    // After the name: the state, and the parent.
    if (text.substr(name_end + 4, text.find(' ', name_end + 4) - name_end - 4) == std::to_string(::getpid())) ++count;
  }
  return count;
}

class ReconnectTest : public RegistryTest {
 protected:
  /// Opens real connections and counts them.
  void start_real() {
    // As every program does that writes to pipes.
    std::signal(SIGPIPE, SIG_IGN);
    auto opened = store::Database::open(folder.path("state.db"));
    ASSERT_TRUE(opened) << opened.error().message;
    database = *std::move(opened);
    Upstreams::Dependencies dependencies{.runtime = runtime, .clock = system_clock(), .database = *database};
    auto connect = [this](net::Worker& worker, ConnectionOptions options, ConnectionEvents events) {
      ++opened_connections;
      return Connection::create(worker, runtime, nullptr, std::move(options), std::move(events));
    };
    registry = std::make_unique<Registry>(dependencies, connect, tuning, [] { return 0.0; });
    registry->apply(config);
  }
  std::atomic<std::size_t> opened_connections = 0;
};

TEST_F(ReconnectTest, AThousandChildrenThatDieAtOnceLeaveNothingBehind) {
  tuning.backoff_base = tuning.backoff_cap = std::chrono::milliseconds(1);
  config.upstreams.clear();
  for (int k = 0; k < 8; ++k) {
    config::UpstreamConfig child = upstream("dies-" + std::to_string(k), "stdio");
    child.command = "false";
    config.upstreams.push_back(std::move(child));
  }
  start_real();
  ASSERT_TRUE(eventually([&] { return opened_connections >= 100; }));
  std::size_t descriptors = open_descriptors();
  std::size_t memory = resident_kib();
  auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (opened_connections < 1100 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_GE(opened_connections, 1100U);
  // Each of the eight may be in the middle of a try, or of a few whose children a busy machine has not ended yet.
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= descriptors + 8 * 6 && children() <= 16; }));
  EXPECT_LE(resident_kib(), memory + 4096);
  registry->close();
  EXPECT_TRUE(eventually([] { return children() == 0; }));
}

}  // namespace
}  // namespace hive::upstreams
