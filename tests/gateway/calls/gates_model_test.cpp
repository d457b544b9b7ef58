#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "gateway/calls/hive_fixture.h"

// A second description of the gates, as short as it can be, held against the real ones: a call reaches its agent
// exactly when the model says so, whichever surface sent it.
namespace hive::calls {
namespace {

struct ModelCall {
  std::string identity;
  policy::Role role = policy::Role::operator_;
  std::optional<policy::Scope> scope;
  std::string agent;
  std::string tool;
  std::string command;
};

/// Names with a star at their end, or none.
bool covers(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : pattern == name;
  });
}

class Model {
 public:
  explicit Model(config::GatewayConfig config) : config_(std::move(config)) {}

  std::string tier_of(const ModelCall& call) const {
    if (call.tool == "run_command") {
      auto command = config_.risk_tiers.find("run_command:" + call.command);
      if (command != config_.risk_tiers.end()) return command->second;
    }
    auto tool = config_.risk_tiers.find(call.tool);
    if (tool != config_.risk_tiers.end()) return tool->second;
    static const std::set<std::string> reading = {"get_metrics", "read_logs"};
    return reading.contains(call.tool) ? "read" : "write";
  }

  /// "" if the call is sent, otherwise why not.
  std::string ask(const ModelCall& call) {
    if (call.role == policy::Role::read_only) return "role";
    if (call.scope && !(in_agents(call) && covers(call.scope->tools, call.tool))) return "scope";
    int& used = used_[call.identity + " " + call.agent + " " + call.tool];
    if (config_.rate_limit_per_minute > 0 && used >= config_.rate_limit_per_minute) return "rate_limited";
    ++used;
    return std::ranges::find(config_.require_approval_tiers, tier_of(call)) == config_.require_approval_tiers.end()
               ? ""
               : "approval_required";
  }

 private:
  bool in_agents(const ModelCall& call) const {
    if (covers(call.scope->agents, call.agent)) return true;
    auto tags = config_.agent_tags.find(call.agent);
    return tags != config_.agent_tags.end() &&
           std::ranges::any_of(tags->second, [&](const std::string& tag) { return covers(call.scope->tags, tag); });
  }

  config::GatewayConfig config_;
  std::map<std::string, int> used_;
};

class GatesModelTest : public test::HiveFixture {
 protected:
  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[random_() % choices.size()];
  }
  bool sometimes(unsigned one_in) { return random_() % one_in == 0; }

  config::GatewayConfig random_config() {
    const std::vector<std::string> tiers = {"read", "write", "admin"};
    config::GatewayConfig config;
    config.source_path = "gateway.json";
    for (const char* name :
         {"run_command", "get_metrics", "strange_tool", "run_command:uptime", "run_command:reboot"}) {
      if (sometimes(3)) config.risk_tiers[name] = one_of(tiers);
    }
    for (const std::string& tier : tiers) {
      if (sometimes(4)) config.require_approval_tiers.push_back(tier);
    }
    config.rate_limit_per_minute = static_cast<int>(random_() % 4);
    if (sometimes(2)) config.agent_tags["edge-1"] = {"prod", "eu"};
    if (sometimes(2)) config.agent_tags["edge-2"] = {"test"};
    return config;
  }

  std::vector<std::string> some_of(const std::vector<std::string>& names) {
    std::vector<std::string> chosen;
    for (const std::string& name : names) {
      if (sometimes(3)) chosen.push_back(name);
    }
    return chosen;
  }

  ModelCall random_call() {
    ModelCall call;
    call.identity = one_of<std::string>({"alice", "bob", "carol"});
    call.role = one_of<policy::Role>({policy::Role::read_only, policy::Role::operator_, policy::Role::operator_,
                                      policy::Role::operator_, policy::Role::admin});
    if (sometimes(2)) {
      call.scope = policy::Scope{some_of({"edge-1", "edge-2", "edge-*", "e*"}), some_of({"prod", "test", "p*"}),
                                 some_of({"run_command", "get_*", "*"}), "scoped_tokens[0]"};
    }
    call.agent = one_of<std::string>({"edge-1", "edge-2"});
    call.tool = one_of<std::string>({"run_command", "get_metrics", "read_logs", "strange_tool"});
    call.command = one_of<std::string>({"uptime", "reboot", "df"});
    return call;
  }

  std::mt19937 random_{20261130};
};

TEST_F(GatesModelTest, ACallReachesItsAgentExactlyWhenTheModelSaysSoWhicheverSurfaceSentIt) {
  std::map<std::string, std::shared_ptr<net::ssh::FakeLineChannel>> channels;
  for (const char* agent : {"edge-1", "edge-2"})
    channels[agent] = connect(agent);
  std::map<std::string, std::size_t> calls_at;
  for (const auto& [agent, channel] : channels) {
    channel->on_send = [&calls_at, agent = agent](const std::string& line) {
      if (line.find(R"("tools/call")") != std::string::npos) ++calls_at[agent];
    };
  }
  std::map<std::string, int> seen;
  for (int round = 0; round < 300; ++round) {
    config::GatewayConfig config = random_config();
    config.approval_ttl = std::chrono::seconds(30);
    reload(config);
    Model model(config);
    clock_.advance(std::chrono::minutes(2));
    approvals_->sweep();
    settle();
    for (int i = 0; i < 12; ++i) {
      ModelCall drawn = random_call();
      for (Surface surface : all_surfaces()) {
        Call call =
            call_of(person(drawn.identity, drawn.role, drawn.scope), drawn.agent, drawn.tool,
                    fmt::format(R"({{"name":"{}","args":["{}-{}-{}"]}})", drawn.command, round, i, to_string(surface)));
        call.surface = surface;
        std::string expected = model.ask(drawn);
        std::size_t before = calls_at[drawn.agent];
        std::size_t entries = log_.size();
        auto result = run(std::move(call));
        std::size_t sent = calls_at[drawn.agent] - before;
        std::string trace = fmt::format("round {}, call {}, {} of {} on {} by {} over {}", round, i, drawn.tool,
                                        drawn.command, drawn.agent, drawn.identity, to_string(surface));
        EXPECT_EQ(sent, expected.empty() ? 1U : 0U) << trace;
        EXPECT_EQ(result ? result->reason : "", expected) << trace;
        if (expected.empty()) answer(*channels[drawn.agent], "{}");
        EXPECT_GT(log_.size(), entries) << "nothing was recorded: " << trace;
        ++seen[expected];
        if (HasFailure()) return;
      }
    }
  }
  // A model that never says some word proves nothing about it.
  for (const char* reason : {"", "role", "scope", "approval_required", "rate_limited"})
    EXPECT_GT(seen[reason], 100) << reason;
}

}  // namespace
}  // namespace hive::calls
