#include "cli/exit_code.h"

namespace hive::cli {

ExitCode exit_code_for(protocol::Outcome outcome, std::string_view reason) {
  using protocol::Outcome;
  bool never_arrived = outcome == Outcome::denied || outcome == Outcome::failure || outcome == Outcome::expired;
  if (never_arrived && (reason == "agent_offline" || reason == "agent_unknown" || reason == "draining")) {
    return ExitCode::unreachable;
  }
  switch (outcome) {
    case Outcome::success:
      return ExitCode::success;
    case Outcome::denied:
      return ExitCode::denied;
    case Outcome::failure:
      return ExitCode::failure;
    case Outcome::cancelled:
    case Outcome::expired:
    case Outcome::unknown:
      return ExitCode::unsettled;
  }
  return ExitCode::error;
}

ExitCode exit_code_for_status(unsigned status, bool may_have_run) {
  switch (status) {
    case 202:
      return ExitCode::pending_approval;
    case 401:
      return ExitCode::not_authenticated;
    case 403:
    case 429:
      return ExitCode::denied;
    case 410:  // a request for approval that nobody decided in time
      return ExitCode::unsettled;
    case 502:
    case 503:
      return ExitCode::unreachable;
    case 504:
      return may_have_run ? ExitCode::unsettled : ExitCode::unreachable;
    default:
      return ExitCode::error;
  }
}

}  // namespace hive::cli
