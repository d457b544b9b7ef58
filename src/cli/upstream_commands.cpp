#include "cli/upstream_commands.h"

#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include "base/strings.h"
#include "cli/fleet_view.h"
#include "cli/json_text.h"
#include "cli/prompt.h"
#include "cli/upstream_view.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr const char* held_back_footer =
    R"(A tool is held back when it is new, or described otherwise than an admin has accepted: what a description says,
models do. Nobody can call it until it is accepted.)";

constexpr const char* accept_footer =
    R"(Shows what was accepted before and what the tool says now, and asks. With --sha256 exactly this description is
accepted, and nothing is asked.

Examples:
  myrmex upstreams accept git push
  myrmex upstreams accept git push --sha256 0be1...)";

struct Options {
  std::string upstream;
  std::string tool;
  std::string sha256;
  bool yes = false;
};

ExitCode run_list(Context& context) {
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  auto body = gateway->get_json("/api/status");
  if (!body) return context.fail_with(body.error());
  auto fleet = parse_fleet(*body);
  if (!fleet) return context.fail_with({ExitCode::error, fleet.error().message});
  if (context.format.json) {
    context.output.write(pretty_json(fleet->raw_upstreams));
    return ExitCode::success;
  }
  if (fleet->upstreams.empty()) {
    context.output.write("No upstream server is configured.\n");
    return ExitCode::success;
  }
  Table table({"SERVER NAME", "TRANSPORT", "STATE", "SINCE", "TOOLS", "HELD BACK", "URL OR COMMAND"});
  std::int64_t held_back = 0;
  std::string notes;
  for (const UpstreamView& upstream : fleet->upstreams) {
    held_back += upstream.held_back;
    table.add({upstream.name, upstream.transport, upstream.status, upstream.since, fmt::format("{}", upstream.tools),
               fmt::format("{}", upstream.held_back), upstream.url});
    for (const std::string& note : upstream.notes)
      notes += fmt::format("{}: {}\n", escape_for_terminal(upstream.name), escape_for_terminal(note));
  }
  std::string text = table.render(context.output.width(), context.format.color);
  if (!notes.empty()) text += "\n" + notes;
  if (held_back > 0) {
    text += fmt::format("\n{}: {} {} for an admin to accept what it says; see `myrmex upstreams held-back`\n",
                        styled("Held back", Style::warning, context.format.color), held_back,
                        held_back == 1 ? "tool waits" : "tools wait");
  }
  context.output.write(text);
  return ExitCode::success;
}

std::expected<std::vector<HeldBackView>, Failure> fetch_held_back(const GatewayClient& gateway) {
  auto body = gateway.get_json("/api/upstreams");
  if (!body) return std::unexpected(body.error());
  auto tools = parse_held_back(*body);
  if (!tools) return std::unexpected(Failure{ExitCode::error, tools.error().message});
  return *std::move(tools);
}

std::string describe(const HeldBackView& tool, bool color) {
  std::string name = escape_for_terminal(tool.upstream) + " " + escape_for_terminal(tool.tool);
  std::string text = styled(name, Style::heading, color) + "\n";
  if (tool.accepted.empty()) {
    text += "It is new.\n";
  } else {
    text +=
        fmt::format("Accepted, sha256 {}:\n{}", escape_for_terminal(tool.accepted_sha256), pretty_json(tool.accepted));
  }
  return text + fmt::format("Now, sha256 {}:\n{}", escape_for_terminal(tool.current_sha256), pretty_json(tool.current));
}

ExitCode run_held_back(Context& context) {
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  if (context.format.json) {
    auto body = gateway->get_json("/api/upstreams");
    if (!body) return context.fail_with(body.error());
    context.output.write(pretty_json(trim(*body)));
    return ExitCode::success;
  }
  auto tools = fetch_held_back(*gateway);
  if (!tools) return context.fail_with(tools.error());
  std::string text;
  for (const HeldBackView& tool : *tools) {
    text += describe(tool, context.format.color);
    text += fmt::format("To accept it: myrmex upstreams accept {} {}\n\n", escape_for_terminal(tool.upstream),
                        quote(tool.tool));
  }
  context.output.write(text.empty() ? "No tool is held back.\n" : text);
  return ExitCode::success;
}

/// What is to be accepted: the description that somebody has looked at.
std::expected<std::string, Failure> agreed_digest(Context& context, const GatewayClient& gateway,
                                                  const Options& options) {
  if (!options.sha256.empty()) return options.sha256;
  auto tools = fetch_held_back(gateway);
  if (!tools) return std::unexpected(tools.error());
  auto tool = std::ranges::find_if(
      *tools, [&](const HeldBackView& each) { return each.upstream == options.upstream && each.tool == options.tool; });
  if (tool == tools->end()) {
    return std::unexpected(Failure{ExitCode::error, fmt::format("no tool {} of {} is held back; `myrmex upstreams "
                                                                "held-back` lists them",
                                                                quote(options.tool), quote(options.upstream))});
  }
  if (options.yes) return tool->current_sha256;
  if (!can_ask()) {
    return std::unexpected(Failure{ExitCode::usage,
                                   "upstreams accept: there is nobody to ask; look at it with "
                                   "`myrmex upstreams held-back`, then give --sha256"});
  }
  context.output.note(describe(*tool, context.format.color));
  auto answer = ask_line("Accept what it says now? [y/N] ", true, context.cancel_fd);
  if (!answer) {
    ExitCode code = answer.error().code == ErrorCode::cancelled ? ExitCode::interrupted : ExitCode::error;
    return std::unexpected(Failure{code, answer.error().message});
  }
  if (*answer != "y" && *answer != "Y" && *answer != "yes")
    return std::unexpected(Failure{ExitCode::error, "nothing was accepted"});
  return tool->current_sha256;
}

ExitCode run_accept(Context& context, const Options& options) {
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  auto digest = agreed_digest(context, *gateway, options);
  if (!digest) return context.fail_with(digest.error());
  std::string request = fmt::format(R"({{"upstream":{},"tool":{},"sha256":{}}})", json::encode_string(options.upstream),
                                    json::encode_string(options.tool), json::encode_string(*digest));
  auto body = gateway->post_json("/api/upstreams/accept", std::move(request));
  if (!body) return context.fail_with(body.error());
  if (context.format.json) {
    context.output.write(pretty_json(trim(*body)));
  } else {
    context.output.write(fmt::format("Accepted: {} of {}, sha256 {}.\n", quote(options.tool),
                                     escape_for_terminal(options.upstream), escape_for_terminal(*digest)));
  }
  return ExitCode::success;
}

}  // namespace

void add_upstream_commands(CLI::App& parent, Context& context, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* upstreams = parent.add_subcommand("upstreams", "the MCP servers behind the gateway");
  upstreams->require_subcommand(0, 1);
  upstreams->callback([upstreams, list = interruptible(context, exit_code, run_list)] {
    if (upstreams->get_subcommands().empty()) list();
  });
  CLI::App* held_back = upstreams->add_subcommand("held-back", "tools whose descriptions wait for an admin");
  held_back->footer(held_back_footer);
  held_back->callback(interruptible(context, exit_code, run_held_back));
  CLI::App* accept = upstreams->add_subcommand("accept", "accept what a tool says about itself");
  accept->add_option("upstream", options->upstream, "the server")->required()->type_name("NAME");
  accept->add_option("tool", options->tool, "the tool, without prefix")->required()->type_name("TOOL");
  accept->add_option("--sha256", options->sha256, "digest of the description to accept; nothing is asked")
      ->type_name("DIGEST");
  accept->add_flag("--yes", options->yes, "do not ask");
  accept->footer(accept_footer);
  accept->callback(interruptible(context, exit_code, [options](Context& used) { return run_accept(used, *options); }));
}

}  // namespace hive::cli
