#include "gateway/policy/model.h"

#include <algorithm>

#include "gateway/policy/credentials.h"

namespace hive::policy::model {

namespace {

using Names = std::vector<std::string>;

const Names agents = {"a", "b", "ab", "ba", "aab", "edge-1", "edge-2"};
const Names tags_there_are = {"lab", "prod", "la", "a"};
const Names commands = {"uptime", "chaos.sh", "ls", ""};
const Names tiers_there_are = {"read", "write", "admin"};
const Names roles = {"read-only", "operator", "operator", "admin"};
const Names people = {"", "ann", "bob", "ANN", "carol"};
// What the table of built-in tools says; the last two are not in it.
const std::map<std::string, std::string> builtin = {{"get_metrics", "read"}, {"run_command", "write"},
                                                    {"read_logs", "read"},   {"service_control", "write"},
                                                    {"ask", "write"},        {"name", "write"}};

std::string random_pattern(Random& random, const Names& names) {
  if (random.one_in(6)) return "*";
  std::string text = random.of(names);
  // Stars in the place of characters, or between them.
  while (random.one_in(2)) {
    std::size_t at = random.below(text.size() + 1);
    if (at < text.size() && random.one_in(2)) {
      text[at] = '*';
    } else {
      text.insert(at, "*");
    }
  }
  return text;
}

Names random_patterns(Random& random, const Names& names, std::size_t least) {
  Names patterns;
  for (std::size_t count = least + random.below(3); count > 0; --count)
    patterns.push_back(random_pattern(random, names));
  return patterns;
}

Names tool_names() {
  Names names;
  for (const auto& [name, tier] : builtin)
    names.push_back(name);
  return names;
}

// By a table of which prefixes match which, instead of by pieces.
bool matches(const std::string& pattern, const std::string& name) {
  std::vector<std::vector<bool>> table(pattern.size() + 1, std::vector<bool>(name.size() + 1, false));
  table[0][0] = true;
  for (std::size_t p = 1; p <= pattern.size(); ++p) {
    for (std::size_t n = 0; n <= name.size(); ++n) {
      if (pattern[p - 1] == '*') {
        table[p][n] = table[p - 1][n] || (n > 0 && table[p][n - 1]);
      } else {
        table[p][n] = n > 0 && table[p - 1][n - 1] && pattern[p - 1] == name[n - 1];
      }
    }
  }
  return table[pattern.size()][name.size()];
}

bool any_matches(const Names& patterns, const std::string& name) {
  bool found = false;
  for (const std::string& pattern : patterns)
    found = found || matches(pattern, name);
  return found;
}

bool holds_agent(const World& world, const Token& token, const std::string& agent) {
  if (agent.empty()) return false;
  if (any_matches(token.agents, agent)) return true;
  auto tags = world.tags.find(agent);
  if (tags == world.tags.end()) return false;
  for (const std::string& tag : tags->second) {
    if (any_matches(token.tags, tag)) return true;
  }
  return false;
}

std::string json_string(Random& random, const std::string& text) {
  std::string json = "\"";
  for (char c : text) {
    if (random.one_in(8)) {
      json += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      json += c;
    }
  }
  return json + "\"";
}

void add_naming_member(Random& random, Arguments& arguments, const char* key, Names& members) {
  auto name = [&] { return random.one_in(12) ? std::string() : random.of(agents); };
  std::string value;
  switch (random.below(8)) {
    case 0:
      value = "null";
      break;
    case 1:
      value = random.one_in(2) ? "17" : R"({"id":"a"})";
      arguments.unclear_agents = true;
      break;
    case 2:
      value = R"(["a",[]])";
      arguments.unclear_agents = true;
      break;
    case 3:
    case 4: {
      value = "[";
      for (std::size_t count = random.below(3); count > 0; --count) {
        arguments.named_agents.push_back(name());
        value += (value == "[" ? "" : ",") + json_string(random, arguments.named_agents.back());
      }
      value += "]";
      break;
    }
    default:
      arguments.named_agents.push_back(name());
      value = json_string(random, arguments.named_agents.back());
  }
  members.push_back(json_string(random, key) + ":" + value);
}

Arguments random_arguments(Random& random) {
  Arguments arguments;
  Names members;
  for (const char* key : {"agent", "agent_id", "agents", "agent_ids"}) {
    if (random.one_in(8)) add_naming_member(random, arguments, key, members);
  }
  if (random.one_in(10)) {
    bool is_false = random.one_in(2);
    members.push_back(json_string(random, "all_agents") + (is_false ? ":false" : ":true"));
    arguments.all_agents = !is_false;
  }
  if (!random.one_in(4)) {
    arguments.unclear_command = random.one_in(10);
    if (!arguments.unclear_command) arguments.command = random.of(commands);
    members.push_back(json_string(random, "name") + ":" +
                      (arguments.unclear_command ? "[\"uptime\"]" : json_string(random, *arguments.command)));
  }
  if (random.one_in(3)) members.push_back(R"("args":["agent","name",{"agent":"b","name":"chaos.sh"}])");
  std::string text;
  while (!members.empty()) {
    std::size_t next = random.below(members.size());
    text += (text.empty() ? "" : ",") + members[next];
    members.erase(members.begin() + static_cast<std::ptrdiff_t>(next));
  }
  arguments.json = "{" + text + "}";
  return arguments;
}

Token random_token(Random& random, std::size_t number, WallTime now) {
  Token token;
  token.text = fmt::format("token-{}", number);
  token.role = random.of(roles);
  token.identity = random.of(people);
  token.scoped = random.one_in(2);
  if (!token.scoped) return token;
  token.agents = random_patterns(random, agents, 0);
  token.tags = random_patterns(random, tags_there_are, token.agents.empty() ? 1 : 0);
  token.tools = random_patterns(random, tool_names(), 1);
  if (random.one_in(4)) token.expires_at = now + std::chrono::seconds(static_cast<int>(random.below(4)) * 30 - 30);
  return token;
}

}  // namespace

World random_world(Random& random, WallTime now) {
  World world;
  for (std::size_t count = 1 + random.below(6), i = 0; i < count; ++i)
    world.tokens.push_back(random_token(random, i, now));
  for (const std::string& agent : agents) {
    for (const std::string& tag : tags_there_are) {
      if (random.one_in(4)) world.tags[agent].push_back(tag);
    }
  }
  for (const auto& [tool, tier] : builtin) {
    if (random.one_in(4)) world.tiers[tool] = random.of(tiers_there_are);
  }
  for (const std::string& command : commands) {
    if (random.one_in(4)) world.tiers["run_command:" + command] = random.of(tiers_there_are);
  }
  for (const std::string& tier : tiers_there_are) {
    if (random.one_in(4)) world.asking.push_back(tier);
    if (random.one_in(3)) world.groups_needed[tier] = {random.of<std::string>({"ops", "security"})};
  }
  world.members = {{"ops", {random.of(people)}}, {"security", {random.of(people), random.of(people)}}};
  world.rate_limit = random.one_in(2) ? 0 : static_cast<int>(1 + random.below(3));
  world.hashed_tokens = random.one_in(2);
  return world;
}

Call random_call(Random& random, const World& world) {
  Call call;
  if (random.one_in(12)) {
    call.header = random.of<std::string>({"Bearer token", "Bearer token-00", "Basic token-0", "token-0", "Bearer "});
  } else {
    call.token = &random.of(world.tokens);
    call.header = random.of<std::string>({"Bearer ", "bearer ", "BEARER  "}) + call.token->text;
  }
  call.agent = random.of(agents);
  call.tool = random.of(tool_names());
  if (random.one_in(3)) call.tool = "run_command";
  call.arguments = random_arguments(random);
  return call;
}

config::GatewayConfig World::configuration() const {
  config::GatewayConfig config;
  config.source_path = "gateway.json";
  for (const Token& token : tokens) {
    config::StaticToken written =
        static_token(hashed_tokens ? hashed(token.text) : token.text, token.role, token.identity);
    if (token.scoped) {
      config.scoped_tokens.push_back({written, token.agents, token.tags, token.tools, token.expires_at});
    } else {
      config.tokens.push_back(written);
    }
  }
  config.agent_tags = tags;
  config.risk_tiers = tiers;
  config.require_approval_tiers = asking;
  for (const auto& [tier, groups] : groups_needed)
    config.approvals_required[tier] = {1, groups};
  config.approval_groups = members;
  config.rate_limit_per_minute = rate_limit;
  return config;
}

std::string tier_of(const World& world, const Call& call) {
  auto configured = world.tiers.find(call.tool);
  std::string tier = configured == world.tiers.end() ? builtin.at(call.tool) : configured->second;
  if (call.tool != "run_command") return tier;
  if (call.arguments.unclear_command) {
    for (const auto& [name, rule] : world.tiers) {
      bool is_command = name.starts_with("run_command:");
      if (is_command && (rule == "admin" || tier == "read")) tier = rule;
    }
    return tier;
  }
  if (!call.arguments.command) return tier;
  auto rule = world.tiers.find("run_command:" + *call.arguments.command);
  return rule == world.tiers.end() ? tier : rule->second;
}

bool refused_by_role(const Token& token) {
  return token.role == "read-only";
}

bool refused_by_scope(const World& world, const Token& token, const Call& call) {
  if (!token.scoped) return false;
  if (!holds_agent(world, token, call.agent) || !any_matches(token.tools, call.tool)) return true;
  // A name that no agent of this world has: who holds it by name holds them all.
  if (any_matches(token.agents, "\x01")) return false;
  if (call.arguments.unclear_agents || call.arguments.all_agents) return true;
  for (const std::string& agent : call.arguments.named_agents) {
    if (!holds_agent(world, token, agent)) return true;
  }
  return false;
}

bool waits(const World& world, const std::string& tier) {
  return std::ranges::count(world.asking, tier) > 0;
}

bool refused_by_rate(const World& world, const History& history, const Call& call, SteadyTime now) {
  if (world.rate_limit == 0) return false;
  auto accepted = history.find({call.token->text, call.agent, call.tool});
  if (accepted == history.end()) return false;
  int recent = 0;
  for (SteadyTime time : accepted->second)
    recent += now - time < std::chrono::minutes(1) ? 1 : 0;
  return recent >= world.rate_limit;
}

std::string refusal_of_approver(const World& world, const Token& approver, const Token& requester, const Call& call) {
  if (approver.role != "admin") return "role";
  bool same_person = approver.text == requester.text;
  if (!approver.identity.empty() && !requester.identity.empty()) {
    bool both_are_ann = (approver.identity == "ann" || approver.identity == "ANN") &&
                        (requester.identity == "ann" || requester.identity == "ANN");
    same_person = same_person || both_are_ann || approver.identity == requester.identity;
  }
  if (same_person) return "own_request";
  if (refused_by_scope(world, approver, call)) return "scope";
  auto needed = world.groups_needed.find(tier_of(world, call));
  if (needed == world.groups_needed.end()) return "";
  for (const std::string& group : needed->second) {
    const Names& members = world.members.at(group);
    if (!approver.identity.empty() && std::ranges::count(members, approver.identity) > 0) return "";
  }
  return "group";
}

}  // namespace hive::policy::model
