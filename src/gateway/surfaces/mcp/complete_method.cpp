#include <algorithm>
#include <array>

#include "gateway/surfaces/mcp/methods.h"
#include "gateway/surfaces/mcp/own_entries.h"
#include "gateway/surfaces/mcp/server.h"
#include "gateway/surfaces/mcp/upstream_call.h"
#include "protocol/agent_protocol.h"
#include "protocol/json_object.h"

namespace hive::mcp_surface {

namespace {

constexpr std::size_t max_values = 100;  // MCP, Completion Results
constexpr std::size_t max_value_bytes = 4096;

/// What is to be completed.
struct Question {
  std::string type;    ///< "ref/prompt" or "ref/resource"
  std::string target;  ///< the prompt's name, or the URI template
  std::string argument;
  std::string value;
};

std::optional<std::string> text_of(std::string_view raw_object, std::string_view key) {
  auto members = json::parse_object(raw_object, mcp::message_limits);
  auto raw = members ? json::find(*members, key) : std::nullopt;
  return raw ? json::decode_string(*raw) : std::nullopt;
}

std::optional<Question> parse_question(const Exchange& exchange) {
  auto ref = exchange.parameter("ref");
  auto argument = exchange.parameter("argument");
  if (!ref || !argument) return std::nullopt;
  auto type = text_of(*ref, "type");
  if (!type || (*type != "ref/prompt" && *type != "ref/resource")) return std::nullopt;
  auto target = text_of(*ref, *type == "ref/prompt" ? "name" : "uri");
  auto name = text_of(*argument, "name");
  auto value = text_of(*argument, "value");
  if (!target || !name || !value || value->size() > max_value_bytes) return std::nullopt;
  return Question{.type = *type, .target = *target, .argument = *name, .value = *value};
}

// An argument that was filled in before: params.context.arguments.NAME.
std::string context_argument(const Exchange& exchange, std::string_view name) {
  auto context = exchange.parameter("context");
  auto members = context ? json::parse_object(*context, mcp::message_limits) : Result<std::vector<json::Member>>();
  auto arguments = members ? json::find(*members, "arguments") : std::nullopt;
  return arguments ? text_of(*arguments, name).value_or("") : "";
}

void answer_values(Exchange& exchange, std::vector<std::string> values, std::string_view beginning) {
  std::erase_if(values, [&](const std::string& value) { return !value.starts_with(beginning); });
  std::ranges::sort(values);
  std::size_t total = values.size();
  values.resize(std::min(total, max_values));
  std::string completion = json::ObjectText()
                               .texts("values", values)
                               .number("total", static_cast<std::int64_t>(total))
                               .boolean("hasMore", total > values.size())
                               .take();
  exchange.finish(json::ObjectText().raw("completion", completion).take());
}

std::vector<std::string> agents_in_reach(const Server& server, const Exchange& exchange) {
  auto policy = server.policy();
  std::vector<std::string> ids;
  fleet::SnapshotPointer snapshot = server.dependencies.fleet.snapshot();
  for (const fleet::AgentPointer& agent : snapshot->agents)
    if (policy->reaches(exchange.client().principal, agent->id)) ids.push_back(agent->id);
  return ids;
}

std::vector<std::string> services_in_reach(const Server& server, const Exchange& exchange) {
  auto policy = server.policy();
  std::string wanted = context_argument(exchange, "agent");
  std::vector<std::string> services;
  fleet::SnapshotPointer snapshot = server.dependencies.fleet.snapshot();
  for (const fleet::AgentPointer& each : snapshot->agents) {
    const fleet::AgentStatus& agent = *each;
    if ((!wanted.empty() && agent.id != wanted) || !policy->reaches(exchange.client().principal, agent.id)) continue;
    services.insert(services.end(), agent.running_services.begin(), agent.running_services.end());
  }
  std::ranges::sort(services);
  auto repeated = std::ranges::unique(services);
  services.erase(repeated.begin(), repeated.end());
  return services;
}

void complete_own(const Server& server, Exchange& exchange, const Question& question) {
  bool is_agent = (question.type == "ref/prompt" && question.argument == "agent") ||
                  (question.target.starts_with(agents_uri) && question.argument == "id");
  if (is_agent) return answer_values(exchange, agents_in_reach(server, exchange), question.value);
  if (question.target == service_test_prompt && question.argument == "service") {
    return answer_values(exchange, services_in_reach(server, exchange), question.value);
  }
  answer_values(exchange, {}, question.value);
}

}  // namespace

void complete(const std::shared_ptr<Server>& server, const ExchangePointer& exchange) {
  auto question = parse_question(*exchange);
  if (!question) {
    return exchange->fail(protocol::invalid_params_code,
                          "params.ref must be a ref/prompt with a name or a ref/resource with a uri, params.argument "
                          "must have a name and a value");
  }
  bool is_prompt = question->type == "ref/prompt";
  auto catalog = server->catalogs->current();
  auto policy = server->policy();
  std::optional<Entry> entry = catalog->of(is_prompt ? Kind::prompts : Kind::templates).find(question->target);
  if (!entry && !is_prompt) entry = catalog->of(Kind::resources).find(question->target);
  if (!entry || !is_visible(*policy, exchange->client().principal, *entry)) {
    return exchange->fail(protocol::invalid_params_code, "Unknown reference: " + question->target);
  }
  if (entry->owner == Owner::gateway) return complete_own(*server, *exchange, *question);
  std::string name = json::encode_string(entry->own_name);
  std::string ref =
      mcp::with_members(*exchange->parameter("ref"), std::array{mcp::MemberChange{is_prompt ? "name" : "uri", name}});
  json::ObjectText params;
  params.raw("ref", ref).raw("argument", *exchange->parameter("argument"));
  if (auto context = exchange->parameter("context")) params.raw("context", *context);
  call_upstream(server, exchange,
                {.upstream = entry->target,
                 .method = "completion/complete",
                 .name = entry->own_name,
                 .arguments = "{}",
                 .params = params.take()});
}

}  // namespace hive::mcp_surface
