#include "gateway/fleet/roster.h"

#include <gtest/gtest.h>

namespace hive::fleet {
namespace {

using std::chrono::seconds;

class RosterTest : public ::testing::Test {
 protected:
  Roster::Arrival connect(const std::string& id, bool replaces = false) {
    net::ssh::Peer peer;
    peer.user = id;
    peer.address = "192.0.2.1";
    peer.key_fingerprint = "SHA256:key";
    peer.software = "SSH-2.0-agent";
    return roster_.connected(peer, replaces);
  }

  std::vector<std::string> ids() const {
    std::vector<std::string> ids;
    for (const AgentPointer& agent : roster_.snapshot()->agents)
      ids.push_back(agent->id);
    return ids;
  }

  std::vector<std::string> unwritten() {
    std::vector<std::string> ids;
    Roster::Changes changes = roster_.take_changes();
    for (const AgentPointer& agent : changes.changed)
      ids.push_back(agent->id);
    for (const std::string& id : changes.forgotten)
      ids.push_back("-" + id);
    return ids;
  }

  ManualClock clock_;
  Roster roster_{clock_};
};

TEST_F(RosterTest, ASnapshotStaysAsItWas) {
  connect("edge-1");
  SnapshotPointer before = roster_.snapshot();
  EXPECT_EQ(roster_.snapshot(), before) << "nothing has changed, so nothing is made";
  connect("edge-0");
  SnapshotPointer after = roster_.snapshot();
  EXPECT_EQ(before->agents.size(), 1U);
  EXPECT_EQ(ids(), (std::vector<std::string>{"edge-0", "edge-1"}));
  EXPECT_NE(before->version, after->version);
  EXPECT_EQ(before->agents[0], after->agents[1]) << "what has not changed is shared";
  EXPECT_EQ(after->find("edge-2"), nullptr);
  EXPECT_EQ(after->behind("edge-0"), 1U);
  EXPECT_EQ(after->behind("edge-00"), 1U);
}

TEST_F(RosterTest, ActivityIsOfTheMomentInWhichItIsRead) {
  Roster::Arrival arrival = connect("edge-1");
  AgentPointer agent = roster_.find("edge-1");
  EXPECT_EQ(agent->seen(), clock_.wall_now());
  clock_.advance(seconds(5));
  arrival.activity->last_seen_ns = clock_.wall_now().time_since_epoch().count();
  arrival.activity->calls_in_flight = 3;
  EXPECT_EQ(agent->seen(), clock_.wall_now());
  EXPECT_EQ(agent->calls_in_flight(), 3U);
  EXPECT_EQ(roster_.snapshot(), roster_.snapshot());
}

TEST_F(RosterTest, KnowsSinceWhenAndWhyAnAgentIsOffline) {
  WallTime first = clock_.wall_now();
  connect("edge-1");
  AgentStatus said;
  said.os_version = "Debian";
  roster_.described("edge-1", said);
  clock_.advance(seconds(7));
  roster_.disconnected("edge-1", "nothing heard for 45 s");
  AgentPointer agent = roster_.find("edge-1");
  EXPECT_FALSE(agent->online);
  EXPECT_EQ(agent->first_seen, first);
  EXPECT_EQ(agent->last_seen, first);
  EXPECT_EQ(agent->offline_since, clock_.wall_now());
  EXPECT_EQ(agent->offline_reason, "nothing heard for 45 s");
  EXPECT_EQ(agent->os_version, "Debian");

  connect("edge-1");
  agent = roster_.find("edge-1");
  EXPECT_TRUE(agent->online);
  EXPECT_EQ(agent->offline_since, WallTime());
  EXPECT_EQ(agent->first_seen, first);
  EXPECT_EQ(agent->connections, 2U);
  EXPECT_EQ(agent->os_version, "Debian") << "until it says something else";
}

TEST_F(RosterTest, ListsWhoHasAKeyAndNeverConnected) {
  connect("edge-1");
  roster_.set_enrolled(std::vector<std::string>{"edge-1", "edge-2"});
  EXPECT_EQ(ids(), (std::vector<std::string>{"edge-1", "edge-2"}));
  EXPECT_FALSE(roster_.find("edge-2")->has_connected());
  EXPECT_EQ(offline_text(*roster_.find("edge-2")), "agent edge-2 has a key, but never connected");
  roster_.set_enrolled(std::vector<std::string>{"edge-1"});
  EXPECT_EQ(ids(), std::vector<std::string>{"edge-1"});
}

TEST_F(RosterTest, AnAgentWithoutKeyGoesAfterAWhile) {
  connect("edge-1");
  roster_.set_enrolled(std::vector<std::string>{"edge-1"});
  roster_.disconnected("edge-1", "gone");
  roster_.set_enrolled({});
  EXPECT_EQ(roster_.find("edge-1")->keyless_since, clock_.wall_now());
  clock_.advance(seconds(99));
  roster_.settle(seconds(100));
  EXPECT_NE(roster_.find("edge-1"), nullptr);
  clock_.advance(seconds(1));
  roster_.settle(seconds(100));
  EXPECT_EQ(roster_.find("edge-1"), nullptr);
}

TEST_F(RosterTest, AnAgentThatGetsItsKeyBackStays) {
  connect("edge-1");
  roster_.disconnected("edge-1", "gone");
  roster_.set_enrolled({});
  roster_.set_enrolled(std::vector<std::string>{"edge-1"});
  EXPECT_EQ(roster_.find("edge-1")->keyless_since, WallTime());
  clock_.advance(seconds(1000));
  roster_.settle(seconds(100));
  EXPECT_NE(roster_.find("edge-1"), nullptr);
}

TEST_F(RosterTest, ForgetsARevokedAgentWhenItsSessionHasEnded) {
  connect("edge-1");
  roster_.forget("edge-1");
  EXPECT_TRUE(roster_.find("edge-1")->online);
  roster_.disconnected("edge-1", "revoked");
  EXPECT_EQ(roster_.find("edge-1"), nullptr);
  EXPECT_EQ(unwritten(), std::vector<std::string>{"-edge-1"});
}

TEST_F(RosterTest, ARevokedAgentThatIsEnrolledAgainIsNotForgotten) {
  connect("edge-1");
  roster_.forget("edge-1");
  connect("edge-1", true);
  roster_.disconnected("edge-1", "gone");
  EXPECT_NE(roster_.find("edge-1"), nullptr);
}

TEST_F(RosterTest, TellsWhatIsToBeWrittenDownOnce) {
  connect("edge-1");
  connect("edge-2");
  EXPECT_EQ(unwritten(), (std::vector<std::string>{"edge-1", "edge-2"}));
  EXPECT_TRUE(unwritten().empty());
  Roster::Arrival arrival = connect("edge-2", true);
  arrival.activity->last_seen_ns = 1;
  Roster::Changes changes = roster_.take_changes();
  ASSERT_EQ(changes.changed.size(), 1U);
  roster_.forget("edge-1");
  roster_.disconnected("edge-1", "gone");
  roster_.put_back(changes);
  EXPECT_EQ(unwritten(), (std::vector<std::string>{"edge-2", "-edge-1"}));
}

TEST_F(RosterTest, WhatWasLoadedIsKnownAndNotWrittenAgain) {
  AgentStatus agent;
  agent.id = "edge-7";
  agent.connected_at = clock_.wall_now();
  agent.connections = 4;
  roster_.load({agent});
  EXPECT_TRUE(unwritten().empty());
  connect("edge-7");
  EXPECT_EQ(roster_.find("edge-7")->connections, 5U);
}

TEST_F(RosterTest, FlappingEndsByItself) {
  for (int i = 0; i < 6; ++i)
    connect("edge-1", true);
  ASSERT_NE(roster_.find("edge-1")->flapping, nullptr);
  roster_.settle(seconds(100));
  ASSERT_NE(roster_.find("edge-1")->flapping, nullptr);
  clock_.advance(FlapHistory::window);
  roster_.settle(seconds(100));
  EXPECT_EQ(roster_.find("edge-1")->flapping, nullptr);
  EXPECT_EQ(roster_.find("edge-1")->replacements, 6U);
}

}  // namespace
}  // namespace hive::fleet
