#include "cli/approval_view.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/call_result.h"
#include "cli/doctor.h"
#include "cli/json_fields.h"
#include "cli/json_text.h"

namespace hive::cli {

namespace {

constexpr std::size_t id_digits = 32;
constexpr std::size_t widest_arguments = 200;

VoteView parse_vote(const JsonFields& fields) {
  return {fields.text("by"), fields.text("identity"), fields.text("at"), fields.text("comment")};
}

/// The shortest beginning that names every one of them, at least eight digits long.
std::size_t shown_id_length(const std::vector<ApprovalView>& approvals) {
  std::vector<std::string_view> ids;
  for (const ApprovalView& approval : approvals)
    ids.push_back(approval.id);
  std::ranges::sort(ids);
  std::size_t length = shown_id_digits;
  for (std::size_t k = 1; k < ids.size(); ++k) {
    auto [end, other_end] = std::ranges::mismatch(ids[k - 1], ids[k]);
    length = std::max(length, static_cast<std::size_t>(end - ids[k - 1].begin()) + 1);
  }
  return length;
}

std::string duration_text(std::chrono::seconds duration) {
  long long seconds = duration.count();
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{} days {} h", seconds / 86400, seconds / 3600 % 24);
}

/// One line, cut where it is long; `show` has it whole.
std::string brief_arguments(const ApprovalView& approval) {
  std::string text = json_for_terminal(approval.arguments.substr(0, widest_arguments * 4));
  std::ranges::replace(text, '\n', ' ');
  std::string shown = cut_to_width(text, widest_arguments);
  return approval.hidden_bytes > 0 ? fmt::format("{} ({} bytes)", shown, approval.arguments_bytes) : shown;
}

std::string vote_line(const VoteView& vote, std::string_view what) {
  std::string line = fmt::format("{} {} at {}", what, escape_for_terminal(vote.who()), escape_for_terminal(vote.at));
  if (!vote.identity.empty() && vote.identity != vote.principal) {
    line += fmt::format(" ({})", escape_for_terminal(vote.principal));
  }
  if (!vote.comment.empty()) line += ": " + escape_for_terminal(vote.comment);
  return line;
}

std::string asked_by(const ApprovalView& approval) {
  std::string text = escape_for_terminal(approval.who());
  if (approval.who() != approval.principal) text += " (" + escape_for_terminal(approval.principal) + ")";
  if (!approval.role.empty()) text += ", " + escape_for_terminal(approval.role);
  if (!approval.surface.empty()) text += ", over " + escape_for_terminal(approval.surface);
  return text;
}

std::string arguments_text(const ApprovalView& approval) {
  std::string heading = fmt::format("  arguments     {} bytes, all of them:\n", approval.arguments.size());
  if (approval.hidden_bytes > 0) {
    heading = fmt::format("  arguments     {} bytes, {} of them are NOT shown here:\n", approval.arguments_bytes,
                          approval.hidden_bytes);
  }
  // Text that is no JSON cannot come from a gateway of ours; it is shown all the same, because it is what would run.
  bool is_whole = json::validate(approval.arguments, answer_limits).has_value();
  std::string text = is_whole ? pretty_json(approval.arguments) : text_for_terminal(approval.arguments) + "\n";
  return heading + text;
}

}  // namespace

bool is_approval_id(std::string_view text) {
  return text.size() == id_digits &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<ApprovalView> parse_approval(std::string_view raw) {
  JsonFields fields = TRY(JsonFields::parse(raw, "approval request"));
  ApprovalView approval;
  approval.id = fields.text("id");
  if (approval.id.empty()) return fail(ErrorCode::corrupt, "the gateway's approval request has no id");
  approval.principal = fields.text("token_id");
  approval.identity = fields.text("identity");
  approval.role = fields.text("role");
  approval.agent = fields.text("agent_id");
  approval.tool = fields.text("tool");
  approval.arguments = fields.text("args");
  approval.hidden_bytes = fields.number("args_hidden_bytes");
  approval.arguments_bytes = fields.number("args_bytes");
  approval.tier = fields.text("tier");
  approval.created_at = fields.text("created_at");
  approval.expires_at = fields.text("expires_at");
  approval.status = fields.text("status");
  approval.digest = fields.text("digest");
  approval.required = std::max<std::int64_t>(fields.number("required"), 1);
  approval.surface = fields.text("surface");
  approval.request_id = fields.text("request_id");
  approval.agent_key = fields.text("agent_key");
  approval.on_behalf_of = fields.text("on_behalf_of");
  approval.after_untrusted_text = fields.flag("after_untrusted_text");
  approval.outcome = fields.text("outcome");
  approval.reason = fields.text("reason");
  for (std::string_view vote : fields.elements("approvals"))
    approval.votes.push_back(parse_vote(TRY(JsonFields::parse(vote, "approval"))));
  if (std::string_view refusal = fields.raw("refusal"); !refusal.empty()) {
    approval.refusal = parse_vote(TRY(JsonFields::parse(refusal, "refusal")));
  }
  approval.raw = raw;
  return approval;
}

Result<std::vector<ApprovalView>> parse_approvals(std::string_view body) {
  if (!json::is_array(trim(body))) {
    return fail(ErrorCode::corrupt, "the gateway's list of approvals is not a JSON array");
  }
  std::vector<ApprovalView> approvals;
  for (std::string_view raw : TRY(json::parse_array(body, answer_limits)))
    approvals.push_back(TRY(parse_approval(raw)));
  return approvals;
}

std::string time_from_now(const std::string& rfc3339, WallTime now) {
  auto time = parse_rfc3339(rfc3339);
  if (!time) return escape_for_terminal(rfc3339);
  auto left = std::chrono::floor<std::chrono::seconds>(*time - now);
  return left.count() >= 0 ? "in " + duration_text(left) : duration_text(-left) + " ago";
}

std::string votes_of(const ApprovalView& approval) {
  return fmt::format("{} of {}", approval.votes.size(), approval.required);
}

std::string approvals_table(const std::vector<ApprovalView>& approvals, bool with_status, WallTime now,
                            std::size_t width, bool color) {
  std::size_t id_length = shown_id_length(approvals);
  std::vector<std::string> headings = {"ID"};
  if (with_status) headings.emplace_back("STATUS");
  for (const char* heading : {"ASKED BY", "CALL", "TIER", "VOTES", "EXPIRES", "ARGUMENTS"})
    headings.emplace_back(heading);
  Table table(std::move(headings));
  for (const ApprovalView& approval : approvals) {
    std::vector<std::string> cells = {approval.id.substr(0, id_length)};
    if (with_status) {
      cells.push_back(approval.outcome.empty() ? approval.status : approval.status + ", " + approval.outcome);
    }
    std::string expires = approval.is_pending() ? time_from_now(approval.expires_at, now) : "";
    cells.insert(cells.end(), {approval.who(), approval.target(), approval.tier, votes_of(approval), std::move(expires),
                               brief_arguments(approval)});
    table.add(std::move(cells));
  }
  return table.render(width, color);
}

std::string approval_details(const ApprovalView& approval, WallTime now, bool color) {
  std::string text = styled("Request " + escape_for_terminal(approval.id), Style::heading, color) + "\n";
  auto line = [&text](std::string_view name, std::string_view value) {
    if (!value.empty()) text += fmt::format("  {:<13} {}\n", name, value);
  };
  std::string status = escape_for_terminal(approval.status);
  Style style = approval.is_pending() ? Style::warning : approval.status == "approved" ? Style::good : Style::bad;
  line("status", styled(status, style, color) + ", " + votes_of(approval) + " approvals");
  if (approval.is_pending()) {
    line("expires", time_from_now(approval.expires_at, now) + " (" + escape_for_terminal(approval.expires_at) + ")");
  }
  line("asked by", asked_by(approval));
  line("on behalf of", escape_for_terminal(approval.on_behalf_of));
  if (approval.after_untrusted_text) {
    line("warning", styled("asked after reading text that anybody may have written: look twice", Style::bad, color));
  }
  line("asked at", escape_for_terminal(approval.created_at));
  line("call", styled(escape_for_terminal(approval.target()), Style::heading, color));
  line("tier", escape_for_terminal(approval.tier));
  line("agent's key", escape_for_terminal(approval.agent_key));
  line("digest", escape_for_terminal(approval.digest));
  line("request id", escape_for_terminal(approval.request_id));
  for (const VoteView& vote : approval.votes)
    line("approved", vote_line(vote, "by"));
  if (approval.refusal) line(status, vote_line(*approval.refusal, "by"));
  if (!approval.outcome.empty()) {
    std::string reason = approval.reason.empty() ? "" : " (" + escape_for_terminal(approval.reason) + ")";
    line("outcome", escape_for_terminal(approval.outcome) + reason);
  }
  return text + arguments_text(approval);
}

}  // namespace hive::cli
