#include "cli/approval_wait.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/json_fields.h"
#include "cli/pause.h"

namespace hive::cli {

namespace {

/// The gateway holds an answer for 30 s at most; proxies in between tend to give up after that.
constexpr std::chrono::milliseconds longest_poll = std::chrono::seconds(25);
constexpr std::chrono::milliseconds answer_grace = std::chrono::seconds(10);

/// Whether asking again can help: the gateway restarts, or has too much to do. How the call ended stays as it is,
/// whatever its status: one that could not be recorded is a 503 for good.
bool is_passing(const Result<net::http::ClientResponse>& response) {
  if (response && !response->header("myrmex-outcome").empty() && response->header("myrmex-reason") != "draining") {
    return false;
  }
  if (response) return response->status == 429 || (response->status >= 502 && response->status <= 504);
  ErrorCode code = response.error().code;
  return code == ErrorCode::unavailable || code == ErrorCode::timed_out || code == ErrorCode::io;
}

}  // namespace

std::expected<ApprovalResult, Failure> await_result(Context& context, const GatewayClient& gateway,
                                                    const std::string& id, const ResultWait& wait) {
  Backoff backoff(std::chrono::milliseconds(250), std::chrono::seconds(5));
  while (true) {
    SteadyTime asked_at = context.clock->steady_now();
    std::chrono::milliseconds patience = wait.once ? std::chrono::milliseconds(0) : longest_poll;
    if (wait.deadline) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(*wait.deadline - asked_at);
      patience = std::clamp(left, std::chrono::milliseconds(0), patience);
    }
    auto response =
        gateway.get(fmt::format("/api/approvals/{}/result?wait_ms={}", id, patience.count()), patience + answer_grace);
    SteadyTime now = context.clock->steady_now();
    bool is_last = wait.once || (wait.deadline && now >= *wait.deadline);
    if (response && response->status == 200) return ApprovalResult{*std::move(response), ""};
    if (response && response->status == 202) {
      auto fields = JsonFields::parse(response->body, "answer about the request");
      if (!fields) return std::unexpected(Failure{ExitCode::error, fields.error().message});
      if (is_last) return ApprovalResult{std::nullopt, fields->text("status")};
      // A gateway that holds the answer back needs no pause; one that does not must not be asked without end.
      if (now - asked_at >= patience / 2) {
        backoff.reset();
        continue;
      }
    } else if (!is_passing(response) || is_last || now >= wait.unreachable_until) {
      if (response) return std::unexpected(gateway.failure_from(*response, true));
      return std::unexpected(gateway.failure_from(response.error(), false));
    }
    std::chrono::milliseconds pause = backoff.next();
    if (wait.deadline) {
      pause = std::min(pause, std::chrono::ceil<std::chrono::milliseconds>(*wait.deadline - now));
    }
    if (!pause_for(std::max(pause, std::chrono::milliseconds(1)), context.cancel_fd)) {
      return std::unexpected(Failure{ExitCode::interrupted, "interrupted"});
    }
  }
}

std::string how_to_follow(std::string_view id) {
  std::string brief = escape_for_terminal(id.substr(0, shown_id_digits));
  return fmt::format(
      "`myrmex approvals result {} --wait` fetches the result, `myrmex approvals withdraw {}` takes it back", brief,
      brief);
}

}  // namespace hive::cli
