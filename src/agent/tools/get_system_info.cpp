#include <unistd.h>

#include "agent/arguments.h"
#include "agent/command_tool.h"
#include "agent/tools/host_facts.h"
#include "agent/tools/tools.h"
#include "exec/executable.h"
#include "protocol/json.h"
#include "protocol/tools.h"

namespace hive::agent {

namespace {

constexpr std::chrono::milliseconds listing_timeout = std::chrono::seconds(5);
constexpr size_t max_listing_bytes = size_t{256} << 10;

std::string json_list(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const std::string& text : texts) {
    if (&text != texts.data()) list += ',';
    json::append_string(list, text);
  }
  return list + "]";
}

// `services` is empty when systemd could not be asked.
ToolReply describe_host(std::vector<std::string> services) {
  if (services.empty()) services = process_names();
  std::vector<std::string> tools;
  for (const protocol::ToolDescription& tool : protocol::builtin_tools())
    tools.emplace_back(tool.name);
  ToolReply reply;
  reply.text = fmt::format(
      R"({{"os_version":{},"running_services":{},"open_ports":{},"agent_version":{},"tool_schema_version":"1",)"
      R"("supported_tools":{}}})",
      json::encode_string(os_version()), json_list(services), json_list(listening_ports()),
      json::encode_string(HIVE_VERSION), json_list(tools));
  reply.structured = reply.text;
  return reply;
}

}  // namespace

CancelHook get_system_info(ToolServices& services, ToolCall call) {
  HIVE_TRY_ARGUMENT(call, Arguments::parse(call.arguments, "get_system_info", true));
  // sd_booted(3): this folder exists exactly where systemd runs the machine.
  auto systemctl = exec::resolve_executable("systemctl");
  if (!systemctl || ::access("/run/systemd/system", F_OK) != 0) {
    return run_in_pool(services, std::move(call), [] { return describe_host({}); });
  }
  exec::Command command;
  command.path = *std::move(systemctl);
  command.argv = {"systemctl",   "list-units", "--type=service", "--state=running",
                  "--no-legend", "--no-pager", "--plain"};
  auto environment = exec::build_environment(exec::current_account(), {});
  if (environment) command.environment = *std::move(environment);
  command.timeout = std::min(call.timeout.value_or(listing_timeout), listing_timeout);
  command.max_output_bytes = max_listing_bytes;
  auto running = services.runner.run(
      std::move(command), {}, [&services, call = std::move(call)](exec::CommandResult result) mutable {
        if (result.ending == exec::Ending::cancelled) {
          call.reply(cancelled("cancelled by the caller"));
          return;
        }
        std::vector<std::string> names;
        if (result.exit_code == 0) names = service_names(result.output.head);
        run_in_pool(services, std::move(call),
                    [names = std::move(names)]() mutable { return describe_host(std::move(names)); });
      });
  return [running = std::move(running)] { running->cancel(); };
}

}  // namespace hive::agent
