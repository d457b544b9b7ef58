#include "cli/fleet_commands.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/fleet_view.h"
#include "cli/json_text.h"
#include "cli/url_text.h"

namespace hive::cli {

namespace {

constexpr std::size_t widest_ports = 28;
constexpr std::size_t widest_list = 100;  ///< where no terminal sets a limit
constexpr std::size_t narrowest_list = 24;
constexpr std::size_t column_gap = 3;

// An answer of a thousand agents is about a megabyte.
constexpr std::size_t agents_on_a_page = 1000;
constexpr std::size_t tools_on_a_page = 5000;
/// More would push everything else of `status` out of sight.
constexpr std::size_t agents_in_status = 50;

std::expected<std::string, Failure> fetch(Context& context, const std::string& path) {
  auto gateway = context.gateway();
  if (!gateway) return std::unexpected(gateway.error());
  return gateway->get_json(path);
}

std::expected<FleetView, Failure> fetch_status(Context& context, const std::string& path) {
  auto body = fetch(context, path);
  if (!body) return std::unexpected(body.error());
  auto fleet = parse_fleet(*body);
  if (!fleet) return std::unexpected(Failure{ExitCode::error, fleet.error().message});
  return *std::move(fleet);
}

/// A reader that gets page after page must see each of them end.
Failure endless() {
  return {ExitCode::error, "the gateway sends page after page without coming to an end"};
}

/// Appends the elements of one JSON array to another one.
void append_array(std::string& array, std::string_view more) {
  std::string_view elements = trim(more.substr(1, more.size() - 2));
  if (elements.empty()) return;
  array.pop_back();
  if (array.size() > 1) array += ',';
  array += elements;
  array += ']';
}

std::string path_of(const AgentFilter& filter, std::size_t limit) {
  std::string path = fmt::format("/api/status?limit={}", limit);
  for (const auto& [name, value] :
       {std::pair("status", &filter.status), std::pair("tag", &filter.tag), std::pair("id", &filter.id),
        std::pair("q", &filter.search), std::pair("sort", &filter.sort)}) {
    if (!value->empty()) path += fmt::format("&{}={}", name, percent_encoded(*value));
  }
  return path;
}

std::expected<FleetView, Failure> fetch_agents(Context& context, const AgentFilter& filter) {
  FleetView all;
  std::string cursor;
  do {
    std::size_t missing = filter.limit == 0 ? agents_on_a_page : filter.limit - all.agents.size();
    std::string path = path_of(filter, std::min(missing, agents_on_a_page));
    if (!cursor.empty()) path += "&cursor=" + percent_encoded(cursor);
    auto page = fetch_status(context, path);
    if (!page) return std::unexpected(page.error());
    if (!cursor.empty() && (page->agents.empty() || page->next_cursor == cursor)) return std::unexpected(endless());
    all.counts = page->counts;
    cursor = page->next_cursor;
    append_array(all.raw_agents, page->raw_agents);
    std::ranges::move(page->agents, std::back_inserter(all.agents));
  } while (!cursor.empty() && (filter.limit == 0 || all.agents.size() < filter.limit));
  return all;
}

/// The body of GET /api/tools, as one page. A gateway of the reference sends everything at once.
std::expected<std::string, Failure> fetch_tools(Context& context, const std::string& agent) {
  std::string path = fmt::format("/api/tools?limit={}", tools_on_a_page);
  if (!agent.empty()) path += "&agent=" + percent_encoded(agent);
  auto body = fetch(context, path);
  std::string cursor = body ? next_cursor_of(*body) : "";
  if (cursor.empty()) return body;
  std::string tools = "[]";
  while (true) {
    auto page = tools_of_agent(*body, "");
    if (!page) return std::unexpected(Failure{ExitCode::error, page.error().message});
    append_array(tools, *page);
    if (cursor.empty()) return R"({"tools":)" + tools + "}";
    body = fetch(context, path + "&cursor=" + percent_encoded(cursor));
    if (!body) return body;
    std::string next = next_cursor_of(*body);
    if (next == cursor) return std::unexpected(endless());
    cursor = std::move(next);
  }
}

std::string state_of(const AgentView& agent) {
  if (!agent.has_connected) return "never connected";
  const std::string& since = agent.offline_since.empty() ? agent.last_seen : agent.offline_since;
  std::string state = agent.online ? "online" : since.empty() ? "offline" : "offline since " + since;
  if (!agent.flapping_since.empty()) {
    state += fmt::format(", {} since {}", agent.contested ? "CONTESTED" : "flapping", agent.flapping_since);
  }
  return state;
}

/// The columns of a table in front of its last one, whose cells are not in the rows yet.
std::size_t width_before_last(const std::vector<std::string>& headings,
                              const std::vector<std::vector<std::string>>& rows) {
  std::size_t total = 0;
  for (std::size_t k = 0; k + 1 < headings.size(); ++k) {
    std::size_t widest = display_width(headings[k]);
    for (const std::vector<std::string>& row : rows)
      widest = std::max(widest, display_width(escape_for_terminal(row[k])));
    total += widest + column_gap;
  }
  return total;
}

std::string agent_table(const FleetView& fleet, bool with_details, const Context& context) {
  std::vector<std::string> headings = {"AGENT ID", "STATE", "IP ADDRESS", "OS VERSION"};
  bool with_tags =
      with_details && std::ranges::any_of(fleet.agents, [](const AgentView& agent) { return !agent.tags.empty(); });
  if (with_tags) headings.emplace_back("TAGS");
  if (with_details) headings.emplace_back("PORTS");
  headings.emplace_back("SERVICES");
  std::vector<std::vector<std::string>> rows;
  for (const AgentView& agent : fleet.agents) {
    rows.push_back({agent.id, state_of(agent), agent.address, agent.os_version});
    if (with_tags) rows.back().push_back(cut_list(agent.tags, ",", widest_ports));
    // A long list of ports would push the services out of sight.
    if (with_details) {
      rows.back().push_back(cut_list(agent.ports, ",", context.output.is_terminal() ? widest_ports : widest_list));
    }
  }
  std::size_t services_width = widest_list;
  if (std::size_t width = context.output.width(); width != 0) {
    std::size_t before = width_before_last(headings, rows);
    services_width = std::max(width > before ? width - before : 0, narrowest_list);
  }
  Table table(std::move(headings));
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const std::vector<std::string>& services = fleet.agents[k].services;
    rows[k].push_back(with_details ? cut_list(services, ", ", services_width) : fmt::format("{}", services.size()));
    table.add(std::move(rows[k]));
  }
  return table.render(context.output.width(), context.format.color);
}

std::string upstream_table(const FleetView& fleet, const Context& context) {
  Table table({"SERVER NAME", "TRANSPORT/URL", "STATUS"});
  for (const UpstreamView& upstream : fleet.upstreams)
    table.add({upstream.name, upstream.url, upstream.status});
  return table.render(context.output.width(), context.format.color);
}

constexpr std::string_view no_agent_text =
    "No agent is connected. Start one with `myrmex-agent --config agent_config.json` on a server; its public key must "
    "stand\nin the gateway's authorized_keys with the agent's id as comment.\n";
constexpr std::string_view no_upstream_text = "No upstream server is configured.\n";

}  // namespace

ExitCode run_status(Context& context) {
  if (context.format.json) {
    auto body = fetch(context, "/api/status");
    if (!body) return context.fail_with(body.error());
    if (auto fleet = parse_fleet(*body); !fleet) return context.fail_with({ExitCode::error, fleet.error().message});
    context.output.write(json_for_terminal(trim(*body)) + "\n");
    return ExitCode::success;
  }
  auto status = fetch_status(context, fmt::format("/api/status?limit={}", agents_in_status));
  if (!status) return context.fail_with(status.error());
  const FleetView& fleet = *status;
  std::string counts = fmt::format("{} online", fleet.counts.online);
  std::int64_t offline = fleet.counts.total - fleet.counts.online - fleet.counts.never_connected;
  for (const auto& [number, word] :
       {std::pair(offline, "offline"), std::pair(fleet.counts.never_connected, "never connected"),
        std::pair(fleet.counts.flapping, "flapping")}) {
    if (number > 0) counts += fmt::format(", {} {}", number, word);
  }
  bool color = context.format.color;
  std::string text = styled("Edge agents", Style::heading, color) + ": " + counts + "\n";
  text += fleet.agents.empty() ? std::string(no_agent_text) : agent_table(fleet, false, context);
  if (auto shown = static_cast<std::int64_t>(fleet.agents.size()); shown < fleet.counts.total) {
    text += fmt::format("... and {} more: `myrmex agents` lists them\n", fleet.counts.total - shown);
  }
  text += "\n" + styled("Upstream servers", Style::heading, color) + fmt::format(": {}\n", fleet.upstreams.size());
  text += fleet.upstreams.empty() ? std::string(no_upstream_text) : upstream_table(fleet, context);
  if (fleet.pending_approvals > 0) {
    text += fmt::format("\n{}: {} waiting for a second person\n", styled("Approvals", Style::warning, color),
                        fleet.pending_approvals);
  }
  context.output.write(text);
  return ExitCode::success;
}

ExitCode run_agents(Context& context, const AgentFilter& filter) {
  auto fleet = fetch_agents(context, filter);
  if (!fleet) return context.fail_with(fleet.error());
  bool is_filtered = !(filter.status + filter.tag + filter.id + filter.search).empty();
  if (context.format.json) {
    context.output.write(pretty_json(fleet->raw_agents));
  } else if (fleet->agents.empty()) {
    context.output.write(is_filtered ? "No agent is like that. `myrmex agents` lists all of them.\n" : no_agent_text);
  } else {
    std::string text = agent_table(*fleet, true, context);
    if (auto shown = static_cast<std::int64_t>(fleet->agents.size()); shown < fleet->counts.total) {
      text += fmt::format("... and {} more\n", fleet->counts.total - shown);
    }
    context.output.write(text);
  }
  return ExitCode::success;
}

ExitCode run_tools(Context& context, const std::string& agent) {
  auto body = fetch_tools(context, agent);
  if (!body) return context.fail_with(body.error());
  if (!agent.empty()) {
    auto kept = tools_of_agent(*body, agent);
    if (!kept) return context.fail_with({ExitCode::error, kept.error().message});
    *body = R"({"tools":)" + *kept + "}";
  }
  auto tools = parse_tools(*body);
  if (!tools) return context.fail_with({ExitCode::error, tools.error().message});
  if (!agent.empty() && tools->empty()) {
    return context.fail_with({ExitCode::unreachable, fmt::format("no tools of an agent {}: it is offline or unknown; "
                                                                 "`myrmex agents` lists the agents",
                                                                 quote(agent))});
  }
  if (context.format.json) {
    context.output.write(json_for_terminal(trim(*body)) + "\n");
    return ExitCode::success;
  }
  if (tools->empty()) {
    context.output.write("No tool is offered, because no agent is connected. `myrmex status` shows the fleet.\n");
    return ExitCode::success;
  }
  Table table({"TOOL NAME", "DESCRIPTION"});
  for (const ToolView& tool : *tools)
    table.add({tool.name, tool.description});
  context.output.write(table.render(context.output.width(), context.format.color));
  return ExitCode::success;
}

}  // namespace hive::cli
