#include "gateway/surfaces/rest/access_refusal.h"

namespace hive::rest {

void refuse_access(const Context& context, std::string_view reason, std::string what, std::string message) {
  audit::Record entry;
  entry.action = "access_denied";
  entry.request_id = context.request_id;
  entry.principal = context.principal.name;
  entry.role = policy::to_string(context.principal.role);
  entry.outcome = protocol::Outcome::denied;
  entry.reason = reason;
  entry.detail = std::move(what);
  context.services->record_refusal(std::move(entry));
  context.refuse({403, reason, std::move(message)});
}

bool check_reach(const Context& context, const Route& route) {
  if (!route.whole_fleet || context.principal.scope() == nullptr) return true;
  refuse_access(context, "scope", fmt::format("{} {}", route.method, route.path),
                fmt::format("{} {} concerns the whole fleet, and this credential reaches a part of it ({})",
                            route.method, route.path, context.principal.scope()->field));
  return false;
}

}  // namespace hive::rest
