// Arguments of anybody, and patterns of scopes: deciding and explaining agree, and no agent out of scope and no strict
// command gets through that Boost.JSON reads out of the same text.
#include <memory>
#include <string>

#include <boost/json/error.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "crypto/wildcard.h"
#include "fuzz_target.h"
#include "gateway/policy/policy.h"
#include "gateway/policy/scope.h"
#include "protocol/json.h"

namespace {

using namespace hive;
using protocol::Tier;

constexpr std::string_view agent_in_scope = "edge-1";

std::shared_ptr<const policy::Policy> make_policy() {
  config::GatewayConfig config;
  config.source_path = "gateway.json";
  config.agent_tags = {{"edge-2", {"lab"}}};
  config.risk_tiers = {{"run_command", "read"}, {"run_command:chaos.sh", "admin"}};
  config.require_approval_tiers = {"admin"};
  return policy::make_policy(config, system_clock());
}

policy::Principal scoped_principal() {
  auto grant = std::make_shared<policy::Grant>();
  grant->kind = policy::CredentialKind::scoped_token;
  grant->scope = policy::Scope{{std::string(agent_in_scope)}, {"lab"}, {"run_*"}, "scoped_tokens[0]"};
  return {"token:0123456789ab", policy::Role::operator_, grant};
}

bool in_scope(const boost::json::value& name) {
  return name.is_string() && (name.get_string() == "edge-1" || name.get_string() == "edge-2");
}

// Whether every agent that the object names is in scope.
bool names_only_what_is_in_scope(const boost::json::object& arguments) {
  for (const char* key : {"agent", "agent_id", "agents", "agent_ids"}) {
    const boost::json::value* member = arguments.if_contains(key);
    if (member == nullptr || member->is_null()) continue;
    if (const boost::json::array* list = member->if_array()) {
      for (const boost::json::value& element : *list) {
        if (!in_scope(element)) return false;
      }
    } else if (!in_scope(*member)) {
      return false;
    }
  }
  const boost::json::value* all = arguments.if_contains("all_agents");
  return all == nullptr || all->is_null() || (all->is_bool() && !all->get_bool());
}

void check_arguments(std::string_view arguments) {
  static const std::shared_ptr<const policy::Policy> policy = make_policy();
  static const policy::Principal principal = scoped_principal();
  Tier tier = policy->tier_of("run_command", arguments);
  CHECK(policy->explain_tier("run_command", arguments).tier == tier);
  CHECK(policy->tier_of("get_metrics", arguments) == Tier::read);
  policy::Question question{principal, agent_in_scope, "run_command", arguments, tier};
  policy::Decision scope = policy->check_scope(question);
  CHECK(scope.allowed() == scope.reason.empty());
  CHECK(scope.message.size() < 1000 && !scope.message.contains('\n'));
  auto explained = policy->explain(question);
  CHECK(explained[1].decision.verdict == scope.verdict);
  CHECK(!explained[1].decision.rule.empty());

  if (!json::parse_object(arguments, {.max_bytes = arguments.size()})) {
    CHECK(tier == Tier::admin);
    return;
  }
  boost::json::parse_options options;
  options.max_depth = 65;
  boost::system::error_code error;
  boost::json::value value =
      boost::json::parse(boost::json::string_view(arguments.data(), arguments.size()), error, {}, options);
  if (error) return;  // a number that no machine type holds
  const boost::json::object& object = value.get_object();
  // Lists beyond a bound are refused whatever they hold.
  if (!names_only_what_is_in_scope(object)) CHECK(!scope.allowed());
  if (names_only_what_is_in_scope(object) && arguments.size() < 2048) CHECK(scope.allowed());
  const boost::json::value* name = object.if_contains("name");
  bool is_strict = name != nullptr && (!name->is_string() || name->get_string() == "chaos.sh");
  CHECK((tier == Tier::admin) == is_strict);
}

void check_glob(std::string_view text) {
  std::size_t line = text.find('\n');
  if (line == std::string_view::npos || text.size() > 512) return;
  std::string_view pattern = text.substr(0, line);
  std::string_view name = text.substr(line + 1);
  if (pattern.contains('?')) return;  // a wildcard of OpenSSH and none of ours
  CHECK(policy::glob_matches(pattern, name) == crypto::wildcard_matches(pattern, name));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzz::as_text(data, size);
  check_arguments(text);
  check_glob(text);
  return 0;
}
