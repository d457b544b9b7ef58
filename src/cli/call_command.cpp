#include "cli/call_command.h"

#include <algorithm>
#include <cerrno>

#include <unistd.h>

#include "base/strings.h"
#include "cli/call_arguments.h"
#include "cli/call_result.h"
#include "cli/fleet_view.h"
#include "cli/json_text.h"
#include "protocol/agent_protocol.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr size_t max_arguments_bytes = size_t{1} << 20;
constexpr size_t max_name_bytes = 256;

/// A call as the command line asks for it, before the words are typed.
struct Plan {
  std::string tool;
  std::string base = "{}";
  std::vector<std::string> words;
};

Result<std::string> read_standard_input() {
  std::string text;
  char buffer[16384];
  while (true) {
    ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, "standard input"));
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > max_arguments_bytes) {
      return fail(ErrorCode::resource_exhausted, "--arguments -: more than {} bytes on standard input",
                  max_arguments_bytes);
    }
  }
}

bool is_tool_name(std::string_view name) {
  size_t split = name.find("__");
  return name.size() <= max_name_bytes && split != std::string_view::npos && split > 0 && split + 2 < name.size() &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

Result<Plan> make_plan(const CallOptions& options) {
  Plan plan;
  plan.words = options.words;
  plan.tool = options.tool;
  if (plan.tool.empty()) {
    if (plan.words.empty()) {
      return fail(ErrorCode::invalid_argument,
                  "call: which tool? Use `myrmex call AGENT__TOOL [key=value ...]`; `myrmex tools` lists them");
    }
    plan.tool = plan.words.front();
    plan.words.erase(plan.words.begin());
    if (plan.tool.find('=') != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "call: the tool's name must come before {}", quote_briefly(plan.tool));
    }
  }
  if (!options.agent.empty()) {
    if (plan.tool.find("__") != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "call: --agent {} and {} both name an agent: give one of them",
                  quote_briefly(options.agent), quote_briefly(plan.tool));
    }
    plan.tool = options.agent + "__" + plan.tool;
  }
  if (!is_tool_name(plan.tool)) {
    return fail(ErrorCode::invalid_argument,
                "call: {} is not the name of a tool: use AGENT__TOOL; `myrmex tools` lists them",
                quote_briefly(plan.tool));
  }
  if (options.arguments == "-") {
    plan.base = TRY(read_standard_input());
  } else if (!options.arguments.empty()) {
    plan.base = options.arguments;
  }
  return plan;
}

/// Why a tool is not in the list: a wrong name is the user's to mend, an agent may come back.
Failure not_offered(const std::string& name, const std::vector<ToolView>& tools) {
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
  return {.code = ExitCode::usage,
          .message = fmt::format("call: agent {} has no tool {}{}", agent, quote_briefly(name.substr(prefix.size())),
                                 nearest ? "; did you mean " + quote_briefly(*nearest) + "?"
                                         : "; `myrmex tools --agent " + agent + "` lists them")};
}

/// The schema gives the words their types: without it `args=-h` would be a text where the tool wants a list. A guess
/// could make another call of it, so without the schema only words that carry their type are sent.
std::expected<std::string, Failure> input_schema_of(const GatewayClient& gateway, const Plan& plan) {
  bool is_needed = needs_schema(plan.words);
  auto body = gateway.get_json("/api/tools");
  if (!body) {
    if (!is_needed && body.error().code != ExitCode::interrupted) return "";
    body.error().message = "the tools could not be read, so the arguments have no types and the call was not sent: " +
                           body.error().message + " (key:=json and --arguments need no types)";
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
  return std::unexpected(not_offered(plan.tool, *tools));
}

std::string request_body(const Plan& plan, std::string_view arguments, const GlobalOptions& options) {
  std::string body = "{\"name\":" + json::encode_string(plan.tool);
  body += ",\"arguments\":";
  body += arguments;
  if (options.timeout) body += fmt::format(",\"timeout_ms\":{}", options.timeout->count());
  return body + "}";
}

/// What a finished call printed and how it ends.
ExitCode report(Context& context, const CallOptions& options, const CallAnswer& answer,
                const ProgressPrinter& progress) {
  // Then the line on standard error says it all.
  bool is_refusal = !answer.raw_error.empty() ||
                    (answer.outcome == protocol::Outcome::denied &&
                     (answer.texts.empty() || answer.texts.front().starts_with(protocol::rejected_marker)));
  if (context.format.json && answer.outcome != protocol::Outcome::success) {
    context.output.write(json_failure(answer));
  } else if (is_refusal) {
    if (progress.has_printed() && !options.raw) context.output.write("\n");
  } else if (options.raw) {
    for (const std::string& text : answer.texts)
      context.output.write(text);
  } else if (context.format.json) {
    context.output.write(json_output(answer));
  } else {
    context.output.write(progress.rest_of(answer));
  }
  ExitCode code = exit_code_for(answer.outcome, answer.reason);
  if (code != ExitCode::success) context.output.note("myrmex: " + reason_line(answer));
  return code;
}

/// The outcome of a call that has no answer, in the words of the protocol.
protocol::Outcome outcome_of(const Failure& failure) {
  if (failure.outcome) return *failure.outcome;
  switch (failure.code) {
    case ExitCode::interrupted:
      return protocol::Outcome::cancelled;
    case ExitCode::usage:
    case ExitCode::denied:
    case ExitCode::unreachable:
    case ExitCode::not_authenticated:
      return protocol::Outcome::denied;
    default:
      return protocol::Outcome::unknown;
  }
}

std::string_view reason_of(const Failure& failure) {
  if (!failure.reason.empty()) return failure.reason;
  switch (failure.code) {
    case ExitCode::interrupted:
      return "interrupted";
    case ExitCode::usage:
      return "usage";
    case ExitCode::unreachable:
      return "unreachable";
    case ExitCode::not_authenticated:
      return "not_authenticated";
    case ExitCode::unsettled:
      return "no_answer";
    default:
      return "error";
  }
}

ExitCode fail_with(Context& context, const Failure& failure) {
  if (context.format.json) {
    context.output.write(json_failure(protocol::to_string(outcome_of(failure)), reason_of(failure), failure.message));
  }
  return context.fail_with(failure);
}

ExitCode report_pending(Context& context, const net::http::ClientResponse& response) {
  auto members = json::parse_object(response.body);
  auto raw = members ? json::find(*members, "approval_id") : std::nullopt;
  std::string id = raw ? json::decode_string(*raw).value_or("") : "";
  if (context.format.json && members) context.output.write(pretty_json(response.body));
  return context.fail_with(
      {ExitCode::pending_approval, fmt::format("waits for the approval of a second person{}; nothing ran yet",
                                               id.empty() ? "" : " as " + escape_for_terminal(id))});
}

}  // namespace

ExitCode run_call(Context& context, const CallOptions& options) {
  if (options.raw && context.output.is_terminal()) {
    return fail_with(context, {ExitCode::usage,
                               "call: --raw writes remote bytes as they are, which could steer this terminal: send the "
                               "output to a file or a pipe"});
  }
  auto plan = make_plan(options);
  if (!plan) return fail_with(context, {ExitCode::usage, plan.error().message});
  // Bad words are the user's to mend before anything is sent.
  if (auto checked = call_arguments(plan->base, plan->words); !checked) {
    return fail_with(context, {ExitCode::usage, checked.error().message});
  }
  auto gateway = context.gateway();
  if (!gateway) return fail_with(context, gateway.error());
  std::expected<std::string, Failure> schema;
  if (!plan->words.empty()) schema = input_schema_of(*gateway, *plan);
  if (!schema) return fail_with(context, schema.error());
  auto arguments = call_arguments(plan->base, plan->words, *schema);
  if (!arguments) return fail_with(context, {ExitCode::usage, arguments.error().message});
  if (auto known = check_argument_names(*arguments, *schema); !known) {
    return fail_with(context, {ExitCode::usage, "call: " + known.error().message});
  }

  ProgressPrinter progress;
  std::string streamed_answer;
  GatewayClient::CallRequest request{.body = request_body(*plan, *arguments, context.options),
                                     .timeout = context.options.timeout.value_or(std::chrono::milliseconds(0)),
                                     .on_event = nullptr};
  if (options.progress) {
    request.on_event = [&](std::string_view name, std::string_view data) {
      if (name == "result") {
        streamed_answer = data;
      } else if (name == "progress") {
        std::string text = progress.take(data);
        if (!context.format.json && !options.raw) context.output.write(text);
      }
    };
  }
  auto response = gateway->call(std::move(request));
  if (!response) {
    if (response.error().code == ExitCode::interrupted) {
      return fail_with(context,
                       {ExitCode::interrupted, "cancelled: the connection is closed, and the gateway ends the call"});
    }
    return fail_with(context, response.error());
  }
  if (response->status == 202) return report_pending(context, *response);
  if (response->status != 200) return fail_with(context, gateway->failure_from(*response, true));
  if (streamed_answer.empty() && response->body.empty()) {
    return fail_with(context, {ExitCode::unsettled,
                               "the gateway ended the answer without a result: whether the call ran "
                               "is unknown; the audit log will tell"});
  }
  auto answer = parse_call_answer(streamed_answer.empty() ? response->body : streamed_answer,
                                  response->header("myrmex-outcome"), response->header("myrmex-reason"));
  if (!answer) return fail_with(context, {ExitCode::error, answer.error().message});
  return report(context, options, *answer, progress);
}

}  // namespace hive::cli
