#include "gateway/fleet/last_known.h"

#include <gtest/gtest.h>

#include "crypto/scratch_folder.h"
#include "gateway/store/database.h"

namespace hive::fleet {
namespace {

using std::chrono::seconds;

/// One run of the gateway after another on the same state.
class LastKnownTest : public ::testing::Test {
 protected:
  struct Run {
    explicit Run(const LastKnownTest& test) : roster(test.clock_) {
      auto opened = store::Database::open(test.path_);
      EXPECT_TRUE(opened) << opened.error().message;
      database = *std::move(opened);
      auto known = LastKnown::open(
          {.runtime = runtime, .database = *database, .roster = roster, .clock = test.clock_, .keyless_for = [] {
             return seconds(1000);
           }});
      EXPECT_TRUE(known) << known.error().message;
      last_known = *std::move(known);
    }

    void connect(const std::string& id) {
      net::ssh::Peer peer;
      peer.user = id;
      peer.address = "192.0.2.1";
      peer.key_fingerprint = "SHA256:key";
      peer.software = "SSH-2.0-agent";
      (void)roster.connected(peer, false);
    }

    Roster roster;
    net::Runtime runtime{1};
    std::unique_ptr<store::Database> database;
    std::shared_ptr<LastKnown> last_known;
  };

  std::unique_ptr<Run> start() { return std::make_unique<Run>(*this); }

  ManualClock clock_;
  hive::test::ScratchFolder folder_;
  std::string path_ = folder_.path("hive.db");
};

TEST_F(LastKnownTest, AGatewayThatStartsKnowsTheAgentsOfTheLastRun) {
  auto run = start();
  WallTime connected_at = clock_.wall_now();
  run->connect("edge-1");
  AgentStatus said;
  said.os_version = "Debian \"12\"";
  said.agent_version = "1.2.3";
  said.running_services = {"nginx", "a\nb"};
  said.open_ports = {"80"};
  run->roster.described("edge-1", said);
  clock_.advance(seconds(5));
  run->roster.disconnected("edge-1", "the gateway stops");
  WallTime ended_at = clock_.wall_now();
  ASSERT_TRUE(run->last_known->close());
  run.reset();

  clock_.advance(seconds(60));
  run = start();
  AgentPointer agent = run->roster.find("edge-1");
  ASSERT_NE(agent, nullptr);
  EXPECT_FALSE(agent->online);
  EXPECT_TRUE(agent->has_connected());
  EXPECT_EQ(agent->address, "192.0.2.1");
  EXPECT_EQ(agent->key_fingerprint, "SHA256:key");
  EXPECT_EQ(agent->software, "SSH-2.0-agent");
  EXPECT_EQ(agent->os_version, said.os_version);
  EXPECT_EQ(agent->agent_version, said.agent_version);
  EXPECT_EQ(agent->running_services, said.running_services);
  EXPECT_EQ(agent->open_ports, said.open_ports);
  EXPECT_EQ(agent->first_seen, connected_at);
  EXPECT_EQ(agent->connected_at, connected_at);
  EXPECT_EQ(agent->last_seen, connected_at);
  EXPECT_EQ(agent->offline_since, ended_at);
  EXPECT_EQ(agent->offline_reason, "the gateway stops");
  EXPECT_EQ(agent->connections, 1U);
  EXPECT_EQ(agent->calls_in_flight(), 0U);
}

TEST_F(LastKnownTest, AnAgentThatWasOnlineWhenTheGatewayWasKilledIsOfflineSinceItsLastSignOfLife) {
  auto run = start();
  run->connect("edge-1");
  ASSERT_TRUE(run->last_known->close()) << "written, and nothing said of its end";
  WallTime sign_of_life = clock_.wall_now();
  run.reset();
  clock_.advance(seconds(3600));
  run = start();
  AgentPointer agent = run->roster.find("edge-1");
  ASSERT_NE(agent, nullptr);
  EXPECT_FALSE(agent->online);
  EXPECT_EQ(agent->offline_since, sign_of_life);
}

TEST_F(LastKnownTest, WhatWasForgottenStaysForgotten) {
  auto run = start();
  run->connect("edge-1");
  run->connect("edge-2");
  run->roster.disconnected("edge-1", "gone");
  ASSERT_TRUE(run->last_known->close());
  run.reset();
  run = start();
  run->roster.forget("edge-1");
  ASSERT_TRUE(run->last_known->close());
  run.reset();
  run = start();
  EXPECT_EQ(run->roster.find("edge-1"), nullptr);
  EXPECT_NE(run->roster.find("edge-2"), nullptr);
}

TEST_F(LastKnownTest, ChangesAreWrittenWithoutBeingAsked) {
  auto run = start();
  run->last_known->start();
  run->runtime.start();
  run->connect("edge-1");
  std::int64_t count = 0;
  auto deadline = std::chrono::steady_clock::now() + seconds(30);
  while (count == 0 && std::chrono::steady_clock::now() < deadline) {
    run->database->run([&](store::Connection& connection) {
      auto query = connection.prepare("SELECT count(*) FROM agents");
      ASSERT_TRUE(query && query->step());
      count = query->number(0);
    });
    std::this_thread::yield();
  }
  EXPECT_EQ(count, 1);
  EXPECT_TRUE(run->last_known->close());
  run->runtime.stop();
}

TEST_F(LastKnownTest, WhatCannotBeWrittenIsWrittenLater) {
  auto run = start();
  run->connect("edge-1");
  auto execute = [&](std::string_view sql) {
    run->database->run([&](store::Connection& connection) { EXPECT_TRUE(connection.execute(sql)); });
  };
  execute("ALTER TABLE agents RENAME TO elsewhere");
  EXPECT_FALSE(run->last_known->close());
  execute("ALTER TABLE elsewhere RENAME TO agents");
  EXPECT_TRUE(run->last_known->close());
  run.reset();
  run = start();
  EXPECT_NE(run->roster.find("edge-1"), nullptr);
}

TEST_F(LastKnownTest, RowsThatNoGatewayWroteAreLeftOut) {
  auto run = start();
  run->connect("edge-1");
  ASSERT_TRUE(run->last_known->close());
  run->database->run([](store::Connection& connection) {
    EXPECT_TRUE(connection.execute(
        "INSERT INTO agents SELECT '../x', address, key_fingerprint, software, os_version, agent_version, services, "
        "ports, first_seen, connected_at, last_seen, offline_since, offline_reason, keyless_since, connections, "
        "replacements FROM agents"));
    EXPECT_TRUE(connection.execute("UPDATE agents SET services = 'no json' WHERE id = 'edge-1'"));
  });
  run.reset();
  run = start();
  ASSERT_EQ(run->roster.snapshot()->agents.size(), 1U);
  EXPECT_TRUE(run->roster.find("edge-1")->running_services.empty());
}

}  // namespace
}  // namespace hive::fleet
