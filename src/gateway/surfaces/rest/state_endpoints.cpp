#include "gateway/surfaces/rest/agent_json.h"
#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/fleet_query.h"
#include "gateway/surfaces/rest/object_writer.h"
#include "gateway/surfaces/rest/upstream_json.h"
#include "protocol/json.h"

namespace hive::rest {

namespace {

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
  const policy::Policy& policy = *context->settings->policy;
  Result<FleetQuery> query = FleetQuery::parse(
      [&](std::string_view name) { return context->request->query_parameter(name); }, *context->settings->config);
  if (!query) return context->refuse({400, "invalid_query", query.error().message});
  fleet::SnapshotPointer fleet = context->services->dependencies.fleet.snapshot();
  FleetQuery::Page page = query->page_of(
      *fleet, [&](const fleet::AgentStatus& agent) { return policy.reaches(context->principal, agent.id); });
  std::string body = R"({"agents":[)";
  for (const fleet::AgentPointer& agent : page.agents) {
    if (!body.ends_with('[')) body += ',';
    append_status(body, *agent, query->tags_of(agent->id));
  }
  body += R"(],"upstreams":[)";
  if (const upstreams::Upstreams* servers = context->services->dependencies.upstreams; servers != nullptr) {
    for (const upstreams::UpstreamStatus& status : servers->statuses()) {
      if (policy.reaches(context->principal, status.name)) append_upstream(body, status);
    }
  }
  body += ']';
  ObjectWriter object(body);
  object.raw("counts", page.counts.json()).number("pending_approvals", pending_approvals(*context));
  if (!page.next_cursor.empty()) object.text("next_cursor", page.next_cursor);
  append_gateway(object, *context);
  context->respond_json(body + "}\n");
}

}  // namespace hive::rest
