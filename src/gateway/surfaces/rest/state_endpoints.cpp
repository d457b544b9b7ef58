#include <limits>
#include <optional>

#include "base/strings.h"
#include "gateway/surfaces/rest/agent_json.h"
#include "gateway/surfaces/rest/endpoints.h"
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

/// Which agents GET /api/status is to show: all of them, or a page of `limit` behind the one that a page ended with.
struct StatusPage {
  std::size_t limit = std::numeric_limits<std::size_t>::max();
  std::string after;

  static Result<StatusPage> parse(const net::http::Request& request) {
    constexpr std::int64_t max_limit = 1000;
    StatusPage page;
    if (auto limit = request.query_parameter("limit")) {
      std::optional<std::int64_t> number = parse_int64(*limit);
      if (!number || *number < 0 || *number > max_limit) {
        return fail(ErrorCode::invalid_argument, "query parameter limit: not a whole number from 0 to {}", max_limit);
      }
      page.limit = static_cast<std::size_t>(*number);
    }
    page.after = request.query_parameter("cursor").value_or("");
    if (!page.after.empty() && !check_agent_id(page.after)) {
      return fail(ErrorCode::invalid_argument, "query parameter cursor: not the next_cursor of a page");
    }
    return page;
  }
};

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
  Result<StatusPage> page = StatusPage::parse(*context->request);
  if (!page) return context->refuse({400, "invalid_query", page.error().message});
  std::string body = R"({"agents":[)";
  AgentCounts counts;
  std::string_view last;
  std::optional<std::string_view> next_cursor;
  std::size_t shown = 0;
  fleet::SnapshotPointer snapshot = context->services->dependencies.fleet.snapshot();
  for (const fleet::AgentPointer& agent : snapshot->agents) {
    if (!context->settings->policy->reaches(context->principal, agent->id)) continue;
    counts.add(*agent);
    if (next_cursor || agent->id <= page->after) continue;
    if (shown == page->limit) {
      next_cursor = last;
      continue;
    }
    if (shown++ > 0) body += ',';
    append_status(body, *agent);
    last = agent->id;
  }
  body += R"(],"upstreams":[)";
  if (const upstreams::Upstreams* servers = context->services->dependencies.upstreams; servers != nullptr) {
    for (const upstreams::UpstreamStatus& status : servers->statuses()) {
      if (context->settings->policy->reaches(context->principal, status.name)) append_upstream(body, status);
    }
  }
  body += ']';
  ObjectWriter object(body);
  object.raw("counts", counts.json()).number("pending_approvals", pending_approvals(*context));
  if (next_cursor) object.text("next_cursor", *next_cursor);
  append_gateway(object, *context);
  context->respond_json(body + "}\n");
}

}  // namespace hive::rest
