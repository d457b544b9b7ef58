#include "gateway/calls/fan_out_targets.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "base/strings.h"
#include "gateway/calls/results.h"
#include "gateway/policy/scope.h"

namespace hive::calls {

namespace {

// Every agent is held against every one of them.
constexpr std::size_t max_patterns = 256;

class Resolver {
 public:
  Resolver(const fleet::Fleet& fleet, const policy::Policy& policy, const FanOutRequest& request)
      : fleet_(fleet), policy_(policy), request_(request) {}

  std::expected<ResolvedTargets, CallResult> resolve() {
    const FanOutTargets& targets = request_.targets;
    if (targets.all && !(targets.agents.empty() && targets.tags.empty())) {
      return refuse("invalid_targets", "all stands alone: leave out agents and tags, or all");
    }
    if (!targets.all && targets.agents.empty() && targets.tags.empty()) {
      return refuse("no_target", "no agent is named; give agents, tags or all");
    }
    if (targets.agents.size() > FanOuts::max_agents) return refuse_number(targets.agents.size());
    if (auto named = take_names(); !named) return std::unexpected(std::move(named).error());
    if (targets.all || !globs_.empty() || !targets.tags.empty()) take_matches();
    if (std::string unmatched = unmatched_pattern(); !unmatched.empty()) {
      return refuse("no_target", fmt::format("no agent that this credential reaches matches {}", unmatched));
    }
    if (resolved_.agents.size() > FanOuts::max_agents) return refuse_number(resolved_.agents.size());
    if (!resolved_.agents.empty()) return std::move(resolved_);
    return refuse("no_target",
                  resolved_.left_out == 0
                      ? std::string("there is no agent that this credential reaches with this tool")
                      : fmt::format("none of the {} agents is online; ask for offline ones as well to wait "
                                    "for them or to see each",
                                    resolved_.left_out));
  }

 private:
  struct Pattern {
    std::string_view text;
    bool matched = false;
  };

  static std::unexpected<CallResult> refuse(std::string reason, std::string_view message) {
    return std::unexpected(refusal(std::move(reason), message));
  }
  static std::unexpected<CallResult> refuse_number(std::size_t number) {
    return refuse("too_many_agents",
                  fmt::format("{} agents are meant, and one request may be for {}", number, FanOuts::max_agents));
  }

  std::expected<void, CallResult> take_names() {
    const std::vector<std::string>& names = request_.targets.agents;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].contains('*')) {
        globs_.push_back({.text = names[i]});
        continue;
      }
      if (auto valid = check_agent_id(names[i]); !valid) {
        return refuse("invalid_targets", fmt::format("agents[{}]: {}", i, valid.error().message));
      }
      if (seen_.insert(names[i]).second) resolved_.agents.push_back(names[i]);
    }
    for (const std::string& tag : request_.targets.tags)
      tags_.push_back({.text = tag});
    if (globs_.size() + tags_.size() > max_patterns) {
      return refuse("invalid_targets", fmt::format("more than {} globs and tags", max_patterns));
    }
    return {};
  }

  void take_matches() {
    bool with_offline = request_.targets.with_offline || request_.wait_for_agent.count() > 0;
    fleet::SnapshotPointer snapshot = fleet_.snapshot();
    for (const fleet::AgentPointer& each : snapshot->agents) {
      const fleet::AgentStatus& agent = *each;
      if (!policy_.reaches(request_.principal, agent.id, request_.tool) || !is_meant(agent.id)) continue;
      if (seen_.contains(agent.id)) continue;
      if (agent.online || with_offline) {
        resolved_.agents.push_back(agent.id);
      } else {
        ++resolved_.left_out;
      }
    }
  }

  // Tries every pattern, so that each is known to have matched.
  bool is_meant(std::string_view agent) {
    bool is_meant = request_.targets.all;
    for (Pattern& glob : globs_) {
      if (!policy::glob_matches(glob.text, agent)) continue;
      glob.matched = true;
      is_meant = true;
    }
    if (tags_.empty()) return is_meant;
    for (const std::string& tag : policy_.tags_of(agent)) {
      for (Pattern& pattern : tags_) {
        if (!policy::glob_matches(pattern.text, tag)) continue;
        pattern.matched = true;
        is_meant = true;
      }
    }
    return is_meant;
  }

  [[nodiscard]] std::string unmatched_pattern() const {
    for (const Pattern& glob : globs_)
      if (!glob.matched) return quote(glob.text);
    for (const Pattern& tag : tags_)
      if (!tag.matched) return "the tag " + quote(tag.text);
    return "";
  }

  const fleet::Fleet& fleet_;
  const policy::Policy& policy_;
  const FanOutRequest& request_;
  std::vector<Pattern> globs_;
  std::vector<Pattern> tags_;
  std::unordered_set<std::string_view> seen_;  // views of the request
  ResolvedTargets resolved_;
};

}  // namespace

std::expected<ResolvedTargets, CallResult> resolve_targets(const fleet::Fleet& fleet, const policy::Policy& policy,
                                                           const FanOutRequest& request) {
  return Resolver(fleet, policy, request).resolve();
}

}  // namespace hive::calls
