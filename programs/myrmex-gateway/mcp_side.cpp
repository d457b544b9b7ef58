#include "mcp_side.h"

namespace hive::gateway {

Result<std::unique_ptr<McpSide>> McpSide::create(net::Runtime& runtime, const Clock& clock, store::Database& database,
                                                 EventRecorder& events) {
  upstreams::Upstreams::Dependencies dependencies{.runtime = runtime, .clock = clock, .database = database};
  dependencies.event = [&events](const std::string& upstream, const std::string& action, const std::string& detail) {
    events.upstream(upstream, action, detail);
  };
  auto upstreams = TRY(upstreams::Upstreams::create(std::move(dependencies)));
  return std::unique_ptr<McpSide>(new McpSide(std::move(upstreams)));
}

void McpSide::make_core(mcp_surface::Dependencies dependencies, std::shared_ptr<const config::GatewayConfig> config) {
  dependencies.upstreams = upstreams_.get();
  net::Runtime& runtime = dependencies.runtime;
  const Clock& clock = dependencies.clock;
  core_ = mcp_surface::Core::create(std::move(dependencies), std::move(config));
  http_ = mcp_surface::HttpEndpoint::create(runtime, core_, clock);
}

void McpSide::apply(std::shared_ptr<const config::GatewayConfig> config) {
  upstreams_->apply(*config);
  if (core_ != nullptr) core_->apply(std::move(config));
}

void McpSide::fleet_changed() {
  if (core_ != nullptr) core_->fleet_changed();
}

void McpSide::close_core() {
  if (core_ == nullptr) return;
  core_->close();
  http_->close();
}

}  // namespace hive::gateway
