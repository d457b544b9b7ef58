#include <algorithm>
#include <array>

#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/route.h"

namespace hive::rest {

namespace {

using policy::Role;

constexpr RoleSet everyone = {Role::admin, Role::operator_, Role::read_only};
constexpr RoleSet operators = {Role::admin, Role::operator_};
constexpr RoleSet admins = {Role::admin};

constexpr std::array<QueryParameter, 4> fleet_parameters = {{
    {"status", "online or stale; anything else means all"},
    {"tag", "agents with this tag (agent_tags)"},
    {"os", "part of the name of the operating system, whatever its case"},
    {"agent", "the agent whose history is wanted; does not filter"},
}};

constexpr std::array<QueryParameter, 10> audit_parameters = {{
    {"actor", "the principal, exactly"},
    {"agent", "the agent, exactly"},
    {"action", "the action, exactly"},
    {"tool", "the tool without the agent's prefix, exactly"},
    {"call_id", "the intent and the outcome of one call"},
    {"outcome", "success, denied, failure, cancelled, expired or unknown"},
    {"since", "RFC 3339 in UTC, or the beginning of one"},
    {"until", "RFC 3339 in UTC, or the beginning of one; this moment included"},
    {"limit", "entries to return: 1 to 1000, 200 unless given"},
    {"before", "entries older than this sequence number: next_before of the previous page"},
}};

constexpr std::string_view call_schema =
    R"({"type":"object","required":["name"],"additionalProperties":false,"properties":{)"
    R"("name":{"type":"string","description":"AGENT__TOOL, as /api/tools lists it"},)"
    R"("arguments":{"type":["object","null"],"description":"the arguments of the tool"},)"
    R"("timeout_ms":{"type":"integer","minimum":1,"description":"how long the call may take; without it the gateway's default"}}})";

constexpr std::array table = {
    Route{.method = "GET",
          .path = "/healthz",
          .is_public = true,
          .handler = get_health,
          .summary = "Whether the process answers"},
    Route{.method = "GET",
          .path = "/readyz",
          .is_public = true,
          .handler = get_readiness,
          .summary = "Whether the gateway can do its work"},
    Route{.method = "GET",
          .path = "/api/version",
          .roles = everyone,
          .handler = get_version,
          .summary = "The version of the gateway"},
    Route{.method = "GET",
          .path = "/api/whoami",
          .roles = everyone,
          .handler = get_whoami,
          .summary = "Who the credential belongs to, and the gateway's time"},
    Route{.method = "GET",
          .path = "/api/status",
          .roles = everyone,
          .handler = get_status,
          .summary = "The agents and the gateway's own state"},
    Route{.method = "GET",
          .path = "/api/fleet",
          .roles = everyone,
          .handler = get_fleet,
          .summary = "The agents with tags and metrics",
          .parameters = fleet_parameters},
    Route{.method = "GET",
          .path = "/api/tools",
          .roles = everyone,
          .handler = get_tools,
          .summary = "The tools of all agents that are online"},
    Route{.method = "POST",
          .path = "/api/call",
          .roles = operators,
          .handler = post_call,
          .summary = "Calls a tool; with Accept: text/event-stream its output arrives while it runs",
          .request_schema = call_schema,
          .role_gate = RoleGate::funnel},
    Route{.method = "GET",
          .path = "/api/audit",
          .roles = admins,
          .handler = get_audit,
          .summary = "The audit log, newest entries first",
          .parameters = audit_parameters},
    Route{.method = "GET",
          .path = "/api/openapi.json",
          .roles = everyone,
          .handler = get_openapi,
          .summary = "This description"},
};

}  // namespace

std::span<const Route> routes() {
  return table;
}

const Route* find_route(std::string_view method, std::string_view path) {
  if (method == "HEAD") method = "GET";
  const auto* found =
      std::ranges::find_if(table, [&](const Route& route) { return route.path == path && route.method == method; });
  return found == table.end() ? nullptr : found;
}

std::string allowed_methods(std::string_view path) {
  std::string allowed;
  for (const Route& route : table) {
    if (route.path != path) continue;
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method;
    if (route.method == "GET") allowed += ", HEAD";
  }
  if (!allowed.empty()) allowed += ", OPTIONS";
  return allowed;
}

}  // namespace hive::rest
