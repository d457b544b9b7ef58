#include "cli/call_command.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/approval_view.h"
#include "cli/approval_wait.h"
#include "cli/call_report.h"
#include "cli/doctor.h"
#include "cli/json_fields.h"
#include "cli/json_text.h"

namespace hive::cli {

namespace {

std::string request_body(const CallPlan& plan, std::string_view arguments, const GlobalOptions& options,
                         std::chrono::seconds wait_online) {
  std::string body = "{\"name\":" + json::encode_string(plan.tool);
  body += ",\"arguments\":";
  body += arguments;
  if (options.timeout) body += fmt::format(",\"timeout_ms\":{}", options.timeout->count());
  if (wait_online.count() > 0) body += fmt::format(",\"wait_seconds\":{}", wait_online.count());
  return body + "}";
}

/// Says that the call waits for other people, and for whom, or waits with it.
ExitCode report_pending(Context& context, const CallOptions& options, const GatewayClient& gateway,
                        const net::http::ClientResponse& response) {
  auto fields = JsonFields::parse(response.body, "answer that the call waits for an approval");
  if (!fields) return fail_call(context, {ExitCode::error, fields.error().message});
  std::string id = fields->text("approval_id");
  std::string expires = fields->text("expires_at");
  std::int64_t required = std::max<std::int64_t>(fields->number("required"), 1);
  std::string tier = fields->text("tier");
  std::string what = fmt::format("waits{} for the approval of {}{}{}; nothing ran yet",
                                 id.empty() ? "" : " as " + escape_for_terminal(id),
                                 required == 1 ? "a second person" : fmt::format("{} other people", required),
                                 tier.empty() ? "" : " (tier " + escape_for_terminal(tier) + ")",
                                 expires.empty() ? "" : " until " + escape_for_terminal(expires));
  if (!is_approval_id(id)) return fail_call(context, {ExitCode::pending_approval, what});
  what += fmt::format(". They say `myrmex approvals approve {}`", id.substr(0, shown_id_digits));
  if (!options.wait) {
    if (context.format.json) context.output.write(pretty_json(response.body));
    return context.fail_with({ExitCode::pending_approval, what + "; " + how_to_follow(id)});
  }
  context.output.note("myrmex: " + what + "; waiting");
  return report_approved_call(context, gateway, id,
                              {.wait = options.wait, .raw = options.raw, .expires_at = parse_rfc3339(expires)});
}

/// What is for one agent alone, or for many.
std::optional<std::string> misplaced_option(const CallOptions& options) {
  const FanOutOptions& many = options.fan_out;
  if (many.all && !(many.agents.empty() && many.tags.empty())) {
    return "call: --all stands alone: leave out --agents and --tag, or --all";
  }
  if (many.names_agents()) {
    if (!options.progress && !options.raw && !options.wait) return std::nullopt;
    return "call: --progress, --raw and --wait are for one agent; for many, each result comes as a line";
  }
  bool is_for_many = many.with_offline || many.concurrency || many.deadline || many.stop_after > 0 || many.group ||
                     many.dry_run || many.yes;
  if (!is_for_many) return std::nullopt;
  return "call: --offline, --concurrency, --deadline, --stop-after, --group, --dry-run and --yes are for many agents: "
         "name them by --agents, --tag or --all (`myrmex explain` is the dry run for one)";
}

}  // namespace

ExitCode run_call(Context& context, const CallOptions& options) {
  if (auto wrong = misplaced_option(options)) return fail_call(context, {ExitCode::usage, *wrong});
  if (options.fan_out.names_agents()) {
    FanOutOptions many = options.fan_out;
    many.wait_online = options.wait_online;
    return run_fan_out(context, options.call, many);
  }
  if (auto refused = refuse_raw_on_terminal(context, options.raw, "call")) return fail_call(context, *refused);
  auto plan = make_call_plan(options.call, "call");
  if (!plan) return fail_call(context, {ExitCode::usage, plan.error().message});
  plan->may_wait = options.wait_online.count() > 0;
  auto gateway = context.gateway();
  if (!gateway) return fail_call(context, gateway.error());
  auto arguments = planned_arguments(*gateway, *plan, "call");
  if (!arguments) return fail_call(context, arguments.error());

  ProgressPrinter progress;
  std::string streamed_answer;
  GatewayClient::CallRequest request{.body = request_body(*plan, *arguments, context.options, options.wait_online),
                                     .timeout = context.options.timeout.value_or(std::chrono::milliseconds(0)),
                                     .on_event = nullptr,
                                     .wait = options.wait_online};
  if (options.progress) {
    request.on_event = [&](std::string_view name, std::string_view data) {
      if (name == "result") {
        streamed_answer = data;
      } else if (name == "progress") {
        std::string text = progress.take(data);
        if (!context.format.json && !options.raw) context.output.write(text);
      }
    };
  }
  auto response = gateway->call(std::move(request));
  if (!response) {
    if (response.error().code == ExitCode::interrupted) {
      return fail_call(context,
                       {ExitCode::interrupted, "cancelled: the connection is closed, and the gateway ends the call"});
    }
    return fail_call(context, response.error());
  }
  if (response->status == 202) return report_pending(context, options, *gateway, *response);
  if (response->status != 200) return fail_call(context, gateway->failure_from(*response, true));
  if (streamed_answer.empty() && response->body.empty()) {
    return fail_call(context, {ExitCode::unsettled,
                               "the gateway ended the answer without a result: whether the call ran "
                               "is unknown; the audit log will tell"});
  }
  auto answer = parse_call_answer(streamed_answer.empty() ? response->body : streamed_answer,
                                  response->header("myrmex-outcome"), response->header("myrmex-reason"));
  if (!answer) return fail_call(context, {ExitCode::error, answer.error().message});
  return report_answer(context, options.raw, *answer, progress);
}

}  // namespace hive::cli
