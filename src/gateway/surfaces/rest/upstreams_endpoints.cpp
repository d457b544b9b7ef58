#include <algorithm>
#include <array>

#include "base/log.h"
#include "base/strings.h"
#include "gateway/surfaces/rest/access_refusal.h"
#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/members.h"
#include "gateway/surfaces/rest/object_writer.h"
#include "gateway/surfaces/rest/recorded_change.h"
#include "gateway/surfaces/rest/upstream_json.h"

namespace hive::rest {

namespace {

/// POST /api/upstreams/accept
struct AcceptRequest {
  std::string upstream;
  std::string tool;
  std::string sha256;
};

Result<AcceptRequest> parse_accept_request(std::string_view body) {
  static constexpr std::array<std::string_view, 3> known = {"upstream", "tool", "sha256"};
  std::vector<json::Member> members = TRY(parse_members(body, known));
  AcceptRequest request;
  request.upstream = TRY(required_text(members, "upstream"));
  TRY_CONTEXT("upstream", check_agent_id(request.upstream));
  request.tool = TRY(required_text(members, "tool"));
  request.sha256 = TRY(required_text(members, "sha256"));
  if (request.sha256.size() != 64 || request.sha256.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return fail(ErrorCode::invalid_argument, "sha256: must be the 64 hexadecimal digits of current_sha256");
  }
  return request;
}

void append_held_back(std::string& out, const upstreams::HeldBackTool& tool) {
  if (!out.ends_with('[')) out += ',';
  out += '{';
  ObjectWriter(out)
      .text("tool", tool.tool)
      .text("current_sha256", tool.current_sha256)
      .raw("current", tool.current_raw)
      .text("accepted_sha256", tool.accepted_sha256)
      .raw("accepted", tool.accepted_raw.empty() ? "null" : tool.accepted_raw);
  out += '}';
}

audit::Record entry_of(const Context& context, const AcceptRequest& request) {
  audit::Record entry = change_entry(context, "tool_accepted", request.upstream);
  entry.tool = request.tool;
  entry.detail = "sha256 " + request.sha256;
  return entry;
}

Problem problem_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::not_found:
      return {404, "not_found", error.message};
    case ErrorCode::already_exists:
      return {409, "description_changed", error.message};
    default:
      return {500, "not_stored", error.message};
  }
}

}  // namespace

void get_upstreams(const ContextPointer& context) {
  std::string body = R"({"upstreams":[)";
  if (const upstreams::Upstreams* servers = context->services->dependencies.upstreams; servers != nullptr) {
    std::vector<upstreams::HeldBackTool> held = servers->held_back();
    for (const upstreams::UpstreamStatus& status : servers->statuses()) {
      if (!context->settings->policy->reaches(context->principal, status.name)) continue;
      std::string tools = "[";
      for (const upstreams::HeldBackTool& tool : held) {
        bool is_seen = context->settings->policy->reaches(context->principal, tool.upstream, tool.tool);
        if (tool.upstream == status.name && is_seen) append_held_back(tools, tool);
      }
      append_upstream(body, status, tools + "]");
    }
  }
  context->respond_json(body + "]}\n");
}

void post_accepted_tool(const ContextPointer& context) {
  Result<AcceptRequest> request = parse_accept_request(context->request->body);
  if (!request) return context->refuse({400, "invalid_request", request.error().message});
  if (!context->settings->policy->reaches(context->principal, request->upstream, request->tool)) {
    return refuse_access(
        *context, "scope", fmt::format("{} of {}", context->request->path, request->upstream),
        fmt::format("this credential does not reach the upstream server {}", quote(request->upstream)));
  }
  upstreams::Upstreams* servers = context->services->dependencies.upstreams;
  if (servers == nullptr) return context->refuse({404, "not_found", "this gateway has no upstream servers"});
  if (!can_be_recorded(*context)) return;
  auto done = [context, request = *request](Result<void> accepted) {
    audit::Record entry = entry_of(*context, request);
    if (!accepted) {
      Problem problem = problem_of(accepted.error());
      entry.outcome = protocol::Outcome::denied;
      entry.reason = problem.code;
      entry.detail = accepted.error().message;
      context->services->record(std::move(entry));
      if (problem.status == 500) {
        log::error("a description cannot be accepted", {{"reason", accepted.error().message}});
      }
      return context->refuse(problem);
    }
    std::string body = "{";
    ObjectWriter(body)
        .text("upstream", request.upstream)
        .text("tool", request.tool)
        .text("accepted_sha256", request.sha256);
    context->services->record(std::move(entry), [context, body = body + "}\n"] { context->respond_json(body); });
  };
  servers->accept(request->upstream, request->tool, request->sha256, std::move(done));
}

}  // namespace hive::rest
