#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/mcp_endpoint.h"

namespace hive::rest {

namespace {

void record_refusal(const Context& context, calls::Surface surface, std::string_view reason, std::string detail) {
  audit::Record entry;
  entry.action = "access_denied";
  entry.surface = calls::to_string(surface);
  entry.request_id = context.request_id;
  entry.principal = context.principal.name;
  entry.role = policy::to_string(context.principal.role);
  entry.outcome = protocol::Outcome::denied;
  entry.reason = reason;
  entry.detail = std::move(detail);
  context.services->record_refusal(std::move(entry));
}

bool have_same_reach(const policy::Principal& left, const policy::Principal& right) {
  const policy::Scope* one = left.scope();
  const policy::Scope* other = right.scope();
  if (one == nullptr || other == nullptr) return one == other;
  return one->agents == other->agents && one->tags == other->tags && one->tools == other->tools;
}

/// Whether the credential is worth today what it was worth when the request came.
bool is_still_admitted(const Context& context) {
  std::optional<policy::Principal> now = context.services->settings()->authenticator->refresh(context.principal);
  return now && now->role == context.principal.role && have_same_reach(*now, context.principal);
}

void serve(const ContextPointer& context, calls::Surface surface) {
  McpEndpoint* endpoint = context->services->dependencies.mcp;
  if (endpoint == nullptr) return context->refuse({404, "not_found", "this gateway does not serve MCP over HTTP"});
  // What GET answers here is a stream that does not end.
  if (context->request->method == "HEAD") {
    return context->refuse({405, "method_not_allowed", "HEAD says nothing about an event stream; use GET"});
  }
  net::http::Response common;
  context->complete(common);
  endpoint->serve({.request = context->request,
                   .responder = context->responder,
                   .principal = context->principal,
                   .request_id = context->request_id,
                   .surface = surface,
                   .headers = std::move(common.headers),
                   .is_still_admitted = [context] { return is_still_admitted(*context); },
                   .record_refusal =
                       [context, surface](std::string_view reason, std::string detail) {
                         record_refusal(*context, surface, reason, std::move(detail));
                       }});
}

}  // namespace

void serve_mcp(const ContextPointer& context) {
  serve(context, calls::Surface::mcp_http);
}

void serve_mcp_events(const ContextPointer& context) {
  serve(context, calls::Surface::mcp_sse);
}

}  // namespace hive::rest
