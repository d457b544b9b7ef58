#include "cli/call_command.h"

#include <algorithm>
#include <cerrno>

#include <unistd.h>

#include "base/strings.h"
#include "cli/call_arguments.h"
#include "cli/call_result.h"
#include "cli/fleet_view.h"
#include "cli/json_text.h"
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
      return fail(ErrorCode::invalid_argument, "call: the tool's name must come before {}", quote(plan.tool));
    }
  }
  if (!options.agent.empty()) plan.tool = options.agent + "__" + plan.tool;
  bool is_name =
      plan.tool.size() <= max_name_bytes && std::ranges::all_of(plan.tool, [](char c) { return c > ' ' && c <= '~'; });
  if (!is_name) {
    return fail(ErrorCode::invalid_argument, "call: {} is not the name of a tool: use AGENT__TOOL",
                quote(plan.tool.substr(0, max_name_bytes)));
  }
  if (options.arguments == "-") {
    plan.base = TRY(read_standard_input());
  } else if (!options.arguments.empty()) {
    plan.base = options.arguments;
  }
  return plan;
}

/// The schema types the words: without it `args=-h` would be a text where the tool wants a list. It is a convenience,
/// so a gateway that does not tell does not stop the call.
std::string input_schema_of(const GatewayClient& gateway, const std::string& tool) {
  auto body = gateway.get_json("/api/tools");
  auto tools = body ? parse_tools(*body) : std::unexpected(Error{});
  if (!tools) return "";
  auto found = std::ranges::find(*tools, tool, &ToolView::name);
  return found == tools->end() ? "" : found->input_schema;
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
  if (!answer.raw_error.empty()) {
    if (progress.has_printed() && !context.format.json) context.output.write("\n");
    if (context.format.json) context.output.note(trim(pretty_json(answer.raw_error)));
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
    return context.fail_with({ExitCode::usage,
                              "call: --raw writes remote bytes as they are, which could steer this terminal: send the "
                              "output to a file or a pipe"});
  }
  auto plan = make_plan(options);
  if (!plan) return context.fail_with({ExitCode::usage, plan.error().message});
  // Bad words are the user's to mend before anything is sent.
  if (auto checked = call_arguments(plan->base, plan->words); !checked) {
    return context.fail_with({ExitCode::usage, checked.error().message});
  }
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  std::string schema = plan->words.empty() ? "" : input_schema_of(*gateway, plan->tool);
  auto arguments = call_arguments(plan->base, plan->words, schema);
  if (!arguments) return context.fail_with({ExitCode::usage, arguments.error().message});

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
      context.output.note("myrmex: cancelled: the connection is closed, and the gateway ends the call");
      return ExitCode::interrupted;
    }
    return context.fail_with(response.error());
  }
  if (response->status == 202) return report_pending(context, *response);
  if (response->status != 200) return context.fail_with(gateway->failure_from(*response, true));
  if (streamed_answer.empty() && response->body.empty()) {
    return context.fail_with({ExitCode::unsettled,
                              "the gateway ended the answer without a result: whether the call ran "
                              "is unknown; the audit log will tell"});
  }
  auto answer = parse_call_answer(streamed_answer.empty() ? response->body : streamed_answer,
                                  response->header("myrmex-outcome"), response->header("myrmex-reason"));
  if (!answer) return context.fail_with({ExitCode::error, answer.error().message});
  return report(context, options, *answer, progress);
}

}  // namespace hive::cli
