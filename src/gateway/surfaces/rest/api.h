#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "config/gateway_config.h"
#include "gateway/audit/log.h"
#include "gateway/audit/reader.h"
#include "gateway/calls/approvals.h"
#include "gateway/calls/fan_out.h"
#include "gateway/calls/funnel.h"
#include "gateway/fleet/enrolment.h"
#include "gateway/fleet/fleet.h"
#include "gateway/oidc/provider.h"
#include "gateway/policy/authenticator.h"
#include "gateway/policy/policy.h"
#include "gateway/surfaces/rest/configuration_store.h"
#include "gateway/surfaces/rest/mcp_endpoint.h"
#include "gateway/surfaces/rest/origin.h"
#include "gateway/upstreams/upstreams.h"
#include "net/http/message.h"
#include "net/runtime/runtime.h"

namespace hive::rest {

/// What the REST surface stands on for its whole life; all of it must outlive the server that runs the handler.
struct Dependencies {
  net::Runtime& runtime;
  fleet::Fleet& fleet;
  calls::Funnel& funnel;
  calls::FanOuts& fan_outs;
  const Clock& clock;
  audit::Log* log = nullptr;  ///< null: no audit log
  /// The calls that wait for other people; null where nothing can be recorded.
  calls::Approvals* approvals = nullptr;
  upstreams::Upstreams* upstreams = nullptr;  ///< null: no MCP server stands behind the gateway
  fleet::Enrolment* enrolment = nullptr;      ///< null: nobody is enrolled
  std::string host_key = {};                  ///< the public key that agents are to trust, as one line
  /// Reads pages of the audit log; may block, and runs on the blocking pool. Empty: no audit log.
  std::function<Result<audit::Page>(const audit::Query&)> read_audit = {};
  /// Whether the gateway can do its work: configuration loaded, tunnels accepted, not stopping. Any thread.
  std::function<bool()> is_ready = {};
  ConfigurationStore* configuration = nullptr;  ///< null: the configuration is out of reach
  McpEndpoint* mcp = nullptr;                   ///< null: MCP is not served over HTTP
};

/// What a reload of the configuration changes; immutable.
struct Settings {
  std::shared_ptr<const config::GatewayConfig> config;
  std::shared_ptr<const policy::Policy> policy;
  std::shared_ptr<const policy::Authenticator> authenticator;
  OriginPolicy origins;
  std::shared_ptr<oidc::Provider> identity_provider;  ///< null: without oidc_issuer
};

/// Builds the settings of a configuration. `host_names` are further names of this gateway, such as those in its
/// certificate; the host name, the listen addresses and the hosts of allowed_origins are added here.
/// `identity_provider` is what oidc::provider_of() makes of the configuration; identity tokens are refused without it.
Result<std::shared_ptr<const Settings>> make_settings(std::shared_ptr<const config::GatewayConfig> config,
                                                      std::shared_ptr<const policy::Policy> policy,
                                                      std::span<const std::string> host_names, const Clock& clock,
                                                      std::shared_ptr<oidc::Provider> identity_provider = nullptr);

/// The REST surface: the routes of route.h on top of the funnel and the fleet. Thread-safe.
class Api {
 public:
  static std::shared_ptr<Api> create(Dependencies dependencies, std::shared_ptr<const Settings> settings);
  virtual ~Api() = default;

  /// The handler for net::http::Server. It keeps the surface alive.
  [[nodiscard]] virtual net::http::Handler handler() = 0;
  /// Puts other settings in force for requests that arrive from now on.
  virtual void apply(std::shared_ptr<const Settings> settings) = 0;
  /// Writes what was counted of refused requests to the audit log, and waits no longer for the identity provider. For
  /// shutdown.
  virtual void flush() = 0;
};

}  // namespace hive::rest
