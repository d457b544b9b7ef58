#include "cli/approval_commands.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/approval_view.h"
#include "cli/approval_wait.h"
#include "cli/call_report.h"
#include "cli/json_fields.h"
#include "cli/json_text.h"
#include "cli/prompt.h"

namespace hive::cli {

namespace {

constexpr std::size_t id_length = 32;
constexpr std::size_t shortest_prefix = 4;

Failure unreadable(const Error& error) {
  return {ExitCode::error, error.message};
}

bool is_hexadecimal(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::expected<std::vector<ApprovalView>, Failure> fetch_list(const GatewayClient& gateway, bool all) {
  auto body = gateway.get_json(all ? "/api/approvals?status=all" : "/api/approvals?status=pending");
  if (!body) return std::unexpected(body.error());
  auto approvals = parse_approvals(*body);
  if (!approvals) return std::unexpected(unreadable(approvals.error()));
  return *std::move(approvals);
}

/// The whole id that `text` is the beginning of.
std::expected<std::string, Failure> resolve_id(const GatewayClient& gateway, const std::string& text) {
  if (text.size() < shortest_prefix || text.size() > id_length || !is_hexadecimal(text)) {
    return std::unexpected(Failure{
        ExitCode::usage, fmt::format("approvals: {} is not the id of a request: give its {} hexadecimal digits, "
                                     "or at least the first {}; `myrmex approvals` lists them",
                                     quote(text.substr(0, 2 * id_length)), id_length, shortest_prefix)});
  }
  if (text.size() == id_length) return text;
  auto approvals = fetch_list(gateway, true);
  if (!approvals) return std::unexpected(approvals.error());
  std::vector<std::string> matches;
  for (const ApprovalView& approval : *approvals) {
    if (approval.id.starts_with(text)) matches.push_back(approval.id);
  }
  // It becomes part of a path.
  std::erase_if(matches, [](const std::string& id) { return !is_approval_id(id); });
  if (matches.size() == 1) return matches.front();
  if (matches.empty()) {
    return std::unexpected(Failure{
        ExitCode::error,
        fmt::format("approvals: no request that you may see begins with {}; `myrmex approvals list --all` lists them",
                    text)});
  }
  return std::unexpected(Failure{
      ExitCode::usage, fmt::format("approvals: {} requests begin with {}: give more digits", matches.size(), text)});
}

std::expected<ApprovalView, Failure> fetch_one(const GatewayClient& gateway, const std::string& id) {
  auto body = gateway.get_json("/api/approvals/" + id);
  if (!body) return std::unexpected(body.error());
  auto approval = parse_approval(*body);
  if (!approval) return std::unexpected(unreadable(approval.error()));
  if (approval->id != id) {
    return std::unexpected(Failure{ExitCode::error, "the gateway answered with another request than " + id});
  }
  return *std::move(approval);
}

std::string_view word_of(ApprovalDecision decision) {
  switch (decision) {
    case ApprovalDecision::approve:
      return "approve";
    case ApprovalDecision::reject:
      return "reject";
    case ApprovalDecision::withdraw:
      return "withdraw";
  }
  return "";
}

/// How the command is called on the command line.
std::string_view command_of(ApprovalDecision decision) {
  return decision == ApprovalDecision::reject ? "deny" : word_of(decision);
}

std::string ended_text(const ApprovalView& approval) {
  std::string text = fmt::format("request {} is not pending any more, but {}", escape_for_terminal(approval.id),
                                 escape_for_terminal(approval.status));
  if (approval.refusal) return text + " by " + escape_for_terminal(approval.refusal->who());
  if (!approval.votes.empty()) return text + " by " + escape_for_terminal(approval.votes.back().who());
  return text;
}

/// What is about to be decided: shown to whoever sits there, who then says yes; or settled by --yes and the digest.
std::optional<Failure> agree(Context& context, ApprovalDecision decision, const DecideOptions& options,
                             const ApprovalView& approval) {
  if (!options.digest.empty() && options.digest != approval.digest) {
    return Failure{ExitCode::error,
                   fmt::format("request {} has another digest than the one given: look at it again with "
                               "`myrmex approvals show {}`",
                               approval.id, approval.id)};
  }
  if (decision == ApprovalDecision::withdraw) return std::nullopt;
  if (options.yes) {
    // Lists show only the beginning of arguments that are this long, so whoever decided from a list has not seen them.
    bool was_cut = approval.arguments_bytes > listed_argument_bytes || approval.hidden_bytes > 0;
    if (decision == ApprovalDecision::approve && was_cut && options.digest.empty()) {
      return Failure{
          ExitCode::usage,
          fmt::format("the arguments are {} bytes, more than lists show: read them with `myrmex approvals show "
                      "{}`, then give the digest that it prints with --digest",
                      approval.arguments_bytes, approval.id)};
    }
    return std::nullopt;
  }
  if (!can_ask()) {
    return Failure{ExitCode::usage,
                   fmt::format("approvals {}: nobody can be asked here, because standard input is no terminal: look at "
                               "the request with `myrmex approvals show {}`, then add --yes",
                               command_of(decision), approval.id)};
  }
  context.output.note(approval_details(approval, context.clock->wall_now(), context.format.color));
  auto answer = ask_line(decision == ApprovalDecision::approve ? "Approve exactly this? [y/N] " : "Deny it? [y/N] ",
                         true, context.cancel_fd);
  if (!answer) {
    bool cancelled = answer.error().code == ErrorCode::cancelled;
    return Failure{cancelled ? ExitCode::interrupted : ExitCode::error,
                   answer.error().message + "; nothing was decided"};
  }
  std::string_view word = trim(*answer);
  if (word == "y" || word == "Y" || word == "yes") return std::nullopt;
  return Failure{ExitCode::error, "nothing was decided"};
}

std::string decided_text(ApprovalDecision decision, const ApprovalView& approval, const JsonFields& reply) {
  std::string what =
      fmt::format("{} for {}", escape_for_terminal(approval.target()), escape_for_terminal(approval.who()));
  switch (decision) {
    case ApprovalDecision::reject:
      return "denied: " + what + "\n";
    case ApprovalDecision::withdraw:
      return "withdrawn: " + what + "\n";
    case ApprovalDecision::approve:
      break;
  }
  std::int64_t given = reply.number("approvals");
  std::int64_t required = std::max<std::int64_t>(reply.number("required"), 1);
  if (reply.text("status") == "pending") {
    return fmt::format("approved, {} of {}: {} waits for more people\n", given, required, what);
  }
  return fmt::format("approved, {} of {}: {} runs now; `myrmex approvals result {}` shows how it ends\n", given,
                     required, what, approval.id.substr(0, shown_id_digits));
}

}  // namespace

ExitCode run_approvals_list(Context& context, bool all) {
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  auto body = gateway->get_json(all ? "/api/approvals?status=all" : "/api/approvals?status=pending");
  if (!body) return context.fail_with(body.error());
  auto approvals = parse_approvals(*body);
  if (!approvals) return context.fail_with(unreadable(approvals.error()));
  if (context.format.json) {
    context.output.write(pretty_json(*body));
  } else if (approvals->empty()) {
    context.output.write(all ? "No request is kept.\n" : "Nothing waits for an approval.\n");
  } else {
    context.output.write(
        approvals_table(*approvals, all, context.clock->wall_now(), context.output.width(), context.format.color));
  }
  return ExitCode::success;
}

ExitCode run_approvals_show(Context& context, const std::string& id) {
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  auto whole_id = resolve_id(*gateway, id);
  if (!whole_id) return context.fail_with(whole_id.error());
  auto approval = fetch_one(*gateway, *whole_id);
  if (!approval) return context.fail_with(approval.error());
  context.output.write(context.format.json
                           ? pretty_json(approval->raw)
                           : approval_details(*approval, context.clock->wall_now(), context.format.color));
  return ExitCode::success;
}

ExitCode run_approvals_decide(Context& context, ApprovalDecision decision, const DecideOptions& options) {
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  auto id = resolve_id(*gateway, options.id);
  if (!id) return context.fail_with(id.error());
  auto approval = fetch_one(*gateway, *id);
  if (!approval) return context.fail_with(approval.error());
  if (!approval->is_pending()) {
    return context.fail_with(
        {approval->status == "expired" ? ExitCode::unsettled : ExitCode::error, ended_text(*approval)});
  }
  if (auto refused = agree(context, decision, options, *approval)) return context.fail_with(*refused);

  std::string body = "{\"id\":" + json::encode_string(*id);
  body += ",\"decision\":" + json::encode_string(word_of(decision));
  body += ",\"digest\":" + json::encode_string(approval->digest);
  if (!options.comment.empty()) body += ",\"comment\":" + json::encode_string(options.comment);
  auto reply = gateway->post_json("/api/approvals", body + "}");
  if (!reply) return context.fail_with(reply.error());
  auto fields = JsonFields::parse(*reply, "answer to the decision");
  if (!fields) return context.fail_with(unreadable(fields.error()));
  context.output.write(context.format.json ? pretty_json(*reply) : decided_text(decision, *approval, *fields));
  return ExitCode::success;
}

ExitCode run_approvals_result(Context& context, const ResultOptions& options) {
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  if (auto refused = refuse_raw_on_terminal(context, options.raw, "approvals result")) {
    return context.fail_with(*refused);
  }
  auto id = resolve_id(*gateway, options.id);
  if (!id) return context.fail_with(id.error());
  return report_approved_call(context, *gateway, *id, {.wait = options.wait, .raw = options.raw});
}

Result<std::chrono::milliseconds> parse_wait(const std::string& text) {
  // What the parser makes of a flag without a value.
  if (text == "true") return std::chrono::milliseconds(0);
  auto seconds = parse_int64(text);
  if (!seconds || *seconds < 1 || *seconds > 604'800) {
    return fail(ErrorCode::invalid_argument, "{} is not a whole number of seconds from 1 to 604800", quote(text));
  }
  return std::chrono::seconds(*seconds);
}

}  // namespace hive::cli
