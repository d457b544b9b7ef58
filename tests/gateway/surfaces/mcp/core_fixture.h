#pragma once

#include <memory>
#include <string>
#include <utility>

#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "gateway/surfaces/mcp/fakes.h"
#include "protocol/document.h"
#include "protocol/tools.h"

namespace hive::mcp_surface::test {

inline boost::json::value parsed(std::string_view text) {
  auto document = json::parse(text, {.max_bytes = text.size() + 1, .max_values = 1'000'000});
  EXPECT_TRUE(document) << text;
  return document ? *document : boost::json::value();
}

/// The core above a fleet, a funnel and upstreams that the test controls.
class CoreTest : public testing::Test {
 protected:
  /// A request on its way.
  struct Asked {
    std::shared_ptr<FakeReply> reply;
    std::shared_ptr<Running> running;

    [[nodiscard]] boost::json::value answer() const { return parsed(reply->answer()); }
    [[nodiscard]] boost::json::value result() const {
      boost::json::value value = answer();
      const auto* result = value.is_object() ? value.as_object().if_contains("result") : nullptr;
      EXPECT_NE(result, nullptr) << reply->answer();
      return result == nullptr ? boost::json::value() : *result;
    }
    [[nodiscard]] boost::json::value error() const {
      boost::json::value value = answer();
      const auto* error = value.is_object() ? value.as_object().if_contains("error") : nullptr;
      EXPECT_NE(error, nullptr) << reply->answer();
      return error == nullptr ? boost::json::value() : *error;
    }
    [[nodiscard]] std::int64_t code() const {
      boost::json::value value = error();
      return value.is_object() ? value.at("code").as_int64() : 0;
    }
    [[nodiscard]] std::string text() const {
      boost::json::value value = result();
      if (!value.is_object()) return {};
      return std::string(value.at("content").at(0).at("text").as_string());
    }
  };

  CoreTest() {
    config.agent_tags = {{"edge-1", {"lab"}}};
    add_agent("edge-1");
    add_agent("edge-2");
    upstreams.add("plain", "", "2025-11-25");
    upstreams.add("other", "other", "2026-07-28");
    upstreams.offered.tools = {
        FakeUpstreams::item("other", "look", "other__look", R"({"name":"look","inputSchema":{"type":"object"}})"),
        FakeUpstreams::item("plain", "first", "first",
                            R"({"name":"first","description":"d","inputSchema":{"type":"object"}})")};
    upstreams.offered.prompts = {FakeUpstreams::item("other", "greet", "other__greet", R"({"name":"greet"})")};
    upstreams.offered.resources = {
        FakeUpstreams::item("plain", "test://one", "test://one", R"({"uri":"test://one","name":"one"})")};
    upstreams.watchable = {"test://one"};
    runtime.start();
  }
  ~CoreTest() override {
    core.reset();
    runtime.stop();
  }

  void start() {
    auto shared = std::make_shared<const config::GatewayConfig>(config);
    funnel.current_policy = policy::make_policy(*shared, clock);
    fan_outs = calls::FanOuts::create(funnel, fleet, &log, clock);
    core = Core::create({.runtime = runtime,
                         .fleet = fleet,
                         .funnel = funnel,
                         .fan_outs = *fan_outs,
                         .clock = clock,
                         .upstreams = &upstreams,
                         .approvals = with_approvals ? &approvals : nullptr,
                         .log = &log,
                         .read_audit = [this](const audit::Query& query) { return read_audit(query); }},
                        shared);
  }

  void add_agent(const std::string& id, bool online = true) {
    fleet::AgentStatus agent;
    agent.id = id;
    agent.online = online;
    agent.connected_at = clock.wall_now();
    agent.last_seen = WallTime(std::chrono::seconds(1'800'000'000));
    agent.running_services = {"nginx.service", "ssh.service"};
    fleet.agents.push_back(agent);
    if (!online) return;
    for (const char* name : {"get_metrics", "run_command"}) {
      const protocol::ToolDescription* tool = protocol::find_builtin_tool(name);
      fleet.all_tools.push_back({id, name, std::string(tool->description),
                                 R"({"name":")" + std::string(name) + R"(","title":")" + std::string(tool->title) +
                                     R"(","description":"does it","inputSchema":)" + std::string(tool->input_schema) +
                                     R"(,"outputSchema":{"type":"object"}})"});
    }
  }

  static policy::Principal admin(const std::string& name = "root") {
    return {.name = name, .role = policy::Role::admin, .grant = nullptr};
  }
  /// Reaches edge-1 and the tools get_* there.
  static policy::Principal scoped() {
    policy::Grant grant;
    grant.identity = "alice";
    grant.scope = policy::Scope{.agents = {"edge-1"}, .tags = {}, .tools = {"get_*"}, .field = "scoped_tokens[0]"};
    return {.name = "token:alice",
            .role = policy::Role::operator_,
            .grant = std::make_shared<const policy::Grant>(std::move(grant))};
  }
  static Client client(policy::Principal principal) {
    return {.principal = std::move(principal), .surface = calls::Surface::mcp_http, .request_id = "r-1"};
  }

  static std::string modern_text(std::string_view method, std::string_view params = "{}", std::string_view id = "1",
                                 std::string_view capabilities = "{}", std::string_view more_meta = "") {
    std::string meta = R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                       R"("io.modelcontextprotocol/clientCapabilities":)" +
                       std::string(capabilities) + std::string(more_meta) + "}";
    std::string inner(params.substr(1));
    return R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"method":")" + std::string(method) +
           R"(","params":{"_meta":)" + meta + (inner == "}" ? "" : ",") + inner + "}";
  }
  Asked send_modern(std::string text, policy::Principal principal = admin()) {
    auto reply = std::make_shared<FakeReply>();
    auto running = core->request(runtime.worker(0), client(std::move(principal)), std::move(text), reply);
    return {reply, running};
  }
  Asked modern(std::string_view method, std::string_view params = "{}", policy::Principal principal = admin()) {
    return send_modern(modern_text(method, params), std::move(principal));
  }

  static std::string legacy_text(std::string_view method, std::string_view params = "{}", std::string_view id = "1") {
    return R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"method":")" + std::string(method) + R"(","params":)" +
           std::string(params) + "}";
  }
  Asked send_legacy(const std::shared_ptr<Session>& session, std::string text, policy::Principal principal = admin()) {
    auto reply = std::make_shared<FakeReply>();
    auto running = session->request(runtime.worker(0), client(std::move(principal)), std::move(text), reply);
    return {reply, running};
  }
  Asked legacy(const std::shared_ptr<Session>& session, std::string_view method, std::string_view params = "{}",
               policy::Principal principal = admin()) {
    return send_legacy(session, legacy_text(method, params), std::move(principal));
  }
  std::shared_ptr<Session> open(std::string_view capabilities = "{}", policy::Principal principal = admin(),
                                std::string_view version = "2025-11-25") {
    auto session = core->open_session(client(principal));
    EXPECT_NE(session, nullptr);
    Asked initialize = legacy(session, "initialize",
                              R"({"protocolVersion":")" + std::string(version) + R"(","capabilities":)" +
                                  std::string(capabilities) + R"(,"clientInfo":{"name":"test","version":"1"}})",
                              principal);
    EXPECT_NE(initialize.reply->answer(), "");
    return session;
  }

  static calls::CallResult success(std::string body) {
    calls::CallResult result;
    result.outcome = protocol::Outcome::success;
    result.body = std::move(body);
    return result;
  }
  static calls::CallResult refused(std::string reason, const std::string& message) {
    calls::CallResult result;
    result.outcome = protocol::Outcome::denied;
    result.reason = std::move(reason);
    result.by_gateway = true;
    result.is_error = true;
    result.body = R"({"code":-32603,"message":)" + json::encode_string(message) + "}";
    return result;
  }
  static std::vector<std::string> names(const boost::json::value& result, std::string_view member,
                                        std::string_view key = "name") {
    std::vector<std::string> all;
    for (const boost::json::value& each : result.at(member).as_array())
      all.emplace_back(each.at(key).as_string());
    return all;
  }

  ManualClock clock;
  net::Runtime runtime{2};
  FakeFleet fleet;
  FakeFunnel funnel;
  std::unique_ptr<calls::FanOuts> fan_outs;
  FakeUpstreams upstreams;
  FakeApprovals approvals;
  FakeLog log;
  config::GatewayConfig config;
  bool with_approvals = true;
  std::function<Result<audit::Page>(const audit::Query&)> read_audit = [](const audit::Query&) {
    return audit::Page();
  };
  std::shared_ptr<Core> core;
};

}  // namespace hive::mcp_surface::test
