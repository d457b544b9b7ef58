#include "cli/config_commands.h"

#include "base/file.h"
#include "base/strings.h"
#include "cli/call_result.h"
#include "cli/json_fields.h"
#include "cli/json_text.h"
#include "cli/standard_input.h"

namespace hive::cli {

namespace {

constexpr std::size_t max_configuration_bytes = std::size_t{1} << 20;

std::string list_of(const std::vector<std::string>& names) {
  return escape_for_terminal(join(names, ", "));
}

}  // namespace

ExitCode run_config_show(Context& context) {
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  auto body = gateway->get_json("/api/config");
  if (!body) return context.fail_with(body.error());
  context.output.write(pretty_json(*body));
  return ExitCode::success;
}

ExitCode run_config_apply(Context& context, const std::string& path) {
  auto text = path == "-" ? read_standard_input(max_configuration_bytes, "config apply")
                          : read_file(path, max_configuration_bytes);
  if (!text) return context.fail_with({ExitCode::usage, escape_for_terminal(text.error().message)});
  // The gateway checks everything; a file that is no JSON at all need not travel, with the secrets that may be in it.
  if (auto valid = json::parse_object(*text, {.max_bytes = max_configuration_bytes}); !valid) {
    return context.fail_with({ExitCode::usage, fmt::format("config apply: {}: not a JSON object: {}",
                                                           escape_for_terminal(path), valid.error().message)});
  }
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  auto response = gateway->post("/api/config", *std::move(text));
  if (!response) return context.fail_with(response.error());
  if (response->status != 200) {
    Failure failure = gateway->failure_from(*response, false);
    // All that is wrong with a configuration is told at once, however much that is.
    auto problem = JsonFields::parse(response->body, "answer");
    std::string detail = problem ? problem->text("detail") : "";
    if (response->status == 400 && !detail.empty()) {
      failure.message =
          fmt::format("{} was not applied:\n{}", escape_for_terminal(path), text_for_terminal(trim(detail)));
    }
    return context.fail_with(failure);
  }
  auto fields = JsonFields::parse(response->body, "answer");
  if (!fields) return context.fail_with({ExitCode::error, fields.error().message});
  if (context.format.json) {
    context.output.write(pretty_json(response->body));
    return ExitCode::success;
  }
  std::vector<std::string> changed = fields->texts("changed");
  std::vector<std::string> waiting = fields->texts("restart_required");
  context.output.write(changed.empty() ? "applied; nothing changed\n" : "applied; changed: " + list_of(changed) + "\n");
  if (!waiting.empty()) context.output.write("takes effect at the next start: " + list_of(waiting) + "\n");
  return ExitCode::success;
}

}  // namespace hive::cli
