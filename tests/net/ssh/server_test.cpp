#include "net/ssh/server.h"

#include "net/ssh/ssh_fixture.h"

namespace hive::net::ssh {
namespace {

class ServerTest : public SshFixture {};

TEST_F(ServerTest, CarriesLinesBothWays) {
  start_server();
  Pair pair = connect_pair();
  ASSERT_TRUE(pair.client && pair.server);
  ASSERT_TRUE(send(*pair.client, "from the agent"));
  EXPECT_EQ(pair.server_handler->lines.take(), "from the agent");
  ASSERT_TRUE(send(*pair.server, "from the gateway"));
  EXPECT_EQ(pair.client_handler->lines.take(), "from the gateway");

  EXPECT_EQ(pair.server->peer().user, "agent-1");
  EXPECT_EQ(pair.server->peer().address, "127.0.0.1");
  EXPECT_EQ(pair.server->peer().kind, ChannelKind::subsystem);
  EXPECT_TRUE(pair.server->peer().key_fingerprint.starts_with("SHA256:"));
  EXPECT_EQ(pair.client->peer().key_fingerprint, host_key->fingerprint());
  EXPECT_EQ(pair.client->peer().software, "SSH-2.0-MyrmexHive");
}

}  // namespace
}  // namespace hive::net::ssh
