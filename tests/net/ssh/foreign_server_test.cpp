/// Gateways that are not ours: Go's SSH library, as the gateways of the Go product use it.

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>

#include "base/strings.h"
#include "net/ssh/process.h"
#include "net/ssh/ssh_fixture.h"

namespace hive::net::ssh {
namespace {

#ifdef HIVE_GO_GATEWAY
constexpr std::string_view go_gateway = HIVE_GO_GATEWAY;
#else
constexpr std::string_view go_gateway;
#endif

class ForeignServerTest : public SshFixture {
 protected:
  void SetUp() override {
    if (go_gateway.empty() || !std::filesystem::exists(go_gateway)) {
      if (std::getenv("HIVE_REQUIRE_ALL") != nullptr) FAIL() << "missing: install golang-golang-x-crypto-dev";
      GTEST_SKIP() << "missing: install golang-golang-x-crypto-dev";
    }
    start_server();  // for its keys
  }

  /// Connects to a gateway that has printed its port.
  std::shared_ptr<LineChannel> connect_to(Process& gateway) {
    const auto port = gateway.read_line();
    EXPECT_TRUE(port);
    ClientOptions options = client_options();
    options.port = static_cast<std::uint16_t>(parse_int64(port.value_or("0")).value_or(0));
    options.verify_host_key = [](const crypto::PublicKey&) -> Result<void> { return {}; };
    auto channel = connect_client(std::move(options));
    EXPECT_TRUE(channel) << channel.error().message;
    return channel ? *channel : nullptr;
  }
};

TEST_F(ForeignServerTest, AHostileGatewayGetsNothingButTheChannel) {
  Process gateway({std::string(go_gateway), "hostile"});
  auto channel = connect_to(gateway);
  ASSERT_TRUE(channel);
  auto handler = std::make_shared<RecordingHandler>();
  handler->respond = [&](std::string_view line) { EXPECT_TRUE(channel->send(line)); };
  on_worker(*channel, [&] { channel->set_handler(handler); });
  EXPECT_EQ(gateway.read_all(),
            "open session: 0 of 200\n"
            "open mcp: 0 of 200\n"
            "open x11: 0 of 200\n"
            "open forwarded-tcpip: 0 of 200\n"
            "open direct-tcpip: 0 of 200\n"
            "open auth-agent@openssh.com: 0 of 200\n"
            "open forwarded-streamlocal@openssh.com: 0 of 200\n"
            "open tun@openssh.com: 0 of 200\n"
            "open unheard-of: 0 of 200\n"
            "open : 0 of 200\n"
            "global tcpip-forward: 0 of 200\n"
            "global streamlocal-forward@openssh.com: 0 of 200\n"
            "global hostkeys-00@openssh.com: 0 of 200\n"
            "global unheard-of@example.com: 0 of 200\n"
            "request shell: false\n"
            "request exec: false\n"
            "request subsystem: false\n"
            "echo: still alive <nil>\n");
  EXPECT_EQ(gateway.wait(), 0);
}

TEST_F(ForeignServerTest, NewKeysUnderTrafficLoseNothing) {
  Process gateway({std::string(go_gateway), "rekey"});
  auto channel = connect_to(gateway);
  ASSERT_TRUE(channel);
  auto handler = std::make_shared<RecordingHandler>();
  on_worker(*channel, [&] { channel->set_handler(handler); });
  // Sixteen times the amount after which keys are exchanged, in each direction, with probes in between.
  constexpr int count = 4096;
  const std::string padding(1000, '.');
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(send(*channel, std::to_string(i) + padding));
    if (i % 64 == 0) on_worker(*channel, [&] { channel->probe(); });
  }
  for (int i = 0; i < count; ++i)
    ASSERT_EQ(handler->lines.take(), std::to_string(i) + padding);
  // And it answers on.
  ASSERT_TRUE(send(*channel, "the end"));
  EXPECT_EQ(handler->lines.take(), "the end");
}

}  // namespace
}  // namespace hive::net::ssh
