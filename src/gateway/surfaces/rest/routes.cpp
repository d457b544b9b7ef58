#include <algorithm>
#include <array>

#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/fan_out_request.h"
#include "gateway/surfaces/rest/route.h"

namespace hive::rest {

namespace {

using policy::Role;

constexpr RoleSet everyone = {Role::admin, Role::operator_, Role::read_only};
constexpr RoleSet operators = {Role::admin, Role::operator_};
constexpr RoleSet admins = {Role::admin};

constexpr std::array<QueryParameter, 3> tools_parameters = {{
    {"agent", "the agent or server whose tools are wanted; * stands for any characters"},
    {"limit", "about how many tools to return: 1 to 10000, always all of an agent; without it, all"},
    {"cursor", "next_cursor of the page before"},
}};

constexpr std::array<QueryParameter, 9> fleet_parameters = {{
    {"status",
     "online, offline, never_connected, flapping, or stale (all that are not online); without limit anything "
     "else means all"},
    {"tag", "agents with this tag (agent_tags)"},
    {"id", "agents whose id matches; * stands for any characters"},
    {"q", "agents with this text in id, address, operating system, version, tags or services, whatever its case"},
    {"sort", "id, address, os, connected_at or offline_since; with - in front the other way round"},
    {"limit", "agents on a page: 1 to 1000; without it the answer is one array of all"},
    {"cursor", "next_cursor of the page before"},
    {"os", "part of the name of the operating system, whatever its case"},
    {"agent", "the agent whose history is wanted; does not filter"},
}};
// Without the history.
constexpr std::size_t status_parameter_count = fleet_parameters.size() - 1;

constexpr std::array<QueryParameter, 13> audit_parameters = {{
    {"principal", "the principal, exactly"},
    {"actor", "the same, as the reference calls it"},
    {"agent", "the agent, exactly"},
    {"action", "the action, exactly"},
    {"tool", "the tool without the agent's prefix, exactly"},
    {"call_id", "the intent and the outcome of one call"},
    {"request_id", "everything that one request did: all calls of a fan-out"},
    {"outcome", "success, denied, failure, cancelled, expired or unknown"},
    {"reason", "the reason code, exactly"},
    {"since", "RFC 3339 in UTC, or the beginning of one"},
    {"until", "RFC 3339 in UTC, or the beginning of one; this moment included"},
    {"limit", "entries to return: 1 to 1000, 200 unless given"},
    {"before", "entries older than this sequence number: next_before of the previous page"},
}};

constexpr std::array<QueryParameter, 1> approvals_parameters = {{
    {"status", "pending: those that wait, which is also what is meant without it; all: those that have ended as well"},
}};

constexpr std::array<QueryParameter, 1> result_parameters = {{
    {"wait_ms", "how long to wait for the call's end: 0 to 30000, 0 unless given"},
}};

constexpr std::string_view decision_schema =
    R"({"type":"object","required":["id","decision"],"additionalProperties":false,"properties":{)"
    R"("id":{"type":"string","pattern":"^[0-9a-f]{32}$"},)"
    R"("decision":{"enum":["approve","reject","withdraw"]},)"
    R"("digest":{"type":"string","pattern":"^[0-9a-f]{64}$","description":"of the request as it was shown; required to approve one whose arguments the list does not show to the end"},)"
    R"("comment":{"type":"string","maxLength":1000}}})";

constexpr std::string_view accept_schema =
    R"({"type":"object","required":["upstream","tool","sha256"],"additionalProperties":false,"properties":{)"
    R"("upstream":{"type":"string"},"tool":{"type":"string","description":"without the prefix"},)"
    R"("sha256":{"type":"string","pattern":"^[0-9a-f]{64}$","description":"current_sha256 of the description that was looked at"}}})";

constexpr std::string_view explain_schema =
    R"({"type":"object","required":["name"],"additionalProperties":false,"properties":{)"
    R"("name":{"type":"string","description":"AGENT__TOOL"},)"
    R"("arguments":{"type":["object","null"],"description":"the arguments of the tool"},)"
    R"("as":{"type":["object","null"],"description":"whose call it would be; for admins","required":["role"],)"
    R"("additionalProperties":false,"properties":{)"
    R"("role":{"enum":["admin","operator","read-only"]},)"
    R"("identity":{"type":"string"},)"
    R"("groups":{"type":"array","items":{"type":"string"}},)"
    R"("agents":{"type":"array","items":{"type":"string"}},)"
    R"("tags":{"type":"array","items":{"type":"string"}},)"
    R"("tools":{"type":"array","items":{"type":"string"}}}}}})";

constexpr std::string_view configuration_schema =
    R"({"type":"object","description":"the whole configuration, as GET shows it; placeholders keep the secrets that they stand for"})";

constexpr std::string_view join_token_schema =
    R"({"type":"object","required":["agent_id"],"additionalProperties":false,"properties":{)"
    R"("agent_id":{"type":"string","description":"1 to 64 characters of A-Z a-z 0-9 _ -, without __; not gateway"},)"
    R"("ttl_seconds":{"type":"integer","minimum":1,"maximum":86400}}})";

constexpr std::string_view enrolment_schema =
    R"({"type":"object","required":["join_token","agent_id","public_key"],"additionalProperties":false,"properties":{)"
    R"("join_token":{"type":"string","pattern":"^[0-9a-f]{64}$"},)"
    R"("agent_id":{"type":"string"},)"
    R"("public_key":{"type":"string","description":"ssh-ed25519 AAAA...; its comment does not count"}}})";

constexpr std::string_view revocation_schema =
    R"({"type":"object","required":["agent_id"],"additionalProperties":false,"properties":{)"
    R"("agent_id":{"type":"string"},)"
    R"("key":{"type":"string","description":"SHA256:... of one key; without it all keys and open join tokens go"}}})";

constexpr std::string_view key_schema =
    R"({"type":"object","required":["agent_id","public_key"],"additionalProperties":false,"properties":{)"
    R"("agent_id":{"type":"string"},)"
    R"("public_key":{"type":"string","description":"ssh-ed25519 AAAA...; its comment does not count"}}})";

constexpr std::array<QueryParameter, 1> message_parameters = {{
    {"session_id", "of the stream that the answer goes to, as its endpoint event names it"},
}};

constexpr std::string_view json_rpc_schema =
    R"({"description":"a JSON-RPC message of the Model Context Protocol","type":["object","array"]})";

constexpr std::string_view call_schema =
    R"({"type":"object","required":["name"],"additionalProperties":false,"properties":{)"
    R"("name":{"type":"string","description":"AGENT__TOOL, as /api/tools lists it"},)"
    R"("arguments":{"type":["object","null"],"description":"the arguments of the tool"},)"
    R"("timeout_ms":{"type":"integer","minimum":1,"description":"how long the call may take; without it the gateway's default"},)"
    R"("wait_seconds":{"type":"integer","minimum":0,"maximum":86400,"description":"how long the call may wait for an agent that is known and offline, before it runs; 0 unless given"}}})";

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
          .summary = "The agents and the gateway's own state",
          .parameters = std::span(fleet_parameters).first(status_parameter_count)},
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
          .summary = "The tools of all agents that are online",
          .parameters = tools_parameters},
    Route{.method = "POST",
          .path = "/api/call",
          .roles = operators,
          .handler = post_call,
          .summary = "Calls a tool; with Accept: text/event-stream its output arrives while it runs",
          .request_schema = call_schema,
          .role_gate = RoleGate::funnel},
    Route{.method = "POST",
          .path = "/api/fan-out",
          .roles = operators,
          .handler = post_fan_out,
          .summary = "Calls a tool of many agents; with Accept: text/event-stream each result arrives as it comes",
          .request_schema = fan_out_schema},
    Route{.method = "POST",
          .path = "/api/explain",
          .roles = everyone,
          .handler = post_explain,
          .summary = "What each gate would say to a call, which is not run",
          .request_schema = explain_schema},
    Route{.method = "GET",
          .path = "/api/approvals",
          .roles = operators,
          .handler = get_approvals,
          .summary = "The calls that wait for other people, newest first",
          .parameters = approvals_parameters},
    Route{.method = "POST",
          .path = "/api/approvals",
          .roles = operators,
          .handler = post_approval,
          .summary = "Approves, rejects or withdraws a call that waits",
          .request_schema = decision_schema},
    Route{.method = "GET",
          .path = "/api/approvals/{id}",
          .roles = operators,
          .handler = get_approval,
          .summary = "One request for approval with all its arguments"},
    Route{.method = "GET",
          .path = "/api/approvals/{id}/result",
          .roles = operators,
          .handler = get_approval_result,
          .summary = "The answer of an approved call as POST /api/call gives it; 202 while it has not ended",
          .parameters = result_parameters},
    Route{.method = "POST",
          .path = "/api/enroll/token",
          .roles = admins,
          .handler = post_join_token,
          .summary = "Makes a join token with which one key of one agent can be enrolled, once",
          .request_schema = join_token_schema},
    Route{.method = "POST",
          .path = "/api/enroll",
          .is_public = true,
          .handler = post_enrolment,
          .summary = "Enrols a key with a join token, and tells the gateway's host key",
          .request_schema = enrolment_schema},
    Route{.method = "POST",
          .path = "/api/agents/revoke",
          .roles = admins,
          .handler = post_revocation,
          .summary = "Removes an agent's keys, or one of them, and ends the sessions that stand on them",
          .request_schema = revocation_schema},
    Route{.method = "GET",
          .path = "/api/keys",
          .roles = admins,
          .handler = get_keys,
          .summary = "The authorized_keys file, and what each of its lines means"},
    Route{.method = "POST",
          .path = "/api/keys",
          .roles = admins,
          .handler = post_key,
          .summary = "Adds a key of an agent",
          .request_schema = key_schema},
    Route{.method = "GET",
          .path = "/api/upstreams",
          .roles = everyone,
          .handler = get_upstreams,
          .summary = "The MCP servers behind the gateway, and which of their tools wait for an admin"},
    Route{.method = "POST",
          .path = "/api/upstreams/accept",
          .roles = admins,
          .handler = post_accepted_tool,
          .summary = "Accepts the description of a tool that is held back",
          .request_schema = accept_schema},
    Route{.method = "GET",
          .path = "/api/config",
          .roles = admins,
          .handler = get_configuration,
          .summary = "The configuration without its secrets",
          .whole_fleet = true},
    Route{.method = "POST",
          .path = "/api/config",
          .roles = admins,
          .handler = post_configuration,
          .summary = "Replaces the configuration, all or nothing",
          .request_schema = configuration_schema,
          .whole_fleet = true},
    Route{.method = "GET",
          .path = "/api/audit",
          .roles = admins,
          .handler = get_audit,
          .summary = "The audit log, newest entries first",
          .parameters = audit_parameters,
          .whole_fleet = true},
    Route{.method = "GET",
          .path = "/api/openapi.json",
          .roles = everyone,
          .handler = get_openapi,
          .summary = "This description"},
    Route{.method = "POST",
          .path = "/mcp",
          .roles = everyone,
          .handler = serve_mcp,
          .summary = "A message of the Model Context Protocol, 2025-03-26 to 2026-07-28 (Streamable HTTP)",
          .request_schema = json_rpc_schema,
          .is_mcp = true},
    Route{.method = "GET",
          .path = "/mcp",
          .roles = everyone,
          .handler = serve_mcp,
          .summary = "The event stream of a session, or the rest of one that broke",
          .is_mcp = true},
    Route{.method = "DELETE",
          .path = "/mcp",
          .roles = everyone,
          .handler = serve_mcp,
          .summary = "Ends a session",
          .is_mcp = true},
    Route{.method = "GET",
          .path = "/sse",
          .roles = everyone,
          .handler = serve_mcp_events,
          .summary = "The event stream of MCP 2024-11-05 (HTTP+SSE)",
          .is_mcp = true},
    Route{.method = "POST",
          .path = "/message",
          .roles = everyone,
          .handler = serve_mcp_events,
          .summary = "A message of MCP 2024-11-05; its answer arrives on the stream",
          .parameters = message_parameters,
          .request_schema = json_rpc_schema,
          .is_mcp = true},
    Route{.method = "GET",
          .path = "/.well-known/oauth-protected-resource",
          .is_public = true,
          .handler = get_protected_resource,
          .summary = "Which identity provider gives out tokens for this gateway (RFC 9728)",
          .names_host = true},
    Route{.method = "GET",
          .path = "/.well-known/oauth-protected-resource/mcp",
          .is_public = true,
          .handler = get_protected_resource,
          .summary = "The same for the MCP endpoint",
          .names_host = true},
};

/// Whether `path` is the pattern's; `parameter` is then what stands for its "{NAME}". Two segments are compared at a
/// time, and none of the patterns is longer than a handful.
bool matches(std::string_view pattern, std::string_view path, std::string_view* parameter = nullptr) {
  for (;;) {
    std::size_t pattern_end = std::min(pattern.find('/'), pattern.size());
    std::size_t path_end = std::min(path.find('/'), path.size());
    std::string_view expected = pattern.substr(0, pattern_end);
    std::string_view segment = path.substr(0, path_end);
    if (expected.starts_with('{')) {
      if (segment.empty()) return false;
      if (parameter != nullptr) *parameter = segment;
    } else if (segment != expected) {
      return false;
    }
    bool pattern_ends = pattern_end == pattern.size();
    if (pattern_ends != (path_end == path.size())) return false;
    if (pattern_ends) return true;
    pattern.remove_prefix(pattern_end + 1);
    path.remove_prefix(path_end + 1);
  }
}

/// Clients of MCP append a slash to the URL that they are given, and do not follow redirects with a body.
std::string_view served_as(std::string_view path) {
  return path == "/mcp/" ? "/mcp" : path;
}

}  // namespace

std::span<const Route> routes() {
  return table;
}

const Route* find_route(std::string_view method, std::string_view path) {
  if (method == "HEAD") method = "GET";
  path = served_as(path);
  const auto* found = std::ranges::find_if(
      table, [&](const Route& route) { return route.method == method && matches(route.path, path); });
  return found == table.end() ? nullptr : found;
}

std::string_view path_parameter(std::string_view path) {
  for (const Route& route : table) {
    std::string_view parameter;
    if (matches(route.path, path, &parameter)) return parameter;
  }
  return {};
}

std::string_view path_parameter_name(const Route& route) {
  std::size_t open = route.path.find('{');
  if (open == std::string_view::npos) return {};
  return route.path.substr(open + 1, route.path.find('}', open) - open - 1);
}

bool is_mcp_path(std::string_view path) {
  path = served_as(path);
  return std::ranges::any_of(table, [&](const Route& route) { return route.is_mcp && route.path == path; });
}

std::string allowed_methods(std::string_view path) {
  path = served_as(path);
  std::string allowed;
  for (const Route& route : table) {
    if (!matches(route.path, path)) continue;
    if (!allowed.empty()) allowed += ", ";
    allowed += route.method;
    if (route.method == "GET") allowed += ", HEAD";
  }
  if (!allowed.empty()) allowed += ", OPTIONS";
  return allowed;
}

}  // namespace hive::rest
