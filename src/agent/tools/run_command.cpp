#include "agent/arguments.h"
#include "agent/command_tool.h"
#include "agent/tools/tools.h"
#include "base/strings.h"
#include "protocol/json.h"

namespace hive::agent {

CancelHook run_command(ToolServices& services, ToolCall call) {
  Arguments arguments = HIVE_TRY_ARGUMENT(call, Arguments::parse(call.arguments, "run_command", false));
  std::string name = HIVE_TRY_ARGUMENT(call, arguments.required_string("name"));
  std::vector<std::string> args = HIVE_TRY_ARGUMENT(call, arguments.strings("args"));
  bool dry_run = HIVE_TRY_ARGUMENT(call, arguments.boolean("dry_run"));
  if (!dry_run) return run_allowlisted(services, std::move(call), name, args);

  auto approved = services.allowlist.check(name, args);
  if (!approved) {
    call.reply(refusal_reply(approved.error()));
    return {};
  }
  std::string shown = approved->path;
  for (const std::string& argument : approved->args)
    shown += " " + argument;
  ToolReply reply;
  reply.text = "[dry-run] approved, not executed: " + shown;
  reply.structured = fmt::format(R"({{"dry_run":true,"command":{}}})", json::encode_string(shown));
  call.reply(std::move(reply));
  return {};
}

}  // namespace hive::agent
