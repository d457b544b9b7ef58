#include "gateway/surfaces/mcp/server.h"

#include "protocol/json_object.h"

namespace hive::mcp_surface {

namespace {
constexpr std::chrono::seconds sweep_period{1};
}

Server::Server(Dependencies given, std::shared_ptr<const config::GatewayConfig> config)
    : dependencies(std::move(given)),
      catalogs(std::make_shared<Catalogs>(dependencies)),
      held(dependencies.clock, {}),
      session_events(dependencies.log, dependencies.clock),
      subscriptions(std::make_shared<Subscriptions>(dependencies, catalogs)),
      worker_(dependencies.runtime.worker(0)),
      config_(std::move(config)) {}

Server::~Server() {
  // A timer may only be destroyed where it runs.
  worker_.post([timer = std::make_shared<net::Timer>(std::move(timer_))] { timer->cancel(); });
}

void Server::start() {
  if (dependencies.upstreams != nullptr) {
    upstream_listener_ =
        dependencies.upstreams->listen([weak = std::weak_ptr(subscriptions)](const upstreams::Change& change) {
          if (auto alive = weak.lock()) alive->upstream_changed(change);
        });
  }
  worker_.post([weak = weak_from_this()] {
    if (auto self = weak.lock()) self->schedule_sweep();
  });
}

void Server::schedule_sweep() {
  if (is_closing_) return;
  timer_ = worker_.schedule(sweep_period, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (self == nullptr) return;
    self->held.sweep();
    self->schedule_sweep();
  });
}

void Server::apply(std::shared_ptr<const config::GatewayConfig> config) {
  {
    std::lock_guard lock(mutex_);
    config_ = std::move(config);
  }
  subscriptions->fleet_changed();
}

void Server::close() {
  if (is_closing_.exchange(true)) return;
  upstream_listener_.reset();
  held.withdraw_all("the gateway is stopping");
  subscriptions->close();
}

std::shared_ptr<const config::GatewayConfig> Server::config() const {
  std::lock_guard lock(mutex_);
  return config_;
}

bool Server::speaks_modern(std::string_view upstream) const {
  if (dependencies.upstreams == nullptr) return false;
  for (const upstreams::UpstreamStatus& status : dependencies.upstreams->statuses()) {
    if (status.name != upstream) continue;
    auto revision = mcp::revision_from_string(status.revision);
    return revision && mcp::is_modern(*revision);
  }
  return false;
}

std::string Server::capabilities(mcp::Revision revision) {
  json::ObjectText capabilities;
  capabilities.raw("tools", R"({"listChanged":true})")
      .raw("resources", R"({"subscribe":true,"listChanged":true})")
      .raw("prompts", R"({"listChanged":true})")
      .raw("logging", "{}");
  if (revision >= mcp::Revision::v2025_03_26) capabilities.raw("completions", "{}");
  return capabilities.take();
}

std::string_view Server::instructions() {
  return "Operates a fleet of servers. A tool named AGENT__TOOL runs on the server of that agent; other tools belong "
         "to the gateway or to the MCP servers behind it. gateway__list_agents says which agents are online. Every "
         "call passes roles, scopes, approvals, rate limits and the agent's own allowlist, and is recorded; a refusal "
         "says its reason, and asking again does not change it. A call that waits for approval returns an id for "
         "gateway__approval_result.";
}

std::string_view Server::server_info() {
  return R"({"name":"myrmex-hive","title":"Myrmex Hive","version":")" HIVE_VERSION R"("})";
}

bool Server::admit_session(const std::string& identity) {
  std::lock_guard lock(mutex_);
  if (session_count_ >= max_sessions) return false;
  std::size_t& of_identity = sessions_[identity];
  if (of_identity >= max_sessions_per_identity) return false;
  ++of_identity;
  ++session_count_;
  return true;
}

void Server::release_session(const std::string& identity) {
  std::lock_guard lock(mutex_);
  auto found = sessions_.find(identity);
  if (found == sessions_.end()) return;
  --session_count_;
  if (--found->second == 0) sessions_.erase(found);
}

}  // namespace hive::mcp_surface
