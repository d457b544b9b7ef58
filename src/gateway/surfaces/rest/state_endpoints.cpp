#include <algorithm>

#include "base/strings.h"
#include "gateway/surfaces/rest/access_refusal.h"
#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/object_writer.h"
#include "gateway/surfaces/rest/upstream_json.h"
#include "net/http/ascii.h"
#include "protocol/json.h"

namespace hive::rest {

namespace {

std::string os_text(const fleet::AgentStatus& agent) {
  return agent.os_version.empty() ? "Loading..." : agent.os_version;
}

void append_own_fields(ObjectWriter& object, const fleet::AgentStatus& agent) {
  object.text("agent_version", agent.agent_version)
      .text("software", agent.software)
      .text("key_fingerprint", agent.key_fingerprint)
      .number("calls_in_flight", agent.calls_in_flight())
      .number("draining_sessions", agent.draining_sessions());
  if (agent.connected_at != WallTime()) object.text("connected_at", format_rfc3339(agent.connected_at));
}

void append_status(std::string& out, const fleet::AgentStatus& agent) {
  out += '{';
  ObjectWriter object(out);
  object.text("id", agent.id)
      .text("ip", agent.address)
      .text("os_version", os_text(agent))
      .texts("running_services", agent.running_services)
      .texts("open_ports", agent.open_ports)
      .boolean("online", agent.online);
  if (agent.seen() != WallTime()) object.text("last_seen", format_rfc3339(agent.seen()));
  append_own_fields(object, agent);
  out += '}';
}

void append_gateway(ObjectWriter& object, const Context& context) {
  const Services& services = *context.services;
  std::string gateway = "{";
  ObjectWriter(gateway)
      .text("id", context.settings->config->gateway_id)
      .text("version", HIVE_VERSION)
      .text("started_at", format_rfc3339(services.started_at))
      .text("time", format_rfc3339(services.dependencies.clock.wall_now()))
      .number("calls_in_flight", services.dependencies.funnel.in_flight());
  object.raw("gateway", gateway + "}");
  std::string audit = "{";
  ObjectWriter details(audit);
  const audit::Log* log = services.dependencies.log;
  details.boolean("enabled", log != nullptr);
  if (log != nullptr) {
    Result<void> health = log->health();
    details.boolean("healthy", health.has_value()).number("entries", log->size());
    if (!health) details.text("reason", health.error().message);
  }
  object.raw("audit", audit + "}");
}

/// The part of the fleet that a credential reaches; null: all of it.
std::string scope_json(const policy::Scope* scope) {
  if (scope == nullptr) return "null";
  std::string out = "{";
  ObjectWriter(out).texts("agents", scope->agents).texts("tags", scope->tags).texts("tools", scope->tools);
  return out + "}";
}

/// How many requests wait that the caller may see.
std::size_t pending_approvals(const Context& context) {
  const calls::Approvals* approvals = context.services->dependencies.approvals;
  if (approvals == nullptr) return 0;
  return approvals->list(context.principal, true).size();
}

using net::http::to_lower;

/// What GET /api/fleet is asked for.
struct FleetQuery {
  std::string status;
  std::string tag;
  std::string os;

  explicit FleetQuery(const net::http::Request& request)
      : status(to_lower(request.query_parameter("status").value_or(""))),
        tag(request.query_parameter("tag").value_or("")),
        os(to_lower(request.query_parameter("os").value_or(""))) {}

  [[nodiscard]] bool admits(const fleet::AgentStatus& agent, const std::vector<std::string>& tags) const {
    if (status == "online" && !agent.online) return false;
    if (status == "stale" && agent.online) return false;
    if (!tag.empty() && std::ranges::find(tags, tag) == tags.end()) return false;
    return os.empty() || to_lower(os_text(agent)).find(os) != std::string::npos;
  }
};

void append_fleet_entry(std::string& out, const fleet::AgentStatus& agent, const std::vector<std::string>& tags,
                        std::string_view gateway_id, bool with_history) {
  out += '{';
  ObjectWriter object(out);
  object.text("id", agent.id)
      .text("ip", agent.address)
      .text("os", os_text(agent))
      .texts("services", agent.running_services)
      .texts("ports", agent.open_ports)
      .texts("tags", tags)
      .boolean("online", agent.online);
  if (agent.seen() != WallTime()) object.text("last_seen", format_rfc3339(agent.seen()));
  object.raw("latest_metrics", "null").number("history_len", 0);
  if (with_history) object.raw("history", "[]");
  object.text("gateway", gateway_id);
  append_own_fields(object, agent);
  out += '}';
}

/// The tool as its agent or server described it, under its full name, with what is known of its tier. What is not an
/// object with a name is left out: no client could call it.
bool append_tool(std::string& out, std::string_view raw, std::string_view full_name, protocol::Tier tier) {
  auto members = json::parse_object(raw, {.max_bytes = raw.size()});
  auto name = members ? json::find(*members, "name") : std::nullopt;
  if (!name) return false;
  auto name_begin = static_cast<std::size_t>(name->data() - raw.data());
  out += raw.substr(0, name_begin);
  json::append_string(out, full_name);
  std::string_view rest = raw.substr(name_begin + name->size());
  rest.remove_suffix(rest.size() - rest.rfind('}'));
  out += rest;
  if (!json::find(*members, "annotations")) {
    out += tier == protocol::Tier::read ? R"(,"annotations":{"readOnlyHint":true})"
                                        : R"(,"annotations":{"readOnlyHint":false,"destructiveHint":true})";
  }
  if (!json::find(*members, "_meta")) {
    out += R"(,"_meta":{"myrmex-hive/tier":")";
    out += protocol::to_string(tier);
    out += "\"}";
  }
  out += '}';
  return true;
}

}  // namespace

void get_health(const ContextPointer& context) {
  context->respond_json("{\"status\":\"ok\"}\n");
}

void get_readiness(const ContextPointer& context) {
  const auto& is_ready = context->services->dependencies.is_ready;
  if (!is_ready || is_ready()) return context->respond_json("{\"status\":\"ready\"}\n");
  net::http::Response response;
  response.status = 503;
  response.body = "{\"status\":\"not-ready\"}\n";
  context->respond(std::move(response));
}

void get_version(const ContextPointer& context) {
  context->respond_json("{\"version\":\"" HIVE_VERSION "\"}\n");
}

void get_whoami(const ContextPointer& context) {
  const policy::Principal& principal = context->principal;
  std::string body = "{";
  ObjectWriter object(body);
  object.text("principal", principal.name)
      .text("identity", principal.identity())
      .text("role", policy::to_string(principal.role));
  if (principal.grant != nullptr) {
    object.text("credential", policy::to_string(principal.grant->kind));
    if (principal.grant->expires_at) object.text("expires_at", format_rfc3339(*principal.grant->expires_at));
  }
  object.raw("scope", scope_json(principal.scope()))
      .text("time", format_rfc3339(context->services->dependencies.clock.wall_now()))
      .text("gateway", context->settings->config->gateway_id)
      .text("version", HIVE_VERSION);
  context->respond_json(body + "}\n");
}

void get_status(const ContextPointer& context) {
  std::string body = R"({"agents":[)";
  fleet::SnapshotPointer snapshot = context->services->dependencies.fleet.snapshot();
  for (const fleet::AgentPointer& agent : snapshot->agents) {
    if (!context->settings->policy->reaches(context->principal, agent->id)) continue;
    if (!body.ends_with('[')) body += ',';
    append_status(body, *agent);
  }
  body += R"(],"upstreams":[)";
  if (const upstreams::Upstreams* servers = context->services->dependencies.upstreams; servers != nullptr) {
    for (const upstreams::UpstreamStatus& status : servers->statuses()) {
      if (context->settings->policy->reaches(context->principal, status.name)) append_upstream(body, status);
    }
  }
  body += ']';
  ObjectWriter object(body);
  object.number("pending_approvals", pending_approvals(*context));
  append_gateway(object, *context);
  context->respond_json(body + "}\n");
}

void get_fleet(const ContextPointer& context) {
  const config::GatewayConfig& config = *context->settings->config;
  static const std::vector<std::string> no_tags;
  FleetQuery query(*context->request);
  const policy::Policy& policy = *context->settings->policy;
  std::string history_of = context->request->query_parameter("agent").value_or("");
  if (!history_of.empty() && !policy.reaches(context->principal, history_of)) {
    return refuse_access(*context, "scope", "GET /api/fleet of agent " + quote(history_of),
                         fmt::format("this credential does not reach the agent {}", quote(history_of)));
  }
  std::string body = "[";
  fleet::SnapshotPointer snapshot = context->services->dependencies.fleet.snapshot();
  for (const fleet::AgentPointer& each : snapshot->agents) {
    const fleet::AgentStatus& agent = *each;
    auto tags = config.agent_tags.find(agent.id);
    const std::vector<std::string>& agent_tags = tags == config.agent_tags.end() ? no_tags : tags->second;
    if (!query.admits(agent, agent_tags) || !policy.reaches(context->principal, agent.id)) continue;
    if (body.size() > 1) body += ',';
    append_fleet_entry(body, agent, agent_tags, config.gateway_id, agent.id == history_of);
  }
  context->respond_json(body + "]\n");
}

void get_tools(const ContextPointer& context) {
  const policy::Policy& policy = *context->settings->policy;
  std::string body = R"({"tools":[)";
  auto add = [&](std::string_view raw, std::string_view full_name, protocol::Tier tier) {
    std::size_t before = body.size();
    if (!body.ends_with('[')) body += ',';
    if (!append_tool(body, raw, full_name, tier)) body.resize(before);
  };
  fleet::SnapshotPointer snapshot = context->services->dependencies.fleet.snapshot();
  for (const fleet::AgentPointer& agent : snapshot->agents) {
    if (agent->tools == nullptr) continue;
    for (const fleet::Tool& tool : *agent->tools) {
      if (!policy.reaches(context->principal, agent->id, tool.name)) continue;
      add(tool.raw, agent->id + "__" + tool.name, policy.tier_of(tool.name, {}));
    }
  }
  if (const upstreams::Upstreams* servers = context->services->dependencies.upstreams; servers != nullptr) {
    std::shared_ptr<const upstreams::Listing> listing = servers->listing();
    for (const upstreams::Item& tool : listing->tools) {
      if (!policy.reaches(context->principal, tool.upstream, tool.name)) continue;
      add(tool.raw, tool.public_name, policy.tier_of_upstream(tool.name));
    }
  }
  context->respond_json(body + "]}\n");
}

}  // namespace hive::rest
