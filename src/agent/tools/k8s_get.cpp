#include "agent/arguments.h"
#include "agent/command_tool.h"
#include "agent/tools/tools.h"

namespace hive::agent {

namespace {

// One resource type as kubectl names it: no list, no object name.
bool is_resource_type(std::string_view text) {
  if (!is_plain_name(text, ".-") || text.front() < 'a' || text.front() > 'z') return false;
  return text.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos;
}

}  // namespace

CancelHook k8s_get(ToolServices& services, ToolCall call) {
  Arguments arguments = HIVE_TRY_ARGUMENT(call, Arguments::parse(call.arguments, "k8s_get", false));
  std::string resource = HIVE_TRY_ARGUMENT(call, arguments.required_string("resource"));
  std::string name_space = HIVE_TRY_ARGUMENT(call, arguments.string("namespace")).value_or("");
  if (!is_resource_type(resource)) {
    call.reply(invalid_arguments("Invalid resource: use one resource type in lower case, for example pods"));
    return {};
  }
  std::vector<std::string> args = {"get", resource};
  if (!name_space.empty()) {
    if (!is_plain_name(name_space, "._-")) {
      call.reply(
          invalid_arguments("Invalid namespace: use letters, digits and . _ -, starting with a letter or digit"));
      return {};
    }
    args.insert(args.end(), {"-n", name_space});
  }
  return run_allowlisted(services, std::move(call), "kubectl", args);
}

}  // namespace hive::agent
