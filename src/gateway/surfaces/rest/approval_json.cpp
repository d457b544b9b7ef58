#include "gateway/surfaces/rest/approval_json.h"

#include "gateway/surfaces/rest/object_writer.h"

namespace hive::rest {

namespace {

/// Where to cut so that no character is torn.
std::size_t shown_bytes(const std::string& arguments) {
  if (arguments.size() <= listed_argument_bytes) return arguments.size();
  std::size_t end = listed_argument_bytes;
  while (end > 0 && (static_cast<unsigned char>(arguments[end]) & 0xC0U) == 0x80)
    --end;
  return end;
}

std::string vote_json(const calls::ApprovalVote& vote) {
  std::string out = "{";
  ObjectWriter(out)
      .text("by", vote.principal)
      .text("identity", vote.identity)
      .text("at", format_rfc3339(vote.at))
      .text("comment", vote.comment);
  return out + "}";
}

}  // namespace

bool list_hides_arguments(const calls::Approval& approval) {
  return shown_bytes(approval.subject.arguments) < approval.subject.arguments.size();
}

std::string approval_json(const calls::Approval& approval, ArgumentView view, std::string_view status) {
  const policy::ApprovalSubject& subject = approval.subject;
  std::string_view arguments = subject.arguments;
  if (view == ArgumentView::listed) arguments = arguments.substr(0, shown_bytes(subject.arguments));
  std::string votes = "[";
  for (const calls::ApprovalVote& vote : approval.votes) {
    if (votes.size() > 1) votes += ',';
    votes += vote_json(vote);
  }
  std::string out = "{";
  ObjectWriter object(out);
  object.text("id", approval.id)
      .text("token_id", subject.principal)
      .text("identity", subject.identity)
      .text("role", policy::to_string(approval.requester.role))
      .text("agent_id", subject.agent)
      .text("tool", subject.tool)
      .text("args", arguments)
      .number("args_bytes", subject.arguments.size());
  if (arguments.size() < subject.arguments.size()) {
    object.number("args_hidden_bytes", subject.arguments.size() - arguments.size());
  }
  object.text("tier", protocol::to_string(subject.tier))
      .text("created_at", format_rfc3339(approval.created_at))
      .text("expires_at", format_rfc3339(approval.expires_at))
      .text("status", status)
      .text("digest", approval.digest)
      .number("required", approval.needed)
      .raw("approvals", votes + "]")
      .text("surface", calls::to_string(approval.surface))
      .text("request_id", approval.request_id)
      .text("agent_key", subject.agent_key);
  if (!subject.on_behalf_of.empty()) object.text("on_behalf_of", subject.on_behalf_of);
  if (approval.after_untrusted_text) object.boolean("after_untrusted_text", true);
  if (approval.refusal) object.raw("refusal", vote_json(*approval.refusal));
  if (approval.outcome) object.text("outcome", protocol::to_string(*approval.outcome));
  if (!approval.reason.empty()) object.text("reason", approval.reason);
  return out + "}";
}

std::string approval_json(const calls::Approval& approval, ArgumentView view) {
  return approval_json(approval, view, calls::to_string(approval.status));
}

}  // namespace hive::rest
