#include "gateway/surfaces/rest/call_address.h"

namespace hive::rest {

void address_call(const Context& context, std::string_view name, calls::Call& call) {
  calls::ToolAddress address = calls::split_tool_name(name);
  call.agent = address.agent;
  call.tool = address.tool;
  const Dependencies& given = context.services->dependencies;
  if (given.upstreams == nullptr || given.fleet.find(address.agent)) return;
  if (auto tool = given.upstreams->find_tool(name)) {
    call.target = calls::TargetKind::upstream;
    call.agent = tool->upstream;
    call.tool = tool->name;
  } else if (given.upstreams->has(address.agent)) {
    // Not offered, perhaps held back: the gates and the server have the word, and the log keeps it.
    call.target = calls::TargetKind::upstream;
  }
}

}  // namespace hive::rest
