#include "gateway/fleet/fleet.h"

#include <algorithm>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "crypto/sha256.h"
#include "gateway/calls/funnel_access.h"
#include "gateway/fleet/chatter_limit.h"
#include "net/ssh/fake_line_channel.h"
#include "protocol/agent_protocol.h"
#include "protocol/tools.h"

namespace hive::fleet {
namespace {

using net::ssh::FakeLineChannel;

class FleetTest : public ::testing::Test {
 protected:
  ~FleetTest() override {
    fleet_->close("end of test");
    settle();
  }

  void settle() {
    worker_.context().restart();
    worker_.context().poll();
  }

  // Lets the clock go on, slower than the timers' own, until the condition holds.
  bool run_until(const std::function<bool()>& condition) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      worker_.context().restart();
      worker_.context().run_for(std::chrono::milliseconds(20));
      clock_.advance(std::chrono::milliseconds(5));
    }
    return condition();
  }

  // A channel that answers what a gateway asks first, as an agent does.
  std::shared_ptr<FakeLineChannel> connect(const std::string& agent) {
    auto channel = std::make_shared<FakeLineChannel>(worker_, agent);
    auto* raw = channel.get();
    channel->on_send = [this, raw](const std::string& line) {
      auto request = protocol::parse_agent_request(line, {});
      if (!request || request->is_notification) return;
      std::string result = request->method == "tools/list" ? protocol::tools_list_result() : ping_result_;
      if (request->method == "tools/call") {
        result =
            R"({"content":[],"structuredContent":{"os_version":"Debian","running_services":["nginx"],"open_ports":["80"],"agent_version":"1"}})";
      }
      worker_.post([raw, answer = protocol::encode_result(request->id, result)] {
        if (raw->is_open()) raw->arrive(answer);
      });
    };
    fleet_->add(channel);
    settle();
    return channel;
  }

  ManualClock clock_;
  net::Worker worker_;
  std::string ping_result_ = "{}";
  std::vector<std::string> events_;
  std::unique_ptr<Fleet> fleet_ = Fleet::create(
      clock_, {.keepalive = std::chrono::milliseconds(40)},
      {.online = [this](const std::string& agent, const net::ssh::Peer&) { events_.push_back("+" + agent); },
       .offline = [this](const std::string& agent, const std::string&) { events_.push_back("-" + agent); }});
};

TEST_F(FleetTest, KnowsAnAgentAndItsToolsOnceItIsConnected) {
  connect("edge-1");
  auto agents = fleet_->snapshot()->agents;
  ASSERT_EQ(agents.size(), 1U);
  EXPECT_TRUE(agents[0]->online);
  EXPECT_EQ(agents[0]->os_version, "Debian");
  EXPECT_EQ(agents[0]->running_services, std::vector<std::string>{"nginx"});
  ASSERT_NE(agents[0]->tools, nullptr);
  EXPECT_EQ(agents[0]->tools->size(), 9U);
  EXPECT_TRUE(agents[0]->has_tool("get_metrics"));
}

TEST_F(FleetTest, ListsAllAgentsInAStableOrder) {
  connect("edge-2");
  connect("edge-1");
  auto agents = fleet_->snapshot()->agents;
  ASSERT_EQ(agents.size(), 2U);
  EXPECT_EQ(agents.front()->id, "edge-1");
  EXPECT_EQ(agents.back()->id, "edge-2");
}

TEST_F(FleetTest, DoesNotAskForAListThatAnotherAgentHasTold) {
  ping_result_ = protocol::encode_ping_result(to_hex(crypto::sha256(protocol::tools_list_result())));
  auto first = connect("edge-1");
  auto second = connect("edge-2");
  auto asked = [](const FakeLineChannel& channel) {
    return std::ranges::count_if(channel.sent(), [](const std::string& line) { return line.contains("tools/list"); });
  };
  EXPECT_EQ(asked(*first), 1);
  EXPECT_EQ(asked(*second), 0);
  EXPECT_EQ(fleet_->find("edge-1")->tools, fleet_->find("edge-2")->tools);
  EXPECT_TRUE(fleet_->find("edge-2")->has_tool("run_command"));
}

TEST_F(FleetTest, RemembersAnAgentThatLeft) {
  auto channel = connect("edge-1");
  clock_.advance(std::chrono::seconds(7));
  channel->break_down();
  settle();
  auto status = fleet_->find("edge-1");
  ASSERT_NE(status, nullptr);
  EXPECT_FALSE(status->online);
  EXPECT_EQ(status->os_version, "Debian");
  EXPECT_EQ(status->tools, nullptr);
  EXPECT_EQ(status->offline_since, clock_.wall_now());
  EXPECT_FALSE(status->offline_reason.empty());
  EXPECT_EQ(events_, (std::vector<std::string>{"+edge-1", "-edge-1"}));
}

TEST_F(FleetTest, TheNewestConnectionOfAnIdReplacesTheOldOne) {
  auto old_channel = connect("edge-1");
  auto new_channel = connect("edge-1");
  EXPECT_FALSE(old_channel->is_open());
  EXPECT_NE(old_channel->close_reason().find("newer connection"), std::string::npos);
  EXPECT_TRUE(new_channel->is_open());
  EXPECT_TRUE(fleet_->find("edge-1")->online);
  EXPECT_EQ(events_, (std::vector<std::string>{"+edge-1", "+edge-1"}));
}

TEST_F(FleetTest, ClosesATunnelThatSendsNothingButMalformedLines) {
  auto channel = connect("edge-1");
  for (int i = 0; i < 64; ++i)
    channel->arrive("not json");
  EXPECT_FALSE(channel->is_open());
}

TEST_F(FleetTest, PingsASilentAgentAndEndsATunnelThatStaysSilent) {
  auto channel = connect("edge-1");
  channel->on_send = nullptr;
  size_t before = channel->sent().size();
  SteadyTime silent_since = clock_.steady_now();
  ASSERT_TRUE(run_until([&] { return !channel->is_open(); }));
  ASSERT_GT(channel->sent().size(), before);
  EXPECT_NE(channel->sent().back().find("ping"), std::string::npos);
  EXPECT_NE(channel->close_reason().find("nothing heard"), std::string::npos);
  EXPECT_GE(clock_.steady_now() - silent_since, std::chrono::milliseconds(120));
}

TEST_F(FleetTest, KeepsAnAgentThatAnswersPings) {
  auto channel = connect("edge-1");
  size_t before = channel->sent().size();
  ASSERT_TRUE(run_until([&] { return channel->sent().size() >= before + 10; }));
  EXPECT_TRUE(channel->is_open());
}

TEST_F(FleetTest, EndsATunnelWhoseAgentTalksButAnswersNoPing) {
  auto channel = connect("edge-1");
  channel->on_send = nullptr;
  auto closed = [&] {
    if (channel->is_open()) channel->arrive(protocol::encode_progress("\"1\"", 1, "still busy"));
    return !channel->is_open();
  };
  ASSERT_TRUE(run_until(closed));
  EXPECT_NE(channel->close_reason().find("a ping was not answered"), std::string::npos);
}

TEST_F(FleetTest, JudgesNobodyByTheTimeThatItSleptItself) {
  auto channel = connect("edge-1");
  // Nothing ran for an hour, as when the gateway was stopped. What the agent said meanwhile has not been read yet.
  clock_.advance(std::chrono::hours(1));
  size_t before = channel->sent().size();
  ASSERT_TRUE(run_until([&] { return channel->sent().size() > before; }));
  EXPECT_NE(channel->sent().back().find("ping"), std::string::npos);
  ASSERT_TRUE(run_until([&] { return channel->sent().size() >= before + 4; }));
  EXPECT_TRUE(channel->is_open());
}

TEST_F(FleetTest, CutsOffAnAgentThatFloodsItsTunnelAndNoOther) {
  auto flooding = connect("edge-1");
  auto honest = connect("edge-2");
  for (int i = 0; i < 20'000 && flooding->is_open(); ++i)
    flooding->arrive(protocol::encode_result(fmt::format("\"{}\"", 1'000'000 + i), "{}"));
  EXPECT_FALSE(flooding->is_open());
  EXPECT_NE(flooding->close_reason().find("floods the tunnel"), std::string::npos);
  EXPECT_TRUE(honest->is_open());
}

TEST_F(FleetTest, CutsOffAnAgentWhoseUnaskedLinesAreFewAndHuge) {
  auto channel = connect("edge-1");
  const std::string huge = protocol::encode_result("\"999\"", fmt::format("\"{}\"", std::string(3'000'000, 'x')));
  int lines = 0;
  while (lines < 100 && channel->is_open()) {
    channel->arrive(huge);
    ++lines;
  }
  EXPECT_FALSE(channel->is_open());
  EXPECT_LT(lines, 30);
}

TEST_F(FleetTest, ProgressBeyondTheLimitIsDroppedAndTheAnswerStillComes) {
  auto channel = connect("edge-1");
  channel->on_send = nullptr;
  AgentRequest request;
  request.tool = "run_command";
  request.arguments = "{}";
  size_t passed_on = 0;
  std::optional<AgentReply> reply;
  request.on_progress = [&](std::string_view) { ++passed_on; };
  request.done = [&](AgentReply answer) { reply = std::move(answer); };
  const std::string id = std::to_string(calls::FunnelAccess::send(*fleet_, "edge-1", std::move(request)));
  settle();
  for (int i = 0; i < 5000; ++i)
    channel->arrive(protocol::encode_progress(fmt::format("\"{}\"", id), static_cast<std::uint64_t>(i), "more"));
  EXPECT_EQ(passed_on, ChatterLimit::max_progress_lines);
  EXPECT_TRUE(channel->is_open());
  channel->arrive(protocol::encode_result(fmt::format("\"{}\"", id), "{}"));
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->kind, ReplyKind::result);
}

TEST_F(FleetTest, ADuplicateAnswerIsDropped) {
  auto channel = connect("edge-1");
  channel->on_send = nullptr;
  AgentRequest request;
  request.tool = "get_metrics";
  request.arguments = "{}";
  int answers = 0;
  request.done = [&](const AgentReply&) { ++answers; };
  const std::string id = std::to_string(calls::FunnelAccess::send(*fleet_, "edge-1", std::move(request)));
  settle();
  for (int i = 0; i < 10; ++i)
    channel->arrive(protocol::encode_result(id, "{}"));
  EXPECT_EQ(answers, 1);
  EXPECT_TRUE(channel->is_open());
}

TEST_F(FleetTest, DisconnectEndsTheSession) {
  auto channel = connect("edge-1");
  fleet_->disconnect("edge-1", "revoked");
  settle();
  EXPECT_FALSE(channel->is_open());
  EXPECT_FALSE(fleet_->find("edge-1")->online);
}

TEST_F(FleetTest, TakesNobodyAfterClose) {
  fleet_->close("stopping");
  auto channel = std::make_shared<FakeLineChannel>(worker_, "late");
  fleet_->add(channel);
  settle();
  EXPECT_FALSE(channel->is_open());
  EXPECT_TRUE(fleet_->snapshot()->agents.empty());
}

}  // namespace
}  // namespace hive::fleet
