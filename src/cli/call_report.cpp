#include "cli/call_report.h"

#include "base/strings.h"
#include "cli/approval_wait.h"
#include "protocol/agent_protocol.h"

namespace hive::cli {

namespace {

/// How long a gateway may be away while nothing is known of the request's own end.
constexpr std::chrono::minutes longest_absence{15};
constexpr std::chrono::minutes shortest_absence{1};

/// The outcome of a call that has no answer, in the words of the protocol.
protocol::Outcome outcome_of(const Failure& failure) {
  if (failure.outcome) return *failure.outcome;
  switch (failure.code) {
    case ExitCode::interrupted:
      return protocol::Outcome::cancelled;
    case ExitCode::usage:
    case ExitCode::denied:
    case ExitCode::unreachable:
    case ExitCode::not_authenticated:
      return protocol::Outcome::denied;
    default:
      return protocol::Outcome::unknown;
  }
}

std::string_view reason_of(const Failure& failure) {
  if (!failure.reason.empty()) return failure.reason;
  switch (failure.code) {
    case ExitCode::interrupted:
      return "interrupted";
    case ExitCode::usage:
      return "usage";
    case ExitCode::unreachable:
      return "unreachable";
    case ExitCode::not_authenticated:
      return "not_authenticated";
    case ExitCode::unsettled:
      return "no_answer";
    default:
      return "error";
  }
}

/// How long a gateway that is away is asked again.
SteadyTime unreachable_until(const Context& context, const ApprovedCall& call) {
  SteadyTime now = context.clock->steady_now();
  if (!call.expires_at) return now + longest_absence;
  std::chrono::nanoseconds left = *call.expires_at - context.clock->wall_now();
  return now + std::max<std::chrono::nanoseconds>(left, std::chrono::seconds(0)) + shortest_absence;
}

}  // namespace

ExitCode report_answer(Context& context, bool raw, const CallAnswer& answer, const ProgressPrinter& progress) {
  // Then the line on standard error says it all.
  bool is_refusal = !answer.raw_error.empty() ||
                    (answer.outcome == protocol::Outcome::denied &&
                     (answer.texts.empty() || answer.texts.front().starts_with(protocol::rejected_marker)));
  if (context.format.json && answer.outcome != protocol::Outcome::success) {
    context.output.write(json_failure(answer));
  } else if (is_refusal) {
    if (progress.has_printed() && !raw) context.output.write("\n");
  } else if (raw) {
    for (const std::string& text : answer.texts)
      context.output.write(text);
  } else if (context.format.json) {
    context.output.write(json_output(answer));
  } else {
    context.output.write(progress.rest_of(answer));
  }
  ExitCode code = exit_code_for(answer.outcome, answer.reason);
  if (code != ExitCode::success) context.output.note("myrmex: " + reason_line(answer));
  return code;
}

ExitCode fail_call(Context& context, const Failure& failure) {
  if (context.format.json) {
    context.output.write(json_failure(protocol::to_string(outcome_of(failure)), reason_of(failure), failure.message));
  }
  return context.fail_with(failure);
}

ExitCode report_approved_call(Context& context, const GatewayClient& gateway, const std::string& id,
                              const ApprovedCall& call) {
  ResultWait wait{
      .deadline = std::nullopt, .unreachable_until = unreachable_until(context, call), .once = !call.wait.has_value()};
  if (call.wait && call.wait->count() > 0) {
    wait.deadline = context.clock->steady_now() + *call.wait;
    wait.unreachable_until = *wait.deadline;
  }
  auto result = await_result(context, gateway, id, wait);
  if (!result) {
    if (result.error().code == ExitCode::interrupted) {
      result.error().message = "interrupted; the request stays in place: " + how_to_follow(id);
      result.error().outcome = protocol::Outcome::unknown;
    }
    return fail_call(context, result.error());
  }
  if (!result->response) {
    bool runs = result->status == "running";
    return fail_call(context, {.code = ExitCode::pending_approval,
                               .message = fmt::format("request {} {}: {}", escape_for_terminal(id),
                                                      runs ? "is approved, and its call still runs"
                                                           : "still waits for an approval, and nothing ran yet",
                                                      how_to_follow(id)),
                               .outcome = protocol::Outcome::unknown,
                               .reason = runs ? "running" : "pending_approval"});
  }
  auto answer = parse_call_answer(result->response->body, result->response->header("myrmex-outcome"),
                                  result->response->header("myrmex-reason"));
  if (!answer) return fail_call(context, {ExitCode::error, answer.error().message});
  return report_answer(context, call.raw, *answer, ProgressPrinter());
}

std::optional<Failure> refuse_raw_on_terminal(const Context& context, bool raw, std::string_view command) {
  if (!raw || !context.output.is_terminal()) return std::nullopt;
  return Failure{
      ExitCode::usage,
      fmt::format("{}: --raw writes remote bytes as they are, which could steer this terminal: send the output "
                  "to a file or a pipe",
                  command)};
}

}  // namespace hive::cli
