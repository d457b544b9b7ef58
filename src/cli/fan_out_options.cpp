#include "cli/fan_out_options.h"

#include <CLI/CLI.hpp>

#include "base/strings.h"

namespace hive::cli {

namespace {

constexpr const char* many = "Many agents";
constexpr double longest_deadline = 86400;

std::string check_deadline(const std::string& text) {
  if (CLI::Range(0.001, longest_deadline)(text).empty()) return "";
  return fmt::format("{} is not a number of seconds from 0.001 to 86400", quote(text));
}

/// One word an option, with commas in it; the next word is the tool's name.
void add_names(CLI::App& command, const char* name, std::vector<std::string>& names, const char* description,
               const char* type) {
  command.add_option(name, names, description)->delimiter(',')->allow_extra_args(false)->type_name(type)->group(many);
}

}  // namespace

void add_fan_out_options(CLI::App& command, FanOutOptions& options) {
  add_names(command, "--agents", options.agents,
            "call the tool on these agents: ids or globs such as 'web-*', by commas", "AGENTS");
  add_names(command, "--tag", options.tags, "on the agents with this tag (agent_tags), or globs, by commas", "TAGS");
  command.add_flag("--all", options.all, "on every agent that the token reaches")->group(many);
  command.add_flag("--offline", options.with_offline, "globs, --tag and --all mean agents that are offline as well")
      ->group(many);
  command.add_option("--concurrency", options.concurrency, "calls at once (32)")
      ->check(CLI::Range(1, 256).description(""))
      ->type_name("N")
      ->group(many);
  command
      .add_option_function<double>(
          "--deadline",
          [&options](const double& seconds) {
            options.deadline = std::chrono::milliseconds(static_cast<long long>(seconds * 1000));
          },
          "how long the whole may take (600)")
      ->check(check_deadline)
      ->type_name("SECONDS")
      ->group(many);
  command.add_option("--stop-after", options.stop_after, "start no more calls once so many did not succeed")
      ->check(CLI::Range(1, 10'000).description(""))
      ->type_name("N")
      ->group(many);
  command.add_flag("--group", options.group, "print each output once, at the end, with the agents that gave it")
      ->group(many);
  command.add_flag("--dry-run", options.dry_run, "only show which agents would be asked, and which would be refused")
      ->group(many);
  command.add_flag("-y,--yes", options.yes, "do not ask before something is changed on more than one agent")
      ->group(many);
}

}  // namespace hive::cli
