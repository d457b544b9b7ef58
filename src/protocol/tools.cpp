#include "protocol/tools.h"

#include <array>

#include "protocol/json.h"

namespace hive::protocol {

namespace {

constexpr std::string_view no_input = R"({"type":"object","properties":{}})";

// What every tool that runs a command returns beside its text.
constexpr std::string_view command_output =
    R"({"type":"object","properties":{)"
    R"("exit_code":{"type":"integer","description":"exit status; absent when the command did not exit by itself"},)"
    R"("signal":{"type":"integer","description":"number of the signal that ended it"},)"
    R"("timed_out":{"type":"boolean"},)"
    R"("output":{"type":"string","description":"standard output and standard error as they came, invalid UTF-8 replaced"},)"
    R"("output_base64":{"type":"string","description":"the exact bytes, when the output is binary"},)"
    R"("output_bytes":{"type":"integer","description":"how much was printed in all"},)"
    R"("omitted_bytes":{"type":"integer","description":"how much of it is not in output"},)"
    R"("leftover_processes_killed":{"type":"integer"},)"
    R"("invalid_utf8_replaced":{"type":"boolean"},)"
    R"("state":{"type":"string","description":"of the service, for the action status"},)"
    R"("dry_run":{"type":"boolean"},)"
    R"("command":{"type":"string","description":"what a dry run would have started"},)"
    R"("duration_ms":{"type":"integer"}}})";

constexpr std::array<ToolDescription, 9> tools = {{
    {.name = "get_metrics",
     .title = "Host metrics",
     .description = "CPU, load, memory and disk usage of the host, or of the container the agent runs in.",
     .tier = Tier::read,
     .input_schema = no_input,
     .output_schema =
         R"({"type":"object","properties":{)"
         R"("cpu_usage_percent":{"type":"number"},"load_avg_1m":{"type":"number"},"load_avg_5m":{"type":"number"},)"
         R"("load_avg_15m":{"type":"number"},"mem_total_mb":{"type":"number"},"mem_free_mb":{"type":"number"},)"
         R"("mem_used_mb":{"type":"number"},"mem_used_percent":{"type":"number"},"disk_total_gb":{"type":"number"},)"
         R"("disk_used_gb":{"type":"number"},"disk_free_gb":{"type":"number"},"disk_used_percent":{"type":"number"},)"
         R"("source":{"type":"object","properties":{"cpu":{"type":"string"},"memory":{"type":"string"}}}},)"
         R"("required":["cpu_usage_percent","load_avg_1m","mem_total_mb","mem_used_percent","disk_used_percent"]})"},
    {.name = "run_command",
     .title = "Run an allowlisted command",
     .description =
         "Runs a command that the agent's allowlist admits, without a shell. With dry_run the call is only checked.",
     .tier = Tier::write,
     .input_schema =
         R"({"type":"object","properties":{)"
         R"("name":{"type":"string","description":"the command's name as the allowlist has it"},)"
         R"("args":{"type":"array","items":{"type":"string"},"description":"one element an argument"},)"
         R"("dry_run":{"type":"boolean","description":"check the call without running it"}},"required":["name"]})",
     .output_schema = command_output},
    {.name = "read_logs",
     .title = "Read the system log",
     .description = "The last lines of the system log, or of the journal of one unit.",
     .tier = Tier::read,
     .input_schema =
         R"({"type":"object","properties":{)"
         R"("lines":{"type":"integer","minimum":1,"maximum":100,"default":50},)"
         R"("unit":{"type":"string","description":"a systemd unit; reads the journal"},)"
         R"("since":{"type":"string","description":"for the journal: 2026-11-30T12:00:00Z, 2026-11-30 12:00:00, or -15min"},)"
         R"("priority":{"type":"string","enum":["emerg","alert","crit","err","warning","notice","info","debug"],)"
         R"("description":"for the journal: this priority and worse"}}})",
     .output_schema =
         R"({"type":"object","properties":{"source":{"type":"string"},"lines":{"type":"array","items":{"type":"string"}}},)"
         R"("required":["source","lines"]})"},
    {.name = "get_system_info",
     .title = "System information",
     .description = "Operating system, running services, listening TCP ports and the agent's version.",
     .tier = Tier::read,
     .input_schema = no_input,
     .output_schema =
         R"({"type":"object","properties":{"os_version":{"type":"string"},)"
         R"("running_services":{"type":"array","items":{"type":"string"}},)"
         R"("open_ports":{"type":"array","items":{"type":"string"}},"agent_version":{"type":"string"},)"
         R"("tool_schema_version":{"type":"string"},"supported_tools":{"type":"array","items":{"type":"string"}}},)"
         R"("required":["os_version","running_services","open_ports","agent_version"]})"},
    {.name = "service_control",
     .title = "Control a service",
     .description =
         "Starts, stops, restarts or shows a systemd service, as far as the allowlist's systemctl entry admits it.",
     .tier = Tier::write,
     .input_schema =
         R"({"type":"object","properties":{"action":{"type":"string","enum":["start","stop","restart","status"]},)"
         R"("service":{"type":"string"}},"required":["action","service"]})",
     .output_schema = command_output},
    {.name = "container_ps",
     .title = "List containers",
     .description = "docker ps, or docker ps -a with all.",
     .tier = Tier::read,
     .input_schema = R"({"type":"object","properties":{"all":{"type":"boolean"}}})",
     .output_schema = command_output},
    {.name = "k8s_get",
     .title = "List Kubernetes resources",
     .description = "kubectl get of one resource type, in one namespace or the default one.",
     .tier = Tier::read,
     .input_schema = R"({"type":"object","properties":{"resource":{"type":"string"},"namespace":{"type":"string"}},)"
                     R"("required":["resource"]})",
     .output_schema = command_output},
    {.name = "package_query",
     .title = "Query packages",
     .description = "Installed packages as one package manager lists them, all or one by name.",
     .tier = Tier::read,
     .input_schema =
         R"({"type":"object","properties":{"manager":{"type":"string","enum":["dpkg","rpm","apk","pacman","dnf"]},)"
         R"("name":{"type":"string"}},"required":["manager"]})",
     .output_schema = command_output},
    {.name = "file_read",
     .title = "Read a file",
     .description = "The start of a regular file under one of the folders that the agent's configuration names.",
     .tier = Tier::read,
     .input_schema = R"({"type":"object","properties":{"path":{"type":"string"}},"required":["path"]})",
     .output_schema =
         R"({"type":"object","properties":{"path":{"type":"string"},"size_bytes":{"type":"integer"},)"
         R"("truncated":{"type":"boolean"},"content":{"type":"string"},"content_base64":{"type":"string"}},)"
         R"("required":["path","truncated"]})"},
}};

}  // namespace

std::span<const ToolDescription> builtin_tools() {
  return tools;
}

const ToolDescription* find_builtin_tool(std::string_view name) {
  for (const ToolDescription& tool : tools) {
    if (tool.name == name) return &tool;
  }
  return nullptr;
}

std::string tools_list_result() {
  std::string result = R"({"tools":[)";
  for (const ToolDescription& tool : tools) {
    if (&tool != tools.data()) result += ',';
    bool read_only = tool.tier == Tier::read;
    result += fmt::format(
        R"({{"name":"{}","title":{},"description":{},"schemaVersion":"1","inputSchema":{},"outputSchema":{},)"
        R"("annotations":{{"readOnlyHint":{},"destructiveHint":{},"openWorldHint":false}}}})",
        tool.name, json::encode_string(tool.title), json::encode_string(tool.description), tool.input_schema,
        tool.output_schema, read_only, !read_only);
  }
  return result + "]}";
}

}  // namespace hive::protocol
