#include "cli/fleet_commands.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/fleet_view.h"
#include "cli/json_text.h"

namespace hive::cli {

namespace {

constexpr std::size_t widest_ports = 28;
constexpr std::size_t widest_list = 100;  ///< where no terminal sets a limit
constexpr std::size_t narrowest_list = 24;
constexpr std::size_t column_gap = 3;

struct Status {
  std::string body;
  FleetView fleet;
};

std::expected<Status, Failure> fetch_status(Context& context) {
  auto gateway = context.gateway();
  if (!gateway) return std::unexpected(gateway.error());
  auto body = gateway->get_json("/api/status");
  if (!body) return std::unexpected(body.error());
  auto fleet = parse_fleet(*body);
  if (!fleet) return std::unexpected(Failure{ExitCode::error, fleet.error().message});
  return Status{*std::move(body), *std::move(fleet)};
}

std::string state_of(const AgentView& agent) {
  if (agent.online) return "online";
  return agent.last_seen.empty() ? "offline" : "offline since " + agent.last_seen;
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
  if (with_details) headings.emplace_back("PORTS");
  headings.emplace_back("SERVICES");
  std::vector<std::vector<std::string>> rows;
  for (const AgentView& agent : fleet.agents) {
    rows.push_back({agent.id, state_of(agent), agent.address, agent.os_version});
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
  auto status = fetch_status(context);
  if (!status) return context.fail_with(status.error());
  if (context.format.json) {
    context.output.write(json_for_terminal(trim(status->body)) + "\n");
    return ExitCode::success;
  }
  const FleetView& fleet = status->fleet;
  auto online = std::ranges::count_if(fleet.agents, &AgentView::online);
  std::string counts = fmt::format("{} online", online);
  if (auto offline = static_cast<std::ptrdiff_t>(fleet.agents.size()) - online; offline > 0) {
    counts += fmt::format(", {} offline", offline);
  }
  bool color = context.format.color;
  std::string text = styled("Edge agents", Style::heading, color) + ": " + counts + "\n";
  text += fleet.agents.empty() ? std::string(no_agent_text) : agent_table(fleet, false, context);
  text += "\n" + styled("Upstream servers", Style::heading, color) + fmt::format(": {}\n", fleet.upstreams.size());
  text += fleet.upstreams.empty() ? std::string(no_upstream_text) : upstream_table(fleet, context);
  if (fleet.pending_approvals > 0) {
    text += fmt::format("\n{}: {} waiting for a second person\n", styled("Approvals", Style::warning, color),
                        fleet.pending_approvals);
  }
  context.output.write(text);
  return ExitCode::success;
}

ExitCode run_agents(Context& context) {
  auto status = fetch_status(context);
  if (!status) return context.fail_with(status.error());
  if (context.format.json) {
    context.output.write(pretty_json(status->fleet.raw_agents));
  } else if (status->fleet.agents.empty()) {
    context.output.write(no_agent_text);
  } else {
    context.output.write(agent_table(status->fleet, true, context));
  }
  return ExitCode::success;
}

ExitCode run_tools(Context& context, const std::string& agent) {
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  auto body = gateway->get_json("/api/tools");
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
