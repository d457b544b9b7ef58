// What each of the six gates refuses is refused alike on every way into this surface: plain, streamed and explained.

#include <ranges>

#include "gateway/surfaces/rest/rest_fixture.h"

namespace hive::rest::test {
namespace {

/// The surface above the real funnel and the real policy.
class SurfacesTest : public RestTest {
 protected:
  struct Expected {
    std::string gate;
    std::string reason;
    unsigned status = 200;
  };

  SurfacesTest() {
    for (const char* id : {"edge-1", "edge-3"}) {
      fleet::AgentStatus status;
      status.id = id;
      status.online = true;
      status.key_fingerprint = "SHA256:key";
      fleet.agents.push_back(status);
      for (const char* tool : {"get_metrics", "run_command"})
        fleet.all_tools.push_back({id, tool, "", R"({"name":")" + std::string(tool) + "\"}"});
    }
    fleet.reply = [](std::string_view, const fleet::AgentRequest&) {
      return fleet::AgentReply{fleet::ReplyKind::result, R"({"content":[{"type":"text","text":"ok"}]})", "", ""};
    };
  }

  ~SurfacesTest() override {
    // The funnel outlives what it was given.
    runtime.stop();
    server.reset();
  }

  calls::Funnel& used_funnel() override {
    real_funnel = calls::Funnel::create(fleet, policy::make_policy(config, clock), funnel_log, clock, {});
    real_funnel->set_approvals(&approvals);
    return *real_funnel;
  }

  /// The reason code of an answer, wherever this kind of answer has it; they must not contradict each other.
  static std::string reason_of(const std::string& response) {
    std::string reason = header_of(response, "Myrmex-Reason");
    if (header_of(response, "Content-Type") == "application/problem+json") {
      EXPECT_EQ(text_at(json_of(response), "code"), reason) << response;
    }
    if (response.find("\"myrmex-hive/reason\":\"") != std::string::npos) {
      EXPECT_NE(response.find("\"myrmex-hive/reason\":\"" + reason + "\""), std::string::npos) << response;
    }
    return reason;
  }

  std::string last_recorded_reason() {
    for (const audit::Record& record : std::views::reverse(log.records())) {
      if (record.kind == audit::RecordKind::outcome) return record.reason;
    }
    return "nothing recorded";
  }

  void expect_refused(const std::string& name, const std::string& token, const Expected& expected) {
    std::string body = R"({"name":")" + name + R"(","arguments":{"name":"reboot"}})";
    for (const char* headers : {"", "Accept: text/event-stream\r\n"}) {
      std::string response = call(body, token, headers);
      EXPECT_EQ(status_of(response), expected.status) << response;
      EXPECT_EQ(reason_of(response), expected.reason) << response;
      if (funnel_log != nullptr && expected.status != 202) {
        EXPECT_EQ(last_recorded_reason(), expected.reason);
      }
    }
    const boost::json::value explained = json_of(send("POST", "/api/explain", token, "", body));
    bool found = false;
    for (const boost::json::value& gate : explained.at("gates").as_array()) {
      if (text_at(gate, "gate") != expected.gate) continue;
      found = true;
      EXPECT_EQ(text_at(gate, "reason"), expected.reason);
      EXPECT_NE(text_at(gate, "verdict"), "allow");
      EXPECT_NE(text_at(gate, "rule"), "") << expected.gate;
    }
    EXPECT_TRUE(found) << expected.gate;
    EXPECT_EQ(text_at(explained, "reason"), expected.reason);
  }

  audit::Log* funnel_log = &log;
  std::unique_ptr<calls::Funnel> real_funnel;
};

TEST_F(SurfacesTest, WhatAllGatesAdmitRuns) {
  std::string response = call(R"({"name":"edge-1__run_command","arguments":{"name":"uptime"}})");
  EXPECT_EQ(header_of(response, "Myrmex-Outcome"), "success") << response;
  response = call(R"({"name":"edge-1__run_command"})", operator_token, "Accept: text/event-stream\r\n");
  EXPECT_EQ(header_of(response, "Myrmex-Outcome"), "success") << response;
}

TEST_F(SurfacesTest, TheFirstGateIsTheRole) {
  expect_refused("edge-1__run_command", reader_token, {"role", "role", 403});
}

TEST_F(SurfacesTest, TheSecondGateIsTheScope) {
  expect_refused("edge-3__get_metrics", scoped_operator_token, {"scope", "scope", 403});
  expect_refused("edge-1__run_command", scoped_operator_token, {"scope", "scope", 403});
}

TEST_F(SurfacesTest, TheThirdGateIsTheApproval) {
  config.require_approval_tiers = {"write", "admin"};
  expect_refused("edge-1__run_command", operator_token, {"approval", "approval_required", 202});
}

TEST_F(SurfacesTest, TheFourthGateIsTheRate) {
  config.rate_limit_per_minute = 1;
  EXPECT_EQ(header_of(call(R"({"name":"edge-1__run_command"})"), "Myrmex-Outcome"), "success");
  expect_refused("edge-1__run_command", operator_token, {"rate_limit", "rate_limited", 429});
}

TEST_F(SurfacesTest, TheFifthGateIsTheAgentsAllowlist) {
  fleet.reply = [](std::string_view, const fleet::AgentRequest&) {
    return fleet::AgentReply{
        fleet::ReplyKind::result,
        R"({"content":[{"type":"text","text":"no"}],"isError":true,"_meta":{"myrmex-hive/outcome":"denied","myrmex-hive/reason":"not_allowlisted"}})",
        "", ""};
  };
  expect_refused("edge-1__run_command", operator_token, {"allowlist", "not_allowlisted", 200});
}

TEST_F(SurfacesTest, TheSixthGateIsTheRecord) {
  funnel_log = nullptr;
  expect_refused("edge-1__run_command", operator_token, {"audit", "audit_unavailable", 503});
}

}  // namespace
}  // namespace hive::rest::test
