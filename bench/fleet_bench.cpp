// What it costs to look at the fleet: the snapshot after a change, a page and the whole of GET /api/fleet, a search, a
// page of GET /api/tools and of MCP's tools/list, and writing down and reading what is known, for growing fleets.
// Figures are processor time of one core, so that other programs on the machine change little.
// Usage: fleet_bench [--quick]

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/strings.h"
#include "gateway/calls/fan_out.h"
#include "gateway/calls/funnel.h"
#include "gateway/fleet/fleet.h"
#include "gateway/fleet/last_known.h"
#include "gateway/fleet/roster.h"
#include "gateway/store/database.h"
#include "gateway/surfaces/mcp/catalog_pages.h"
#include "gateway/surfaces/rest/agent_json.h"
#include "gateway/surfaces/rest/fleet_query.h"
#include "net/http/message.h"
#include "process.h"
#include "protocol/tools.h"

namespace {

using namespace hive;
using bench::give_up;
using bench::processor_seconds;

/// Milliseconds that one `work` takes.
double cost_of(double seconds, const std::function<void()>& work) {
  work();
  double begin = processor_seconds();
  double spent = 0;
  std::size_t count = 0;
  do {
    work();
    ++count;
    spent = processor_seconds() - begin;
  } while (spent < seconds);
  return spent * 1e3 / static_cast<double>(count);
}

std::string id_of(std::size_t number) {
  return fmt::format("edge-{:05}", number);
}

fleet::ToolList builtin_tools() {
  fleet::ToolList tools;
  for (const protocol::ToolDescription& tool : protocol::builtin_tools()) {
    tools.push_back({std::string(tool.name), std::string(tool.description),
                     fmt::format(R"({{"name":"{}","description":"{}","inputSchema":{},"outputSchema":{}}})", tool.name,
                                 tool.description, tool.input_schema, tool.output_schema)});
  }
  return tools;
}

/// As many agents as real ones tell of themselves: thirty services, ten ports.
void fill(fleet::Roster& roster, std::size_t agents) {
  auto tools = std::make_shared<const fleet::ToolList>(builtin_tools());
  fleet::AgentStatus description;
  description.os_version = "Debian GNU/Linux 12 (bookworm)";
  description.agent_version = "0.1.0";
  for (int i = 0; i < 30; ++i)
    description.running_services.push_back(fmt::format("service-{}.service", i));
  for (int i = 0; i < 10; ++i)
    description.open_ports.push_back(std::to_string(8000 + i));
  for (std::size_t i = 0; i < agents; ++i) {
    net::ssh::Peer peer;
    peer.user = id_of(i);
    peer.address = fmt::format("10.{}.{}.{}", i / 62'500, i / 250 % 250, i % 250);
    peer.key_fingerprint = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU";
    peer.software = "SSH-2.0-myrmex";
    (void)roster.connected(peer, false);
    roster.described(peer.user, description);
    roster.listed(peer.user, tools);
  }
}

class Bench {
 public:
  Bench(std::size_t agents, double seconds) : agents_(agents), seconds_(seconds) { fill(roster_, agents_); }

  void run() {
    show("a change and the snapshot after it", [this] {
      roster_.disconnected(id_of(agents_ / 2), "gone");
      (void)roster_.snapshot();
    });
    show("GET /api/fleet?limit=100", [this] { page("limit=100"); });
    show("GET /api/fleet?limit=100&q=service-29", [this] { page("limit=100&q=service-29"); });
    show("GET /api/fleet?limit=100&sort=-connected_at", [this] { page("limit=100&sort=-connected_at"); });
    show("GET /api/fleet, all of it", [this] { page(""); });
    list_tools();
    write_and_read();
  }

 private:
  void show(std::string_view what, const std::function<void()>& work) {
    std::printf("%6zu agents  %-46s %9.3f ms\n", agents_, std::string(what).c_str(), cost_of(seconds_, work));
    std::fflush(stdout);
  }

  void page(const std::string& text) {
    net::http::Request request;
    request.query = text;
    auto query = rest::FleetQuery::parse([&](std::string_view name) { return request.query_parameter(name); }, config_);
    if (!query) give_up(query.error().message);
    auto found = query->page_of(*roster_.snapshot(), [](const fleet::AgentStatus&) { return true; });
    std::string body;
    for (const fleet::AgentPointer& agent : found.agents)
      rest::append_fleet_entry(body, *agent, query->tags_of(agent->id), "gateway", false);
    if (body.empty()) give_up("an empty page");
  }

  void list_tools() {
    net::Runtime runtime(1);
    auto fleet = fleet::Fleet::create(system_clock(), {}, {}, &roster_);
    auto policy = policy::make_policy(config_, system_clock());
    auto funnel = calls::Funnel::create(*fleet, policy, nullptr, system_clock(), {});
    auto fan_outs = calls::FanOuts::create(*funnel, *fleet, nullptr, system_clock());
    mcp_surface::Catalogs catalogs(
        {.runtime = runtime, .fleet = *fleet, .funnel = *funnel, .fan_outs = *fan_outs, .clock = system_clock()});
    mcp_surface::CatalogPages pages;
    policy::Principal admin{.name = "root", .role = policy::Role::admin, .grant = nullptr};
    show("tools/list after a change, its first page", [&] {
      roster_.disconnected(id_of(agents_ / 2), "gone");
      auto page = pages.page(catalogs.current(), policy, admin, mcp_surface::Kind::tools, "", mcp::newest, "{}");
      if (page == nullptr) give_up("no page");
    });
  }

  void write_and_read() {
    std::string folder = (std::filesystem::temp_directory_path() / "fleet_bench.XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) give_up("no folder for the database");
    {
      auto database = store::Database::open(folder + "/hive.db");
      if (!database) give_up(database.error().message);
      net::Runtime runtime(1);
      fleet::Roster empty(system_clock());
      auto keeper = [&](fleet::Roster& roster) {
        auto known = fleet::LastKnown::open(
            {.runtime = runtime, .database = **database, .roster = roster, .clock = system_clock(), .keyless_for = [] {
               return std::chrono::seconds(1);
             }});
        if (!known) give_up(known.error().message);
        return *std::move(known);
      };
      auto writer = keeper(empty);
      fill(empty, agents_);
      double begin = processor_seconds();
      if (auto written = writer->close(); !written) give_up(written.error().message);
      std::printf("%6zu agents  %-46s %9.3f ms\n", agents_, "written down at once",
                  (processor_seconds() - begin) * 1e3);
      show("read at the start", [&] {
        fleet::Roster roster(system_clock());
        (void)keeper(roster);
        if (roster.snapshot()->agents.size() != agents_) give_up("agents are missing");
      });
    }
    std::filesystem::remove_all(folder);
  }

  const std::size_t agents_;
  const double seconds_;
  config::GatewayConfig config_;
  fleet::Roster roster_{system_clock()};
};

}  // namespace

int main(int argc, char** argv) {
  bool quick = argc == 2 && std::string_view(argv[1]) == "--quick";
  if (argc > 1 && !quick) {
    std::fprintf(stderr, "usage: %s [--quick]\n", argv[0]);
    return 2;
  }
  for (std::size_t agents : {100, 1000, 10'000})
    Bench(agents, quick ? 0.1 : 1).run();
  return 0;
}
