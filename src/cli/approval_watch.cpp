#include "cli/approval_watch.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/json_fields.h"
#include "cli/json_text.h"
#include "cli/pause.h"

namespace hive::cli {

namespace {

constexpr std::chrono::milliseconds shortest_interval = std::chrono::seconds(1);
/// A list that takes long to get is asked for less often, so that watching costs the gateway a twentieth of a core at
/// most.
constexpr int interval_per_effort = 20;

std::string_view event_of_status(std::string_view status) {
  for (std::string_view known : {"approved", "rejected", "withdrawn", "expired"}) {
    if (status == known) return known;
  }
  return status == "running" ? "approved" : "changed";
}

std::string detail_of(const ApprovalEvent& event, WallTime now) {
  const ApprovalView& approval = *event.approval;
  if (event.what == "new") {
    return fmt::format("{} asks for {} (tier {}), expires {}: `myrmex approvals show {}`",
                       escape_for_terminal(approval.who()), escape_for_terminal(approval.target()),
                       escape_for_terminal(approval.tier), time_from_now(approval.expires_at, now),
                       escape_for_terminal(approval.id.substr(0, shown_id_digits)));
  }
  std::string what =
      fmt::format("{} for {}", escape_for_terminal(approval.target()), escape_for_terminal(approval.who()));
  if (event.what == "ended") {
    return fmt::format("{}: {}{}", what, escape_for_terminal(approval.outcome),
                       approval.reason.empty() ? "" : " (" + escape_for_terminal(approval.reason) + ")");
  }
  const VoteView* by = approval.refusal         ? &*approval.refusal
                       : approval.votes.empty() ? nullptr
                                                : &approval.votes.back();
  if (by == nullptr || event.what == "expired") return what;
  std::string text = fmt::format("{}, by {}", what, escape_for_terminal(by->who()));
  if (!approval.refusal) text += ", " + votes_of(approval);
  if (!by->comment.empty()) text += ": " + escape_for_terminal(by->comment);
  return text;
}

Style style_of(std::string_view what) {
  if (what == "new") return Style::warning;
  if (what == "approved") return Style::good;
  return what == "rejected" || what == "expired" ? Style::bad : Style::plain;
}

std::string as_line(const ApprovalEvent& event, const Context& context) {
  WallTime now = context.clock->wall_now();
  if (context.format.json) {
    return json_line(fmt::format(R"({{"event":"{}","time":"{}","approval":{}}})", event.what, format_rfc3339(now),
                                 event.approval->raw));
  }
  // Padded first: the codes of a colour have no width.
  std::string what = styled(fmt::format("{:<9}", event.what), style_of(event.what), context.format.color);
  return fmt::format("{}  {}  {}  {}\n", format_rfc3339(now).substr(11, 8), what,
                     escape_for_terminal(event.approval->id.substr(0, shown_id_digits)), detail_of(event, now));
}

/// Whether a later look may go better.
bool is_passing(const Failure& failure) {
  return failure.code == ExitCode::unreachable || failure.code == ExitCode::unsettled ||
         failure.reason == "rate_limited";
}

}  // namespace

std::vector<ApprovalEvent> ApprovalNews::take(const std::vector<ApprovalView>& approvals) {
  std::vector<ApprovalEvent> events;
  std::map<std::string, Seen, std::less<>> now;
  // Lists have the newest first, but news is told in the order in which it happened.
  for (auto it = approvals.rbegin(); it != approvals.rend(); ++it) {
    const ApprovalView& approval = *it;
    Seen current{approval.status, approval.votes.size(), !approval.outcome.empty()};
    auto before = seen_.find(approval.id);
    if (before == seen_.end()) {
      // One that was asked and decided between two looks is told as both.
      if (approval.is_pending() || !is_first_) events.push_back({"new", &approval});
      if (!is_first_ && !approval.is_pending()) events.push_back({event_of_status(approval.status), &approval});
      if (!is_first_ && current.has_ended) events.push_back({"ended", &approval});
    } else {
      if (before->second.status != current.status) {
        events.push_back({event_of_status(approval.status), &approval});
      } else if (before->second.votes < current.votes) {
        events.push_back({"vote", &approval});
      }
      if (!before->second.has_ended && current.has_ended) events.push_back({"ended", &approval});
    }
    now.emplace(approval.id, std::move(current));
  }
  seen_ = std::move(now);
  is_first_ = false;
  return events;
}

ExitCode run_approvals_watch(Context& context) {
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  ApprovalNews news;
  Backoff backoff(std::chrono::milliseconds(500), std::chrono::seconds(30));
  bool is_away = false;
  while (context.output.write_error() == 0) {
    SteadyTime asked_at = context.clock->steady_now();
    auto body = gateway->get_json("/api/approvals?status=all");
    std::chrono::milliseconds pause{0};
    if (body) {
      if (std::exchange(is_away, false)) context.output.note("myrmex: the gateway answers again");
      auto approvals = parse_approvals(*body);
      if (!approvals) return context.fail_with({ExitCode::error, approvals.error().message});
      for (const ApprovalEvent& event : news.take(*approvals))
        context.output.write(as_line(event, context));
      backoff.reset();
      auto effort = std::chrono::ceil<std::chrono::milliseconds>(context.clock->steady_now() - asked_at);
      pause = jittered(std::max(shortest_interval, effort * interval_per_effort));
    } else if (body.error().code == ExitCode::interrupted) {
      return ExitCode::interrupted;
    } else if (!is_passing(body.error())) {
      return context.fail_with(body.error());
    } else {
      if (!std::exchange(is_away, true)) context.output.note("myrmex: " + body.error().message + "; trying again");
      pause = backoff.next();
    }
    if (!pause_for(pause, context.cancel_fd)) return ExitCode::interrupted;
  }
  return ExitCode::error;
}

}  // namespace hive::cli
