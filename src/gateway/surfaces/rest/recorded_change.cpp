#include "gateway/surfaces/rest/recorded_change.h"

namespace hive::rest {

bool can_be_recorded(const Context& context) {
  const audit::Log* log = context.services->dependencies.log;
  std::string problem;
  if (log == nullptr) {
    problem = "there is no audit log; set audit_log_path in the gateway's configuration";
  } else if (Result<void> health = log->health(); !health) {
    problem = "the audit log cannot be written: " + health.error().message;
  }
  if (problem.empty()) return true;
  context.refuse({503, "audit_unavailable", "nothing is changed that cannot be recorded: " + problem});
  return false;
}

audit::Record change_entry(const Context& context, std::string action, std::string agent) {
  audit::Record entry;
  entry.action = std::move(action);
  entry.request_id = context.request_id;
  entry.principal = context.principal.name;
  entry.role = policy::to_string(context.principal.role);
  entry.agent = std::move(agent);
  entry.outcome = protocol::Outcome::success;
  return entry;
}

}  // namespace hive::rest
