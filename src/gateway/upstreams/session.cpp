#include "gateway/upstreams/session.h"

#include "protocol/json.h"
#include "protocol/mcp/message.h"

namespace hive::upstreams {

std::string bridged_capabilities(std::string_view raw_capabilities) {
  auto members = json::parse_object(raw_capabilities, mcp::message_limits).value_or(std::vector<json::Member>());
  std::string bridged = "{";
  for (std::string_view name : {"elicitation", "roots", "sampling"}) {
    auto value = json::find(members, name);
    if (!value || !json::is_object(*value)) continue;
    if (bridged.size() > 1) bridged += ',';
    json::append_string(bridged, name);
    bridged += ':';
    // A change of the caller's roots is not passed on, so it is not promised.
    bridged += name == "roots" ? std::string_view("{}") : *value;
  }
  return bridged + "}";
}

bool needs_own_session(const Caller& caller) {
  return caller.log_level().has_value() || bridged_capabilities(caller.capabilities()) != "{}";
}

std::string session_key(const Caller& caller) {
  return caller.key() + '\0' + bridged_capabilities(caller.capabilities());
}

}  // namespace hive::upstreams
