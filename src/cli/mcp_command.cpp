#include "cli/mcp_command.h"

#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/strings.h"
#include "cli/json_text.h"
#include "cli/mcp_bridge.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr const char* mcp_footer =
    R"(A client such as Claude Desktop, Cursor or VS Code starts this as an MCP server and speaks with it over standard
input and output; it carries the messages to the gateway's /mcp, as whoever the token belongs to. It ends when the
client closes its input. What goes wrong stands on standard error, which clients keep in their logs.

Examples:
  myrmex mcp --profile lab
  myrmex mcp --print-config claude-desktop --profile lab
  myrmex mcp --print-config vscode --url https://gateway.example:8080 --token-file ~/.config/myrmex/token)";

struct Options {
  std::string client;
};

/// A client starts us from a folder of its own.
std::string absolute(const std::string& path) {
  std::error_code error;
  std::filesystem::path full = std::filesystem::absolute(path, error);
  return error ? path : full.lexically_normal().string();
}

std::string own_path() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "myrmex" : path.string();
}

/// The settings of this command line and of this shell's environment, which the client does not have.
std::vector<std::string> arguments_for(const Context& context) {
  const GlobalOptions& options = context.options;
  std::vector<std::string> words{"mcp"};
  auto add = [&](const std::string& option, const std::string& given, std::string_view variable, bool is_path) {
    std::string value = given.empty() && !variable.empty() ? context.environment(variable).value_or("") : given;
    if (value.empty()) return;
    words.push_back(option);
    words.push_back(is_path ? absolute(value) : value);
  };
  add("--profile", options.profile, "MYRMEX_PROFILE", false);
  // A profile that is named has an address and a certificate of its own.
  bool has_profile = !options.profile.empty();
  add("--url", options.url, has_profile ? "" : "MYRMEX_URL", false);
  add("--cacert", options.ca_certificate_path, has_profile ? "" : "MYRMEX_CACERT", true);
  add("--token-file", options.token_file, "", true);
  if (options.insecure) words.emplace_back("--insecure");
  return words;
}

std::string_view place_of(std::string_view client) {
  if (client == "cursor") return "~/.cursor/mcp.json, or .cursor/mcp.json in a project";
  if (client == "vscode") return ".vscode/mcp.json in a workspace, or what \"MCP: Open User Configuration\" opens";
  return "claude_desktop_config.json, which Settings > Developer > Edit Config opens";
}

ExitCode print_configuration(Context& context, const std::string& client) {
  auto connection = resolve_connection(context.options, context.environment);
  if (!connection) return context.fail_with({ExitCode::usage, connection.error().message});
  context.output.write(mcp_client_configuration(context, client, own_path()));
  context.output.note(fmt::format("This goes into {}; then start the client again.", place_of(client)));
  bool has_token_file = connection->token_source == "--token-file" || connection->token_source.starts_with("profile ");
  if (!has_token_file) {
    context.output.note(
        "It holds no token: put one into a file that you alone can read, and give it here by --token-file FILE, or use "
        "a profile.");
  }
  return ExitCode::success;
}

ExitCode run_mcp(Context& context) {
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  McpBridgeOptions options;
  options.in_fd = STDIN_FILENO;
  options.out_fd = STDOUT_FILENO;
  options.stop_fd = context.cancel_fd;
  options.timeout = context.options.timeout.value_or(std::chrono::milliseconds(0));
  options.note = [&context](const std::string& note) { context.output.note("myrmex: " + note); };
  if (::isatty(STDIN_FILENO) == 1) {
    context.output.note("This speaks MCP, one JSON message a line, and is meant for a client program. Ctrl-D ends it.");
  }
  auto ended = run_mcp_bridge(*gateway, options);
  if (!ended) return context.fail_with({ExitCode::error, ended.error().message});
  return ExitCode::success;
}

}  // namespace

std::string mcp_client_configuration(const Context& context, const std::string& client, const std::string& program) {
  std::string arguments;
  for (const std::string& word : arguments_for(context))
    arguments += (arguments.empty() ? "" : ",") + json::encode_string(word);
  bool is_vscode = client == "vscode";
  return pretty_json(fmt::format(R"({{"{}":{{"myrmex":{{{}"command":{},"args":[{}]}}}}}})",
                                 is_vscode ? "servers" : "mcpServers", is_vscode ? R"("type":"stdio",)" : "",
                                 json::encode_string(program), arguments));
}

void add_mcp_command(CLI::App& parent, Context& context, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* mcp = parent.add_subcommand("mcp", "be an MCP server for a desktop client");
  mcp->footer(mcp_footer);
  mcp->add_option("--print-config", options->client,
                  "print the configuration for a client instead: claude-desktop, cursor or vscode")
      ->check(CLI::IsMember({"claude-desktop", "cursor", "vscode"}).description(""))
      ->type_name("CLIENT");
  mcp->callback(interruptible(context, exit_code, [options](Context& current) {
    return options->client.empty() ? run_mcp(current) : print_configuration(current, options->client);
  }));
}

}  // namespace hive::cli
