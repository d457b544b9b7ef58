#include "gateway/surfaces/rest/call_response.h"

#include "gateway/calls/approvals.h"
#include "gateway/surfaces/rest/call_answer.h"
#include "gateway/surfaces/rest/object_writer.h"

namespace hive::rest {

namespace {

constexpr unsigned drain_spread_seconds = 4;

void refuse_call(const Context& context, const calls::CallResult& result, unsigned status) {
  net::http::Headers headers = outcome_headers(result);
  if (status == 429 || result.reason == "draining") {
    unsigned wait = context.services->retry_after(result.retry_after, status == 429 ? 1 : drain_spread_seconds);
    headers.emplace_back("Retry-After", std::to_string(wait));
  }
  context.refuse({status, result.reason, error_message(result), protocol::to_string(result.outcome)},
                 std::move(headers));
}

}  // namespace

net::http::Headers outcome_headers(const calls::CallResult& result) {
  net::http::Headers headers = {{"Myrmex-Outcome", std::string(protocol::to_string(result.outcome))}};
  if (!result.reason.empty()) headers.emplace_back("Myrmex-Reason", result.reason);
  return headers;
}

std::string pending_json(const Context& context, const calls::CallResult& result) {
  std::string body = "{";
  ObjectWriter object(body);
  object.text("status", "pending_approval")
      .text("approval_id", result.approval_id)
      .text("expires_at", format_rfc3339(result.approval_expires_at))
      .number("required", result.approvals_needed);
  const calls::Approvals* approvals = context.services->dependencies.approvals;
  if (approvals != nullptr) {
    if (auto kept = approvals->find(context.principal, result.approval_id)) {
      object.text("tier", protocol::to_string(kept->subject.tier));
    }
  }
  return body + "}";
}

void answer_call(const Context& context, const calls::CallResult& result) {
  if (!result.approval_id.empty()) {
    net::http::Response response;
    response.status = 202;
    response.headers = {{"Myrmex-Approval", result.approval_id},
                        {"Myrmex-Reason", result.reason},
                        {"Location", "/api/approvals/" + result.approval_id}};
    response.body = pending_json(context, result) + "\n";
    return context.respond(std::move(response));
  }
  if (auto status = refusal_status(result)) return refuse_call(context, result, *status);
  net::http::Response response;
  response.headers = outcome_headers(result);
  response.body = json_rpc_response(context.request_id, result);
  context.respond(std::move(response));
}

}  // namespace hive::rest
