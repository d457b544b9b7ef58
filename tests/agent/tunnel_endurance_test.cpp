/// An agent whose gateway is away for an hour.

#include <atomic>
#include <filesystem>
#include <future>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "agent/tunnel.h"
#include "base/file.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "crypto/ssh_key.h"
#include "exec/runner_fixture.h"

namespace hive::agent {
namespace {

using namespace std::chrono_literals;

size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

/// A port of loopback that nobody listens on, for as long as it lives.
class ClosedPort {
 public:
  ClosedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
  }
  std::uint16_t port = 0;

 private:
  UniqueFd fd_;
};

TEST(TunnelEnduranceTest, TenThousandDialsThatFailLeaveMemoryAndDescriptorsAsTheyWere) {
  log::set_level(log::Level::error);
  exec::TemporaryFolder folder;
  const auto key = crypto::PrivateKey::generate("agent-1");
  ASSERT_TRUE(write_file_atomically(folder / "agent", key->to_openssh(), 0600));
  const ClosedPort closed;
  config::AgentConfig config;
  config.source_path = "agent.json";
  config.agent_id = "agent-1";
  config.private_key_path = folder / "agent";
  config.known_host_key_path = folder / "known";
  config.gateways = {{"127.0.0.1", closed.port}, {"localhost", closed.port}};
  // The delays of an hour, lapsed to one tick each; many agents share the work, as each waits for its tick.
  TunnelTuning tuning;
  tuning.backoff_base = 1ms;
  tuning.backoff_cap = 1ms;

  constexpr size_t agents = 50;
  constexpr size_t dials = 10'000;
  net::Runtime runtime(1);
  std::atomic<size_t> failed = 0;
  std::promise<void> warm;
  std::promise<void> done;
  TunnelCallbacks callbacks;
  callbacks.on_connected = [](std::shared_ptr<net::ssh::LineChannel>) { ADD_FAILURE() << "nobody is there"; };
  callbacks.on_state = [&](const TunnelStatus& status) {
    if (status.state != TunnelState::waiting) return;
    const size_t count = ++failed;
    if (count == dials / 10) warm.set_value();
    if (count == dials) done.set_value();
  };
  std::vector<std::shared_ptr<Tunnel>> tunnels;
  for (size_t i = 0; i < agents; ++i) {
    auto tunnel = Tunnel::create(runtime, runtime.worker(0), config, callbacks, tuning);
    ASSERT_TRUE(tunnel) << tunnel.error().message;
    tunnels.push_back(*std::move(tunnel));
  }
  runtime.start();
  runtime.worker(0).post([&] {
    for (const auto& tunnel : tunnels)
      tunnel->start();
  });
  ASSERT_EQ(warm.get_future().wait_for(90s), std::future_status::ready);
  const size_t memory = ::mallinfo2().uordblks;
  ASSERT_EQ(done.get_future().wait_for(90s), std::future_status::ready);
  EXPECT_LT(::mallinfo2().uordblks, memory + (size_t{2} << 20)) << "what is in use, whatever the heap has kept";
  std::promise<void> stopped;
  runtime.worker(0).post([&] {
    for (const auto& tunnel : tunnels)
      tunnel->stop();
    stopped.set_value();
  });
  stopped.get_future().wait();
  // At most one descriptor an agent was in use at any time; none is left.
  EXPECT_LT(open_descriptors(), 40U);
  runtime.stop();
  tunnels.clear();
  log::set_level(log::Level::info);
}

}  // namespace
}  // namespace hive::agent
