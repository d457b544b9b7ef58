#include "gateway/calls/dry_run.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "base/strings.h"
#include "gateway/calls/funnel_access.h"
#include "gateway/calls/results.h"
#include "protocol/agent_protocol.h"
#include "protocol/json.h"

namespace hive::calls {

using policy::Decision;
using policy::Verdict;

namespace {

constexpr std::string_view tool_with_dry_run = "run_command";
constexpr std::chrono::seconds dry_run_timeout(5);
// Built-in tools that answer every call: no entry of the allowlist admits or refuses them.
constexpr std::array<std::string_view, 3> tools_without_allowlist = {"get_metrics", "get_system_info", "read_logs"};

/// The arguments with "dry_run": true in place of whatever they say; nullopt if they are no object.
std::optional<std::string> as_dry_run(std::string_view arguments) {
  auto members = json::parse_object(arguments, {.max_bytes = arguments.size()});
  if (!members) return std::nullopt;
  std::string text = "{";
  for (const json::Member& member : *members) {
    if (member.key == "dry_run") continue;
    json::append_string(text, member.key);
    text += ':';
    text += member.value;
    text += ',';
  }
  return text + R"("dry_run":true})";
}

/// The text of a tool's answer, for people.
std::string text_of(const CallResult& result) {
  if (result.is_error) return message_of(result.body);
  auto members = json::parse_object(result.body, {.max_bytes = result.body.size()});
  auto content = members ? json::find(*members, "content") : std::nullopt;
  auto blocks = content ? json::parse_array(*content, {.max_bytes = content->size()})
                        : Result<std::vector<std::string_view>>(std::unexpected(Error{}));
  if (!blocks || blocks->empty()) return "";
  auto block = json::parse_object(blocks->front(), {.max_bytes = blocks->front().size()});
  auto text = block ? json::find(*block, "text") : std::nullopt;
  std::string decoded = text ? json::decode_string(*text).value_or("") : "";
  // A refusal says why in the line of the marker; what follows is the output of a command that did not run.
  if (!decoded.starts_with(protocol::rejected_marker)) return decoded;
  std::string_view line = std::string_view(decoded).substr(protocol::rejected_marker.size());
  return std::string(trim(line.substr(0, line.find('\n'))));
}

class Question final : public RunningCall, public std::enable_shared_from_this<Question> {
 public:
  Question(PassageHost& host, net::Worker& worker, Call call, std::move_only_function<void(Explanation)> done)
      : host_(host), worker_(worker), call_(std::move(call)), done_(std::move(done)) {}

  // Nothing runs that could be ended; the dry run has a short deadline.
  void cancel(std::string_view /*reason*/) override {}

  void ask() {
    auto policy = host_.current_policy();
    policy::TierAnswer tier = explain_tier(*policy);
    explanation_.tier = tier.tier;
    explanation_.tier_rule = std::move(tier.rule);
    policy::Question question{call_.principal, call_.agent, call_.tool, call_.arguments, tier.tier};
    explanation_.gates = policy->explain(question);
    policy_ = std::move(policy);
    if (!reaches_agent()) return finish({Verdict::unknown, "not_asked", "an earlier gate refuses the call", "", {}});
    if (call_.target == TargetKind::upstream) return ask_upstream();
    auto agent = host_.fleet().find(call_.agent);
    if (!agent || !agent->online) {
      return finish({Verdict::deny,
                     agent ? "agent_offline" : "agent_unknown",
                     agent ? fleet::offline_text(*agent) : fmt::format("no agent {} is or was connected", call_.agent),
                     "",
                     {}});
    }
    ask_agent(*agent);
  }

 private:
  [[nodiscard]] policy::TierAnswer explain_tier(const policy::Policy& policy) const {
    policy::TierAnswer answer = policy.explain_tier(call_.tool, call_.arguments);
    if (call_.target == TargetKind::agent) return answer;
    protocol::Tier tier = policy.tier_of_upstream(call_.tool);
    // What the built-in table says of a name holds for agents alone.
    if (answer.rule.starts_with("built-in")) {
      return {tier,
              fmt::format("built-in: a tool of a server behind the gateway is of tier {}", protocol::to_string(tier))};
    }
    return {tier, std::move(answer.rule)};
  }

  void ask_upstream() {
    if (host_.upstreams() == nullptr || !host_.upstreams()->has(call_.agent)) {
      return finish({Verdict::deny,
                     "upstream_unknown",
                     fmt::format("there is no server {} behind this gateway", quote(call_.agent)),
                     "",
                     {}});
    }
    finish({Verdict::unknown,
            "no_dry_run",
            fmt::format("the server {} decides when it is called: it has no dry run", call_.agent),
            "",
            {}});
  }

  // Who may not call the agent may not make it think either.
  [[nodiscard]] bool reaches_agent() const {
    return std::ranges::all_of(explanation_.gates, [](const policy::GateAnswer& answer) {
      return answer.gate == "approval" || answer.decision.allowed();
    });
  }

  void ask_agent(const fleet::AgentStatus& agent) {
    if (!agent.has_tool(call_.tool)) {
      return finish(
          {Verdict::deny, "unknown_tool", fmt::format("agent {} lists no tool {}", call_.agent, call_.tool), "", {}});
    }
    if (std::ranges::find(tools_without_allowlist, call_.tool) != tools_without_allowlist.end()) {
      return finish(
          {Verdict::allow, "", "", fmt::format("built-in: {} needs no entry of the allowlist", call_.tool), {}});
    }
    auto arguments = call_.tool == tool_with_dry_run ? as_dry_run(call_.arguments) : std::nullopt;
    if (!arguments) {
      return finish({Verdict::unknown,
                     "no_dry_run",
                     fmt::format("agent {} decides when it is called: {} has no dry run", call_.agent, call_.tool),
                     "",
                     {}});
    }
    // The agent works for a dry run too. These have a count of their own, so that asking takes no call away.
    Decision rate = policy_->check_rate({call_.principal, call_.agent, "dry_run", call_.arguments, explanation_.tier});
    if (!rate.allowed()) {
      rate.verdict = Verdict::unknown;
      return finish(std::move(rate));
    }
    was_sent_ = true;
    fleet::AgentRequest request;
    request.tool = call_.tool;
    request.arguments = *std::move(arguments);
    request.timeout = dry_run_timeout;
    request.done = [self = shared_from_this()](fleet::AgentReply reply) {
      self->on_answer(from_reply(std::move(reply)));
    };
    FunnelAccess::send(host_.fleet(), call_.agent, std::move(request));
  }

  void on_answer(const CallResult& result) {
    Decision decision;
    decision.message = text_of(result);
    decision.rule = fmt::format("allowed_commands of agent {}", call_.agent);
    decision.reason = result.reason;
    switch (result.outcome) {
      case protocol::Outcome::success:
        decision.verdict = Verdict::allow;
        break;
      case protocol::Outcome::denied:
        decision.verdict = Verdict::deny;
        break;
      default:
        decision.verdict = Verdict::unknown;
        break;
    }
    finish(std::move(decision));
  }

  [[nodiscard]] Decision check_audit() const {
    if (explanation_.tier == protocol::Tier::read) {
      return {Verdict::allow, "", "", "built-in: a call of tier read is recorded when it has ended", {}};
    }
    audit::Log* log = host_.log();
    if (log == nullptr) {
      return {Verdict::deny,
              "audit_unavailable",
              "calls of tier write and admin must be recorded first",
              "audit_log_path is not set",
              {}};
    }
    if (Result<void> health = log->health(); !health) {
      return {Verdict::deny, "audit_unavailable", health.error().message, "audit_log_path", {}};
    }
    return {Verdict::allow, "", "", "built-in: a call of tier write or admin is recorded before it is sent", {}};
  }

  void finish(Decision allowlist) {
    explanation_.gates.push_back({"allowlist", std::move(allowlist)});
    explanation_.gates.push_back({"audit", check_audit()});
    explanation_.verdict = Verdict::allow;
    for (Verdict verdict : {Verdict::deny, Verdict::ask, Verdict::unknown}) {
      auto decisive = std::ranges::find_if(explanation_.gates, [verdict](const policy::GateAnswer& answer) {
        return answer.decision.verdict == verdict;
      });
      if (decisive == explanation_.gates.end()) continue;
      explanation_.verdict = verdict;
      explanation_.reason = decisive->decision.reason;
      break;
    }
    record();
    worker_.post([self = shared_from_this()] {
      self->done_(std::move(self->explanation_));
      self->done_ = nullptr;
      self->host_.on_ended(self);
    });
  }

  void record() {
    if (host_.log() == nullptr) return;
    audit::Record entry;
    entry.kind = audit::RecordKind::event;
    entry.action = "explain";
    entry.request_id = call_.request_id;
    entry.principal = call_.principal.name;
    entry.role = policy::to_string(call_.principal.role);
    entry.surface = to_string(call_.surface);
    entry.agent = call_.agent;
    entry.tool = call_.tool;
    entry.arguments = call_.arguments;
    entry.tier = protocol::to_string(explanation_.tier);
    entry.reason = explanation_.reason;
    entry.detail = fmt::format("would be: {}", policy::to_string(explanation_.verdict));
    entry.on_behalf_of = call_.on_behalf_of;
    if (!was_sent_) {
      std::optional<audit::Record> admitted = host_.admit_refusal(std::move(entry));
      if (!admitted) return;
      entry = *std::move(admitted);
    }
    if (auto queued = host_.log()->append(std::move(entry)); !queued) {
      log::error("an event is not recorded", {{"action", "explain"}, {"reason", queued.error().message}});
    }
  }

  PassageHost& host_;
  net::Worker& worker_;
  Call call_;
  std::move_only_function<void(Explanation)> done_;
  Explanation explanation_;
  std::shared_ptr<const policy::Policy> policy_;
  bool was_sent_ = false;  // to the agent
};

}  // namespace

void explain_call(PassageHost& host, net::Worker& worker, Call call, std::move_only_function<void(Explanation)> done) {
  auto question = std::make_shared<Question>(host, worker, std::move(call), std::move(done));
  host.on_started(question);
  question->ask();
}

}  // namespace hive::calls
