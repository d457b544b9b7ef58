#include "base/log.h"
#include "base/strings.h"
#include "gateway/fleet/enrolment.h"
#include "gateway/surfaces/rest/access_refusal.h"
#include "gateway/surfaces/rest/admission.h"
#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/enrolment_request.h"
#include "gateway/surfaces/rest/object_writer.h"
#include "gateway/surfaces/rest/recorded_change.h"
#include "net/http/connection_limits.h"

namespace hive::rest {

namespace {

constexpr std::string_view no_store = "no-store";

fleet::Enrolment* enrolment_of(const Context& context) {
  fleet::Enrolment* enrolment = context.services->dependencies.enrolment;
  if (enrolment == nullptr) context.refuse({503, "no_state", "this gateway enrols nobody: it has no store"});
  return enrolment;
}

/// Whether the caller's credential reaches the agent; answers the request itself if not.
bool check_agent_reach(const Context& context, const std::string& agent) {
  if (context.settings->policy->reaches(context.principal, agent)) return true;
  refuse_access(context, "scope", fmt::format("{} for agent {}", context.request->path, agent),
                fmt::format("this credential does not reach the agent {}", quote(agent)));
  return false;
}

/// Answers when the entry is on disk, so that nobody is told of a change that a power cut takes out of the log. The
/// change itself has happened; a log that fails just now does not turn the answer into a refusal.
void answer_recorded(const ContextPointer& context, audit::Record entry, std::string body) {
  auto shared_body = std::make_shared<std::string>(std::move(body));
  context->services->record(std::move(entry), [context, shared_body] {
    net::http::Response response;
    response.headers = {{"Cache-Control", std::string(no_store)}};
    response.body = std::move(*shared_body);
    context->respond(std::move(response));
  });
}

void record_refusal(const Context& context, std::string action, std::string agent, std::string reason,
                    std::string detail) {
  audit::Record entry = change_entry(context, std::move(action), std::move(agent));
  entry.outcome = protocol::Outcome::denied;
  entry.reason = std::move(reason);
  entry.detail = std::move(detail);
  context.services->record(std::move(entry));
}

Problem problem_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid_argument:
      return {400, "invalid_request", error.message};
    case ErrorCode::already_exists:
      return {409, "key_conflict", error.message};
    case ErrorCode::resource_exhausted:
      return {429, "too_many_join_tokens", error.message};
    default:
      return {500, "not_stored", error.message};
  }
}

/// Answers and records a change that was asked for by a known principal and did not happen.
void refuse_change(const Context& context, std::string action, std::string agent, const Error& error) {
  Problem problem = problem_of(error);
  record_refusal(context, std::move(action), std::move(agent), std::string(problem.code), error.message);
  if (problem.status == 500) log::error("a change of keys failed", {{"reason", error.message}});
  net::http::Headers headers;
  if (problem.status == 429) headers.emplace_back("Retry-After", "60");
  context.refuse(problem, std::move(headers));
}

std::string source_of(const Context& context) {
  return net::http::source_of(client_address_of(context));
}

/// Whether a peer without credential may try a join token now; answers the request itself if not.
bool may_try(const Context& context) {
  Services& services = *context.services;
  services.record(services.failures.take_due());
  std::optional<std::chrono::seconds> wait = services.failures.must_wait(source_of(context));
  if (!wait) return true;
  context.refuse({429, "too_many_failures", "too many failed attempts from this address; wait and try again"},
                 {{"Retry-After", std::to_string(services.retry_after(*wait, 1))}});
  return false;
}

Problem problem_of(const fleet::EnrolmentRefusal& refusal) {
  switch (refusal.kind) {
    case fleet::EnrolmentRefusal::Kind::token:
      return {403, "join_token", refusal.message};
    case fleet::EnrolmentRefusal::Kind::agent_id:
    case fleet::EnrolmentRefusal::Kind::key:
      return {400, "invalid_request", refusal.message};
    case fleet::EnrolmentRefusal::Kind::conflict:
      return {409, "key_conflict", refusal.message};
    case fleet::EnrolmentRefusal::Kind::failure:
      break;
  }
  return {500, "not_stored", refusal.message};
}

void refuse_enrolment(const Context& context, const std::string& agent, const fleet::EnrolmentRefusal& refusal) {
  Problem problem = problem_of(refusal);
  if (refusal.kind == fleet::EnrolmentRefusal::Kind::token) {
    // Counted and summed up like failed authentications: anybody can cause these.
    context.services->record(context.services->failures.record(source_of(context), refusal.reason));
  } else if (refusal.kind != fleet::EnrolmentRefusal::Kind::agent_id) {
    // Only who holds a join token comes so far.
    record_refusal(context, "agent_enrolled", agent, refusal.reason,
                   fmt::format("from {}: {}", client_address_of(context), refusal.message));
  }
  context.refuse(problem);
}

void append_line(std::string& out, const fleet::KeyLine& line) {
  if (!out.ends_with('[')) out += ',';
  out += '{';
  ObjectWriter object(out);
  object.number("line", line.number);
  if (!line.refused.empty()) {
    object.text("refused", line.refused);
  } else {
    object.text("agent_id", line.agent).text("fingerprint", line.fingerprint);
    if (!line.from.empty()) object.texts("from", line.from);
    if (line.expires_at) object.text("expires_at", format_rfc3339(*line.expires_at));
  }
  out += '}';
}

/// The listing as far as the credential reaches: of the rest it sees no line.
std::string keys_body(const Context& context, const fleet::KeyListing& listing) {
  bool sees_all = context.principal.scope() == nullptr;
  std::vector<std::string_view> text_lines = split(listing.text, '\n');
  std::string text = sees_all ? listing.text : "";
  std::string lines = "[";
  for (const fleet::KeyLine& line : listing.lines) {
    if (!sees_all) {
      if (line.agent.empty() || !context.settings->policy->reaches(context.principal, line.agent)) continue;
      if (line.number == 0 || line.number > text_lines.size()) continue;
      text.append(text_lines[line.number - 1]).append("\n");
    }
    append_line(lines, line);
  }
  std::string body = "{";
  ObjectWriter(body).text("keys", text).raw("entries", lines + "]");
  return body + "}\n";
}

}  // namespace

void post_join_token(const ContextPointer& context) {
  Result<JoinTokenRequest> request = parse_join_token_request(context->request->body);
  if (!request) return context->refuse({400, "invalid_request", request.error().message});
  fleet::Enrolment* enrolment = enrolment_of(*context);
  if (enrolment == nullptr || !check_agent_reach(*context, request->agent) || !can_be_recorded(*context)) return;
  std::chrono::seconds ttl =
      request->ttl.value_or(std::min(context->settings->config->enrollment_token_ttl, fleet::Enrolment::max_token_ttl));
  enrolment->mint(request->agent, context->principal.name, ttl,
                  [context, agent = request->agent, ttl](Result<fleet::MintedToken> minted) {
                    if (!minted) return refuse_change(*context, "enroll_token_created", agent, minted.error());
                    audit::Record entry = change_entry(*context, "enroll_token_created", agent);
                    entry.detail = fmt::format("ttl_seconds={}", ttl.count());
                    std::string body = "{";
                    ObjectWriter(body)
                        .text("join_token", minted->token)
                        .text("agent_id", agent)
                        .text("expires_at", format_rfc3339(minted->expires_at));
                    answer_recorded(context, std::move(entry), body + "}\n");
                  });
}

void post_enrolment(const ContextPointer& context) {
  if (!may_try(*context)) return;
  Result<fleet::EnrolmentRequest> request = parse_enrolment_request(context->request->body);
  if (!request) return context->refuse({400, "invalid_request", request.error().message});
  fleet::Enrolment* enrolment = enrolment_of(*context);
  if (enrolment == nullptr || !can_be_recorded(*context)) return;
  std::string agent = request->agent;
  enrolment->redeem(*std::move(request),
                    [context, agent](const std::expected<fleet::Enrolled, fleet::EnrolmentRefusal>& enrolled) {
                      if (!enrolled) return refuse_enrolment(*context, agent, enrolled.error());
                      audit::Record entry = change_entry(*context, "agent_enrolled", agent);
                      entry.principal = "join-token";
                      entry.role = "none";
                      entry.reason = enrolled->repeated ? "repeated" : "";
                      entry.detail = fmt::format("key {} from {}", enrolled->fingerprint, client_address_of(*context));
                      std::string body = "{";
                      ObjectWriter(body)
                          .boolean("success", true)
                          .text("agent_id", agent)
                          .text("fingerprint", enrolled->fingerprint)
                          .text("gateway_host_key", context->services->dependencies.host_key);
                      answer_recorded(context, std::move(entry), body + "}\n");
                    });
}

void post_revocation(const ContextPointer& context) {
  Result<RevocationRequest> request = parse_revocation_request(context->request->body);
  if (!request) return context->refuse({400, "invalid_request", request.error().message});
  fleet::Enrolment* enrolment = enrolment_of(*context);
  if (enrolment == nullptr || !check_agent_reach(*context, request->agent)) return;
  // Without can_be_recorded(): revocation must work when nothing else does.
  enrolment->revoke(request->agent, request->key,
                    [context, agent = request->agent, key = request->key](const Result<fleet::Revoked>& revoked) {
                      if (!revoked) return refuse_change(*context, "agent_revoked", agent, revoked.error());
                      audit::Record entry = change_entry(*context, "agent_revoked", agent);
                      entry.detail = fmt::format("{}{} keys removed, {} sessions ended, {} join tokens revoked",
                                                 key ? *key + ": " : "", revoked->keys_removed, revoked->sessions_ended,
                                                 revoked->join_tokens_revoked);
                      std::string body = "{";
                      ObjectWriter(body)
                          .boolean("revoked", true)
                          .number("keys_removed", revoked->keys_removed)
                          .boolean("session_dropped", revoked->sessions_ended > 0)
                          .number("join_tokens_revoked", revoked->join_tokens_revoked);
                      answer_recorded(context, std::move(entry), body + "}\n");
                    });
}

void get_keys(const ContextPointer& context) {
  fleet::Enrolment* enrolment = enrolment_of(*context);
  if (enrolment == nullptr) return;
  enrolment->list_keys([context](const Result<fleet::KeyListing>& listing) {
    if (!listing) return context->refuse({500, "keys_unreadable", listing.error().message});
    context->respond_json(keys_body(*context, *listing));
  });
}

void post_key(const ContextPointer& context) {
  Result<KeyRequest> request = parse_key_request(context->request->body);
  if (!request) return context->refuse({400, "invalid_request", request.error().message});
  fleet::Enrolment* enrolment = enrolment_of(*context);
  if (enrolment == nullptr || !check_agent_reach(*context, request->agent) || !can_be_recorded(*context)) return;
  enrolment->add_key(request->agent, request->public_key,
                     [context, agent = request->agent](const Result<fleet::AddedKey>& added) {
                       if (!added) return refuse_change(*context, "key_added", agent, added.error());
                       audit::Record entry = change_entry(*context, "key_added", agent);
                       entry.reason = added->added ? "" : "present";
                       entry.detail = fmt::format("key {}", added->fingerprint);
                       std::string body = "{";
                       ObjectWriter(body)
                           .boolean("success", true)
                           .text("agent_id", agent)
                           .text("fingerprint", added->fingerprint)
                           .boolean("added", added->added);
                       answer_recorded(context, std::move(entry), body + "}\n");
                     });
}

}  // namespace hive::rest
