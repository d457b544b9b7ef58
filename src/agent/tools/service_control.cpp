#include <algorithm>
#include <array>

#include "agent/arguments.h"
#include "agent/command_tool.h"
#include "agent/tools/tools.h"
#include "base/strings.h"
#include "protocol/json.h"

namespace hive::agent {

namespace {

constexpr std::array<std::string_view, 4> actions = {"start", "stop", "restart", "status"};

// systemctl(1): "unit is not active" for status; the question was answered, so this is no failure.
constexpr int not_active_exit_code = 3;

// The word after "Active:" in what `systemctl status` prints.
std::string_view state_in(std::string_view output) {
  for (std::string_view line : split(output, '\n')) {
    line = trim(line);
    if (!line.starts_with("Active:")) continue;
    line = trim(line.substr(std::string_view("Active:").size()));
    return line.substr(0, line.find(' '));
  }
  return {};
}

ToolReply judge_status(const exec::CommandResult& result, ToolReply reply) {
  bool answered =
      result.ending == exec::Ending::exited && (result.exit_code == 0 || result.exit_code == not_active_exit_code);
  if (!answered) return reply;
  exec::RenderedOutput output = exec::render(result.output, result.output.head.size() + result.output.tail.size());
  std::string_view state = state_in(output.text);
  if (state.empty()) state = result.exit_code == 0 ? "active" : "inactive";
  reply.structured.insert(1, fmt::format(R"("state":{},)", json::encode_string(state)));
  reply.outcome = protocol::Outcome::success;
  reply.reason.clear();
  reply.text = std::move(output.text);
  return reply;
}

}  // namespace

CancelHook service_control(ToolServices& services, ToolCall call) {
  Arguments arguments = HIVE_TRY_ARGUMENT(call, Arguments::parse(call.arguments, "service_control", false));
  std::string action = HIVE_TRY_ARGUMENT(call, arguments.required_string("action"));
  std::string service = HIVE_TRY_ARGUMENT(call, arguments.required_string("service"));
  if (std::ranges::find(actions, action) == actions.end()) {
    call.reply(invalid_arguments("Invalid action: use start, stop, restart or status"));
    return {};
  }
  if (!is_plain_name(service, "@._-")) {
    call.reply(
        invalid_arguments("Invalid service name: use letters, digits and @ . _ -, starting with a letter or digit"));
    return {};
  }
  Judge judge;
  if (action == "status") judge = judge_status;
  return run_allowlisted(services, std::move(call), "systemctl", {action, service}, std::move(judge));
}

}  // namespace hive::agent
