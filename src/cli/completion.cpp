#include "cli/completion.h"

#include <algorithm>
#include <array>

#include <CLI/CLI.hpp>

#include "base/strings.h"
#include "cli/approval_view.h"
#include "cli/command_line.h"
#include "cli/fleet_view.h"
#include "cli/upstream_view.h"
#include "cli/url_text.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

/// A shell that waits for candidates feels broken soon.
constexpr std::chrono::milliseconds ask_timeout = std::chrono::seconds(2);

/// Completed words land unquoted on a command line, so a gateway must not be able to put shell syntax there.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.front() != '-' && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

std::string one_line(std::string_view text) {
  return cut_to_width(escape_for_terminal(text.substr(0, text.find('\n'))), 60);
}

/// Where the words before the cursor have led.
struct Position {
  const CLI::App* command = nullptr;
  std::vector<const CLI::App*> path;     ///< from the program to the command
  std::vector<std::string> positionals;  ///< behind the command's name
};

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  auto found = app.get_subcommands([&name](const CLI::App* command) { return command->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

Position locate(const CLI::App& app, std::span<const std::string> words) {
  Position position{&app, {&app}, {}};
  for (size_t at : positional_words(words, all_options(app))) {
    const CLI::App* next = position.positionals.empty() ? find_command(*position.command, words[at]) : nullptr;
    if (next != nullptr) {
      position.command = next;
      position.path.push_back(next);
    } else {
      position.positionals.push_back(words[at]);
    }
  }
  return position;
}

std::vector<KnownOption> options_at(const Position& position) {
  std::vector<KnownOption> options;
  for (auto level = position.path.rbegin(); level != position.path.rend(); ++level) {
    for (KnownOption& option : options_of(**level)) {
      bool known = std::ranges::find(options, option.name, &KnownOption::name) != options.end();
      if (!known) options.push_back(std::move(option));
    }
  }
  return options;
}

std::string tool_of(const Position& position, std::span<const std::string> words) {
  std::string agent;
  std::string tool;
  for (size_t k = 0; k + 1 < words.size(); ++k) {
    if (words[k] == "--agent") agent = words[k + 1];
    if (words[k] == "--tool") tool = words[k + 1];
  }
  if (tool.empty() && !position.positionals.empty()) tool = position.positionals.front();
  return agent.empty() ? tool : agent + "__" + tool;
}

/// Whether the words say that the call is for many agents: its tool is then named without one.
bool is_for_many(std::span<const std::string> words) {
  return std::ranges::any_of(words, [](std::string_view word) {
    word = word.substr(0, word.find('='));
    return word == "--all" || word == "--agents" || word == "--tag";
  });
}

/// The tools without their agents, each once.
std::vector<Candidate> bare_tools(const std::vector<Candidate>& tools) {
  std::vector<Candidate> bare;
  for (const Candidate& tool : tools) {
    size_t separator = tool.word.find("__");
    std::string name = separator == std::string::npos ? tool.word : tool.word.substr(separator + 2);
    bool known = std::ranges::find(bare, name, &Candidate::word) != bare.end();
    if (!known) bare.push_back({std::move(name), tool.description});
  }
  return bare;
}

/// The arguments of a tool that is named without an agent, as the first agent that has it takes them.
std::vector<Candidate> arguments_of_many(const std::string& tool, const NameSource& names) {
  std::vector<Candidate> tools = names.fleet("").tools;
  auto found = std::ranges::find_if(tools, [&tool](const Candidate& known) {
    size_t separator = known.word.find("__");
    return separator != std::string::npos && std::string_view(known.word).substr(separator + 2) == tool;
  });
  return found == tools.end() ? std::vector<Candidate>() : names.fleet(found->word).arguments;
}

void offer_commands(Candidates& candidates, const CLI::App& app) {
  for (const CLI::App* command : commands_of(app))
    candidates.words.push_back({command->get_name(), command->get_description()});
}

Candidates values_of(const KnownOption& option, const NameSource& names) {
  Candidates candidates;
  if (option.name == "-o" || option.name == "--output") {
    candidates.words = {{"text", "for people"}, {"json", "for programs"}};
  } else if (option.name == "--print-config") {
    candidates.words = {{"claude-desktop", ""}, {"cursor", ""}, {"vscode", ""}};
  } else if (option.name == "--status") {
    for (const char* status : {"online", "offline", "never_connected", "flapping", "stale"})
      candidates.words.push_back({status, ""});
  } else if (option.name == "--sort") {
    for (const char* key : {"id", "address", "os", "connected_at", "offline_since"})
      candidates.words.push_back({key, ""});
  } else if (option.name == "--agent" || option.name == "--agents") {
    for (const std::string& agent : names.fleet("").agents)
      candidates.words.push_back({agent, "agent"});
  } else if (option.name == "--tag") {
    for (const std::string& tag : names.fleet("").tags)
      candidates.words.push_back({tag, "tag"});
  } else if (option.name == "--tool") {
    candidates.words = bare_tools(names.fleet("").tools);
  }
  candidates.takes_file = option.value_name.find("FILE") != std::string::npos;
  return candidates;
}

Candidates operands_of(const CLI::App& app, const Position& position, std::span<const std::string> before,
                       const NameSource& names) {
  Candidates candidates;
  const std::string& name = position.command->get_name();
  bool is_top_level = position.path.size() <= 2;
  const std::string& parent = is_top_level ? name : position.path[1]->get_name();
  if (position.positionals.empty() && !commands_of(*position.command).empty()) {
    offer_commands(candidates, *position.command);
  } else if (is_top_level && name == "help") {
    if (position.positionals.empty()) offer_commands(candidates, app);
  } else if (is_top_level && name == "completion") {
    if (position.positionals.empty()) candidates.words = {{"bash", ""}, {"zsh", ""}, {"fish", ""}};
  } else if (is_top_level && (name == "call" || name == "explain")) {
    std::string tool = tool_of(position, before);
    bool has_tool = !position.positionals.empty() || std::ranges::find(before, "--tool") != before.end();
    if (is_for_many(before)) {
      candidates.words = has_tool ? arguments_of_many(tool, names) : bare_tools(names.fleet("").tools);
    } else {
      FleetNames fleet = names.fleet(has_tool ? tool : "");
      candidates.words = has_tool ? fleet.arguments : fleet.tools;
    }
    candidates.stays_attached = has_tool;
  } else if (parent == "approvals" && name != "list" && name != "watch") {
    if (position.positionals.empty()) candidates.words = names.approvals(name == "show" || name == "result");
  } else if (parent == "upstreams" && name == "accept" && names.held_back) {
    if (position.positionals.empty()) candidates.words = names.held_back("");
    if (position.positionals.size() == 1) candidates.words = names.held_back(position.positionals.front());
  } else if (parent == "policy" || (parent == "config" && name == "apply")) {
    candidates.takes_file = true;
  }
  return candidates;
}

std::vector<Candidate> argument_names(std::string_view input_schema) {
  std::vector<Candidate> names;
  auto schema = json::parse_object(input_schema);
  auto properties = schema ? json::find(*schema, "properties") : std::nullopt;
  auto members = properties ? json::parse_object(*properties) : std::unexpected(Error{});
  if (!members) return names;
  for (const json::Member& member : *members) {
    if (!is_plain_name(member.key)) continue;
    auto property = json::parse_object(member.value);
    auto description = property ? json::find(*property, "description") : std::nullopt;
    names.push_back({member.key + "=", description ? json::decode_string(*description).value_or("") : ""});
  }
  return names;
}

/// Nothing when it cannot be had soon: completion never complains.
std::optional<std::string> ask_gateway(const Context& context, std::string_view path) {
  auto connection = resolve_connection(context.options, context.environment);
  if (!connection || connection->token.empty()) return std::nullopt;
  auto body = GatewayClient(*std::move(connection), ask_timeout, context.cancel_fd).get_json(path);
  return body ? std::optional(*std::move(body)) : std::nullopt;
}

std::vector<Candidate> approval_ids(const Context& context, bool all) {
  std::vector<Candidate> ids;
  auto body = ask_gateway(context, all ? "/api/approvals?status=all" : "/api/approvals?status=pending");
  auto approvals = body ? parse_approvals(*body) : std::unexpected(Error{});
  if (!approvals) return ids;
  for (const ApprovalView& approval : *approvals) {
    if (is_approval_id(approval.id)) ids.push_back({approval.id, approval.who() + ": " + approval.target()});
  }
  return ids;
}

std::vector<Candidate> held_back_names(const Context& context, const std::string& upstream) {
  std::vector<Candidate> names;
  auto body = ask_gateway(context, "/api/upstreams");
  auto tools = body ? parse_held_back(*body) : std::unexpected(Error{});
  if (!tools) return names;
  for (const HeldBackView& tool : *tools) {
    const std::string& name = upstream.empty() ? tool.upstream : tool.tool;
    bool is_wanted = upstream.empty() || tool.upstream == upstream;
    bool is_known = std::ranges::find(names, name, &Candidate::word) != names.end();
    if (is_wanted && !is_known && is_plain_name(name)) names.push_back({name, ""});
  }
  return names;
}

/// Which agents the words can mean, as a pattern of the gateway's: a fleet may have ten thousand, with nine tools each.
std::string wanted_agents(std::span<const std::string> words, const std::string& tool) {
  std::string_view beginning = words.empty() ? std::string_view() : std::string_view(words.back());
  if (!tool.empty()) return tool.substr(0, tool.find("__"));
  auto names_tool = [](std::string_view word) { return word == "--tool" || word.starts_with("--tool="); };
  if (names_tool(beginning) || (words.size() > 1 && names_tool(words[words.size() - 2]))) {
    auto option = std::ranges::find(words, "--agent");
    return option != words.end() && option + 1 != words.end() ? *(option + 1) : "*";
  }
  std::span<const std::string> before = words.empty() ? words : words.first(words.size() - 1);
  bool is_tag = beginning.starts_with("--tag=") || (!before.empty() && before.back() == "--tag");
  bool is_agent = beginning.starts_with("--agent") || (!before.empty() && before.back().starts_with("--agent"));
  if (is_tag || (!is_agent && is_for_many(before))) return "*";
  // Behind "--agents=a," the next one begins.
  beginning.remove_prefix(beginning.find_last_of("=,") + 1);
  std::size_t end = beginning.find("__");
  if (end != std::string_view::npos) return std::string(beginning.substr(0, end));
  return (is_plain_name(beginning) ? std::string(beginning) : "") + "*";
}

FleetNames fleet_names(const Context& context, const std::string& tool, const std::string& agents) {
  constexpr std::size_t most_tools = 2000;
  constexpr std::size_t most_agents = 500;
  FleetNames names;
  std::string pattern = percent_encoded(agents);
  auto body = ask_gateway(context, fmt::format("/api/tools?limit={}&agent={}", most_tools, pattern));
  auto tools = body ? parse_tools(*body) : std::unexpected(Error{});
  if (!tools) return names;
  // Those that are offline have no tools.
  auto status = tool.empty() ? ask_gateway(context, fmt::format("/api/status?limit={}&id={}", most_agents, pattern))
                             : std::nullopt;
  auto fleet = status ? parse_fleet(*status) : std::unexpected(Error{});
  if (fleet) {
    for (const AgentView& agent : fleet->agents)
      if (is_plain_name(agent.id)) names.agents.push_back(agent.id);
    for (const AgentView& agent : fleet->agents) {
      for (const std::string& tag : agent.tags) {
        bool is_known = std::ranges::find(names.tags, tag) != names.tags.end();
        if (!is_known && is_plain_name(tag)) names.tags.push_back(tag);
      }
    }
  }
  for (const ToolView& view : *tools) {
    if (!is_plain_name(view.name)) continue;
    if (view.name == tool) names.arguments = argument_names(view.input_schema);
    names.tools.push_back({view.name, view.description});
    std::string agent = view.name.substr(0, view.name.find("__"));
    if (std::ranges::find(names.agents, agent) == names.agents.end()) names.agents.push_back(agent);
  }
  return names;
}

/// The words on the way may say which gateway is meant.
void take_connection_options(GlobalOptions& options, std::span<const std::string> words) {
  const std::array<std::pair<std::string_view, std::string*>, 4> known = {{{"--url", &options.url},
                                                                           {"--token-file", &options.token_file},
                                                                           {"--profile", &options.profile},
                                                                           {"--cacert", &options.ca_certificate_path}}};
  for (size_t k = 0; k < words.size(); ++k) {
    if (words[k] == "--insecure") options.insecure = true;
    for (const auto& [name, target] : known) {
      if (words[k] == name && k + 2 < words.size()) *target = words[k + 1];
      if (words[k].starts_with(name) && words[k].substr(name.size()).starts_with('=')) {
        *target = words[k].substr(name.size() + 1);
      }
    }
  }
}

}  // namespace

Candidates complete_words(const CLI::App& app, std::span<const std::string> words, const NameSource& names) {
  if (words.empty()) return {};
  const std::string& current = words.back();
  std::span<const std::string> before = words.first(words.size() - 1);
  Position position = locate(app, before);
  std::vector<KnownOption> options = options_at(position);
  Candidates candidates;
  auto named = [&options](std::string_view name) {
    auto found = std::ranges::find(options, name, &KnownOption::name);
    return found != options.end() && found->takes_value ? &*found : nullptr;
  };
  size_t equals = current.starts_with("--") ? current.find('=') : std::string::npos;
  const KnownOption* open = before.empty() ? nullptr : named(before.back());
  const KnownOption* attached = equals == std::string::npos ? nullptr : named(current.substr(0, equals));
  if (const KnownOption* valued = open != nullptr ? open : attached; valued != nullptr) {
    candidates = values_of(*valued, names);
    size_t kept = open != nullptr ? 0 : equals + 1;
    // Of a list, the last name is the one to complete.
    bool is_list = valued->name == "--agents" || valued->name == "--tag";
    if (size_t comma = current.rfind(','); is_list && comma != std::string::npos) kept = std::max(kept, comma + 1);
    for (Candidate& candidate : candidates.words)
      candidate.word.insert(0, current, 0, kept);
  } else if (current.starts_with('-')) {
    for (const KnownOption& option : options)
      candidates.words.push_back({option.name, option.description});
  } else {
    candidates = operands_of(app, position, before, names);
  }
  std::erase_if(candidates.words,
                [&current](const Candidate& candidate) { return !candidate.word.starts_with(current); });
  return candidates;
}

ExitCode run_complete(Context& context, const CLI::App& app, const std::string& kind,
                      const std::vector<std::string>& words) {
  std::string text;
  if (kind == "tools" || kind == "agents") {
    FleetNames names = fleet_names(context, "", "*");
    for (const Candidate& tool : names.tools) {
      if (kind == "tools") text += tool.word + "\n";
    }
    for (const std::string& agent : names.agents) {
      if (kind == "agents") text += agent + "\n";
    }
  } else if (kind == "words") {
    take_connection_options(context.options, words);
    NameSource names{
        .fleet = [&context,
                  &words](const std::string& tool) { return fleet_names(context, tool, wanted_agents(words, tool)); },
        .approvals = [&context](bool all) { return approval_ids(context, all); },
        .held_back = [&context](const std::string& upstream) { return held_back_names(context, upstream); }};
    Candidates candidates = complete_words(app, words, names);
    for (const Candidate& candidate : candidates.words)
      text += candidate.word + "\t" + one_line(candidate.description) + "\n";
    if (candidates.takes_file) text += ":files\n";
    if (candidates.stays_attached) text += ":nospace\n";
  } else {
    return ExitCode::usage;
  }
  context.output.write(text);
  return ExitCode::success;
}

}  // namespace hive::cli
