#include "agent/arguments.h"
#include "agent/command_tool.h"
#include "agent/tools/tools.h"

namespace hive::agent {

CancelHook container_ps(ToolServices& services, ToolCall call) {
  Arguments arguments = HIVE_TRY_ARGUMENT(call, Arguments::parse(call.arguments, "container_ps", true));
  bool all = HIVE_TRY_ARGUMENT(call, arguments.boolean("all"));
  std::vector<std::string> args = {"ps"};
  if (all) args.emplace_back("-a");
  return run_allowlisted(services, std::move(call), "docker", args);
}

}  // namespace hive::agent
