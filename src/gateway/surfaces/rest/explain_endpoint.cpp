#include "gateway/calls/funnel.h"
#include "gateway/surfaces/rest/access_refusal.h"
#include "gateway/surfaces/rest/call_address.h"
#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/explain_request.h"
#include "gateway/surfaces/rest/object_writer.h"

namespace hive::rest {

namespace {

std::string explanation_json(const calls::Explanation& explanation) {
  std::string gates = "[";
  for (const policy::GateAnswer& answer : explanation.gates) {
    if (gates.size() > 1) gates += ',';
    gates += '{';
    ObjectWriter(gates)
        .text("gate", answer.gate)
        .text("verdict", policy::to_string(answer.decision.verdict))
        .text("reason", answer.decision.reason)
        .text("message", answer.decision.message)
        .text("rule", answer.decision.rule);
    gates += '}';
  }
  std::string body = "{";
  ObjectWriter(body)
      .text("verdict", policy::to_string(explanation.verdict))
      .text("reason", explanation.reason)
      .text("tier", protocol::to_string(explanation.tier))
      .text("tier_rule", explanation.tier_rule)
      .raw("gates", gates + "]");
  return body + "}\n";
}

/// Whether the caller may ask about somebody else: that tells what others may do, and its dry run reaches agents as
/// they would. Answers the request itself if not.
bool may_ask_about_others(const Context& context) {
  if (context.principal.role != policy::Role::admin) {
    refuse_access(context, "role", "POST /api/explain with as",
                  "only the role admin may ask about others; leave out the member \"as\"");
    return false;
  }
  if (context.principal.scope() != nullptr) {
    refuse_access(
        context, "scope", "POST /api/explain with as",
        "a credential that reaches a part of the fleet may not ask about others; leave out the member \"as\"");
    return false;
  }
  return true;
}

}  // namespace

void post_explain(const ContextPointer& context) {
  Result<ExplainRequest> request = parse_explain_request(context->request->body);
  if (!request) return context->refuse({400, "invalid_request", request.error().message});
  if (request->subject && !may_ask_about_others(*context)) return;
  calls::Call call;
  address_call(*context, request->name, call);
  call.principal = context->principal;
  if (request->subject) {
    // The name stays that of who asks, because it stands in the record of the dry run.
    call.principal.role = request->subject->role;
    call.principal.grant = request->subject->grant;
    call.on_behalf_of = "as asked: " + call.principal.identity();
  }
  call.surface = calls::Surface::rest;
  call.request_id = context->request_id;
  call.arguments = std::move(request->arguments);
  context->services->dependencies.funnel.explain(
      *context->request->worker, std::move(call),
      [context](const calls::Explanation& explanation) { context->respond_json(explanation_json(explanation)); });
}

}  // namespace hive::rest
