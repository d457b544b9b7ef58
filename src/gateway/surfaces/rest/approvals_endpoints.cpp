#include "base/strings.h"
#include "gateway/calls/approvals.h"
#include "gateway/surfaces/rest/approval_json.h"
#include "gateway/surfaces/rest/approval_request.h"
#include "gateway/surfaces/rest/call_response.h"
#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/object_writer.h"
#include "gateway/surfaces/rest/route.h"

namespace hive::rest {

namespace {

constexpr std::int64_t max_wait_ms = 30'000;
constexpr std::size_t max_listed = 1000;

/// The desk of the requests, or nullptr after an answer that says that there is none.
calls::Approvals* approvals_of(const Context& context) {
  calls::Approvals* approvals = context.services->dependencies.approvals;
  if (approvals == nullptr) {
    context.refuse(
        {503, "no_state", "this gateway keeps no record of calls, so nobody can be asked: audit_log_path is not set"});
  }
  return approvals;
}

void refuse_unknown(const Context& context) {
  context.refuse({404, "approval_unknown",
                  "no request for approval with this id that this credential may see; GET /api/approvals lists them"});
}

/// "own_request: nobody approves ..." as the desk writes it, in its two parts. The code is a view into the message.
Problem permission_problem(std::string_view message) {
  std::size_t end = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  if (end == 0 || end == std::string_view::npos || !message.substr(end).starts_with(": ")) {
    return {403, "permission_denied", std::string(message)};
  }
  return {403, message.substr(0, end), std::string(message.substr(end + 2))};
}

Problem problem_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::not_found:
      return {404, "approval_unknown", error.message};
    case ErrorCode::permission_denied:
      return permission_problem(error.message);
    case ErrorCode::already_exists:
      return {409, "approval_decided", error.message};
    case ErrorCode::invalid_argument:
      return {409, "digest_differs", error.message};
    case ErrorCode::timed_out:
      return {410, "approval_expired", error.message};
    case ErrorCode::unavailable:
    case ErrorCode::resource_exhausted:
    case ErrorCode::cancelled:
      return {503, "unavailable", error.message};
    default:
      return {500, "state_unwritable", error.message};
  }
}

/// What is said of a call that has not ended.
void answer_unfinished(const Context& context, const calls::Approval& approval) {
  net::http::Response response;
  response.status = 202;
  response.headers = {{"Myrmex-Approval", approval.id}};
  bool waits = approval.status == calls::ApprovalStatus::pending;
  response.body = approval_json(approval, ArgumentView::complete, waits ? "pending" : "running") + "\n";
  context.respond(std::move(response));
}

void answer_result(const Context& context, const std::string& id, Result<std::optional<calls::CallResult>> result) {
  if (!result) {
    // Here the same code means another thing than for a decision: the request is known, what came of it is gone.
    if (result.error().code == ErrorCode::unavailable) {
      return context.refuse({410, "result_gone", result.error().message});
    }
    return context.refuse(problem_of(result.error()));
  }
  if (*result) return answer_call(context, **result);
  calls::Approvals::Snapshot approval = context.services->dependencies.approvals->find(context.principal, id);
  if (!approval) return refuse_unknown(context);
  answer_unfinished(context, *approval);
}

void answer_decision(const Context& context, const Result<calls::Approvals::Snapshot>& decided) {
  if (!decided) return context.refuse(problem_of(decided.error()));
  std::string body = "{";
  ObjectWriter(body)
      .text("id", (*decided)->id)
      .text("status", calls::to_string((*decided)->status))
      .number("approvals", (*decided)->votes.size())
      .number("required", (*decided)->needed);
  context.respond_json(body + "}\n");
}

}  // namespace

void get_approvals(const ContextPointer& context) {
  calls::Approvals* approvals = approvals_of(*context);
  if (approvals == nullptr) return;
  std::string status = context->request->query_parameter("status").value_or("pending");
  if (status != "pending" && status != "all") {
    return context->refuse({400, "invalid_query", "query parameter status: must be pending or all"});
  }
  std::string body = "[";
  std::size_t listed = 0;
  for (const calls::Approvals::Snapshot& approval : approvals->list(context->principal, status == "pending")) {
    if (++listed > max_listed) break;
    if (listed > 1) body += ',';
    body += approval_json(*approval, ArgumentView::listed);
  }
  context->respond_json(body + "]\n");
}

void get_approval(const ContextPointer& context) {
  calls::Approvals* approvals = approvals_of(*context);
  if (approvals == nullptr) return;
  std::string_view id = path_parameter(context->request->path);
  calls::Approvals::Snapshot approval;
  if (is_approval_id(id)) approval = approvals->find(context->principal, id);
  if (!approval) return refuse_unknown(*context);
  context->respond_json(approval_json(*approval, ArgumentView::complete) + "\n");
}

void get_approval_result(const ContextPointer& context) {
  calls::Approvals* approvals = approvals_of(*context);
  if (approvals == nullptr) return;
  std::int64_t wait_ms = 0;
  if (auto text = context->request->query_parameter("wait_ms")) {
    std::optional<std::int64_t> number = parse_int64(*text);
    if (!number || *number < 0 || *number > max_wait_ms) {
      return context->refuse(
          {400, "invalid_query", fmt::format("query parameter wait_ms: not a whole number from 0 to {}", max_wait_ms)});
    }
    wait_ms = *number;
  }
  std::string id(path_parameter(context->request->path));
  if (!is_approval_id(id)) return refuse_unknown(*context);
  approvals->result(*context->request->worker, context->principal, id, std::chrono::milliseconds(wait_ms),
                    [context, id](Result<std::optional<calls::CallResult>> result) {
                      answer_result(*context, id, std::move(result));
                    });
}

void post_approval(const ContextPointer& context) {
  calls::Approvals* approvals = approvals_of(*context);
  if (approvals == nullptr) return;
  Result<ApprovalRequest> request = parse_approval_request(context->request->body);
  if (!request) return context->refuse({400, "invalid_request", request.error().message});
  calls::Approvals::Snapshot approval;
  if (is_approval_id(request->id)) approval = approvals->find(context->principal, request->id);
  // A request that a scope hides is still one that the caller may not decide, which is recorded by the desk.
  bool needs_digest = request->action == calls::ApprovalAction::approve && request->digest.empty();
  if (approval && needs_digest && approval->status == calls::ApprovalStatus::pending &&
      list_hides_arguments(*approval)) {
    return context->refuse(
        {409, "digest_required",
         fmt::format(
             "the list shows {} of {} bytes of the arguments; look at GET /api/approvals/{}, and send the digest "
             "that it shows",
             listed_argument_bytes, approval->subject.arguments.size(), approval->id)});
  }
  if (!is_approval_id(request->id)) return refuse_unknown(*context);
  calls::Approvals::Word word;
  word.by = context->principal;
  word.id = std::move(request->id);
  word.action = request->action;
  word.digest = std::move(request->digest);
  word.comment = std::move(request->comment);
  word.request_id = context->request_id;
  word.surface = calls::Surface::rest;
  approvals->decide(std::move(word), [context](const Result<calls::Approvals::Snapshot>& decided) {
    answer_decision(*context, decided);
  });
}

}  // namespace hive::rest
