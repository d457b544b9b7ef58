#include "cli/call_plan.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/call_arguments.h"
#include "cli/explanation.h"
#include "cli/fleet_view.h"
#include "cli/standard_input.h"
#include "cli/url_text.h"
#include "protocol/tools.h"

namespace hive::cli {

namespace {

constexpr size_t max_arguments_bytes = size_t{1} << 20;
constexpr size_t max_name_bytes = 256;

bool is_printable(std::string_view name) {
  return !name.empty() && name.size() <= max_name_bytes &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

Failure no_such_tool(std::string_view command, const std::string& name, const std::vector<ToolView>& tools) {
  std::vector<std::string_view> names;
  for (const ToolView& tool : tools)
    names.push_back(tool.name);
  auto of_agent = std::ranges::find_if(names, [&name](std::string_view tool) { return tool.ends_with("__" + name); });
  if (of_agent != names.end()) {
    return {.code = ExitCode::usage,
            .message = fmt::format("{}: {} is a tool of agents: name one of them, as in {}{}", command,
                                   quote_briefly(name), escape_for_terminal(*of_agent),
                                   command == "call" ? ", or many by --agents, --tag or --all" : "")};
  }
  auto nearest = nearest_name(name, names);
  return {.code = ExitCode::usage,
          .message =
              fmt::format("{}: {} is not the name of a tool: {}", command, quote_briefly(name),
                          nearest ? "did you mean " + quote_briefly(*nearest) + "?"
                                  : std::string("use AGENT__TOOL, or the name of a tool of a server without a prefix; "
                                                "`myrmex tools` lists them"))};
}

/// Why a tool is not in the list: a wrong name is the user's to mend, an agent may come back.
Failure not_offered(std::string_view command, const std::string& name, const std::vector<ToolView>& tools) {
  std::string prefix = name.substr(0, name.find("__") + 2);
  std::vector<std::string_view> names;
  for (const ToolView& tool : tools) {
    if (tool.name.starts_with(prefix)) names.push_back(tool.name);
  }
  std::string agent = escape_for_terminal(prefix.substr(0, prefix.size() - 2));
  if (names.empty()) {
    return {.code = ExitCode::unreachable,
            .message = fmt::format("agent {} offers no tools: it is offline or unknown (see `myrmex agents`); the call "
                                   "was not sent",
                                   agent),
            .reason = "agent_offline"};
  }
  auto nearest = nearest_name(name, names);
  return {
      .code = ExitCode::usage,
      .message = fmt::format("{}: agent {} has no tool {}{}", command, agent, quote_briefly(name.substr(prefix.size())),
                             nearest ? "; did you mean " + quote_briefly(*nearest) + "?"
                                     : "; `myrmex tools --agent " + agent + "` lists them")};
}

/// Who may not reach an agent does not see its tools either, and is told the gates' reason rather than that the agent
/// might be away. The words have no types yet; the first two gates need none to refuse a caller or an agent.
std::optional<Failure> refused_by_first_gates(const GatewayClient& gateway, const std::string& tool) {
  auto body = gateway.post_json("/api/explain", explain_request(tool, "{}", {}));
  if (!body) return std::nullopt;
  auto explanation = parse_explanation(*body);
  if (!explanation) return std::nullopt;
  for (const GateView& gate : explanation->gates) {
    if ((gate.gate != "role" && gate.gate != "scope") || gate.verdict != "deny") continue;
    return Failure{.code = ExitCode::denied,
                   .message = fmt::format("denied, nothing ran: {} ({})", escape_for_terminal(gate.message),
                                          escape_for_terminal(gate.reason)),
                   .outcome = protocol::Outcome::denied,
                   .reason = gate.reason};
  }
  return std::nullopt;
}

/// The schema gives the words their types: without it `args=-h` would be a text where the tool wants a list. A guess
/// could make another call of it, so without the schema only words that carry their type are sent.
std::expected<std::string, Failure> input_schema_of(const GatewayClient& gateway, const CallPlan& plan,
                                                    std::string_view command) {
  bool is_needed = plan.is_plain || needs_schema(plan.words);
  std::string_view agent = std::string_view(plan.tool).substr(0, plan.tool.find("__"));
  auto body = gateway.get_json(plan.is_plain ? "/api/tools" : "/api/tools?agent=" + percent_encoded(agent));
  if (!body) {
    if (!is_needed && body.error().code != ExitCode::interrupted) return "";
    if (plan.is_plain) {
      body.error().message = "the tools could not be read, so the call was not sent: " + body.error().message;
    } else {
      body.error().message = "the tools could not be read, so the arguments have no types and the call was not sent: " +
                             body.error().message + " (key:=json and --arguments need no types)";
    }
    return std::unexpected(std::move(body.error()));
  }
  auto tools = parse_tools(*body);
  if (!tools) {
    if (!is_needed) return "";
    return std::unexpected(
        Failure{.code = ExitCode::error,
                .message = "the tools could not be read, so the call was not sent: " + tools.error().message,
                .outcome = protocol::Outcome::denied});
  }
  auto found = std::ranges::find(*tools, plan.tool, &ToolView::name);
  if (found != tools->end()) return found->input_schema;
  if (!is_needed) return "";
  if (plan.is_plain) return std::unexpected(no_such_tool(command, plan.tool, *tools));
  const protocol::ToolDescription* built_in = protocol::find_builtin_tool(plan.tool.substr(agent.size() + 2));
  if (plan.may_wait && built_in != nullptr) return std::string(built_in->input_schema);
  if (auto refused = refused_by_first_gates(gateway, plan.tool)) return std::unexpected(*std::move(refused));
  return std::unexpected(not_offered(command, plan.tool, *tools));
}

/// The tool as it was named, and the words behind it.
Result<CallPlan> take_tool(const CallWords& options, std::string_view command, std::string_view form) {
  CallPlan plan;
  plan.words = options.words;
  plan.tool = options.tool;
  if (!plan.tool.empty()) return plan;
  if (plan.words.empty()) {
    return fail(ErrorCode::invalid_argument,
                "{}: which tool? Use `myrmex {} {} [key=value ...]`; `myrmex tools` lists them", command, command,
                form);
  }
  plan.tool = plan.words.front();
  plan.words.erase(plan.words.begin());
  if (plan.tool.find('=') != std::string::npos) {
    return fail(ErrorCode::invalid_argument, "{}: the tool's name must come before {}", command,
                quote_briefly(plan.tool));
  }
  return plan;
}

Result<void> take_base(const CallWords& options, CallPlan& plan) {
  if (options.arguments == "-") {
    plan.base = TRY(read_standard_input(max_arguments_bytes, "--arguments -"));
  } else if (!options.arguments.empty()) {
    plan.base = options.arguments;
  }
  // Bad words are the user's to mend before anything is sent.
  TRY(call_arguments(plan.base, plan.words));
  return {};
}

}  // namespace

bool is_tool_name(std::string_view name) {
  size_t split = name.find("__");
  return is_printable(name) && split != std::string_view::npos && split > 0 && split + 2 < name.size();
}

Result<CallPlan> make_call_plan(const CallWords& options, std::string_view command) {
  CallPlan plan = TRY(take_tool(options, command, "AGENT__TOOL"));
  if (!options.agent.empty()) {
    if (plan.tool.find("__") != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "{}: --agent {} and {} both name an agent: give one of them", command,
                  quote_briefly(options.agent), quote_briefly(plan.tool));
    }
    plan.tool = options.agent + "__" + plan.tool;
  }
  plan.is_plain = is_printable(plan.tool) && plan.tool.find("__") == std::string::npos;
  if (!plan.is_plain && !is_tool_name(plan.tool)) {
    return fail(ErrorCode::invalid_argument,
                "{}: {} is not the name of a tool: use AGENT__TOOL; `myrmex tools` lists them", command,
                quote_briefly(plan.tool));
  }
  TRY(take_base(options, plan));
  return plan;
}

Result<CallPlan> make_fan_out_plan(const CallWords& options, std::string_view command) {
  if (!options.agent.empty()) {
    return fail(ErrorCode::invalid_argument, "{}: --agent names one agent; for many use --agents, --tag or --all",
                command);
  }
  CallPlan plan = TRY(take_tool(options, command, "--agents a,b TOOL"));
  if (size_t split = plan.tool.find("__"); split != std::string::npos) {
    return fail(ErrorCode::invalid_argument, "{}: {} names an agent; for many agents name the tool alone: {}", command,
                quote_briefly(plan.tool), quote_briefly(plan.tool.substr(split + 2)));
  }
  TRY(take_base(options, plan));
  return plan;
}

std::expected<std::string, Failure> planned_arguments(const GatewayClient& gateway, const CallPlan& plan,
                                                      std::string_view command) {
  std::expected<std::string, Failure> schema;
  if (plan.is_plain || !plan.words.empty()) schema = input_schema_of(gateway, plan, command);
  if (!schema) return schema;
  auto arguments = call_arguments(plan.base, plan.words, *schema);
  if (!arguments) return std::unexpected(Failure{ExitCode::usage, arguments.error().message});
  if (auto known = check_argument_names(*arguments, *schema); !known) {
    return std::unexpected(Failure{ExitCode::usage, fmt::format("{}: {}", command, known.error().message)});
  }
  return *std::move(arguments);
}

}  // namespace hive::cli
