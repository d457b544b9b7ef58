#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "configuration_store.h"
#include "event_recorder.h"
#include "gateway/audit/log.h"
#include "gateway/calls/approvals.h"
#include "gateway/calls/fan_out.h"
#include "gateway/calls/funnel.h"
#include "gateway/fleet/authorized_keys_file.h"
#include "gateway/fleet/enrolment.h"
#include "gateway/fleet/fleet.h"
#include "gateway/fleet/last_known.h"
#include "gateway/fleet/roster.h"
#include "gateway/fleet/session_watch.h"
#include "gateway/policy/policy.h"
#include "gateway/store/database.h"
#include "gateway/surfaces/mcp/stdio_endpoint.h"
#include "gateway/surfaces/rest/api.h"
#include "mcp_side.h"
#include "memory_return.h"
#include "net/http/server.h"
#include "net/runtime/runtime.h"
#include "net/runtime/watchdog.h"
#include "net/ssh/server.h"
#include "service.h"

namespace hive::gateway {

/// What the gateway consists of while it runs: made in service.cpp, changed in service_reload.cpp, ended in
/// service_stop.cpp.
/// In the order in which the rooms depend on each other; destroyed from the bottom up.
struct Service::State {
  explicit State(config::GatewayConfig start_config)
      : config(std::move(start_config)),
        // One worker a core, unless the configuration says otherwise.
        runtime(config.workers > 0 ? config.workers : std::max(1U, std::thread::hardware_concurrency())) {}

  config::GatewayConfig config;
  const Clock& clock = system_clock();
  std::unique_ptr<audit::Log> log;
  std::unique_ptr<EventRecorder> events;
  std::unique_ptr<fleet::AuthorizedKeysFile> authorized_keys;
  std::unique_ptr<fleet::Roster> roster;
  std::unique_ptr<fleet::Fleet> fleet;
  std::shared_ptr<const policy::Policy> policy;
  std::unique_ptr<calls::Funnel> funnel;
  std::unique_ptr<calls::FanOuts> fan_outs;
  std::atomic<std::shared_ptr<const rest::Settings>> settings;  // those in force
  std::vector<std::string> certificate_names;
  std::shared_ptr<rest::Api> api;
  net::http::Handler surface;
  net::Runtime runtime;
  MemoryReturn memory_return{runtime};
  std::shared_ptr<fleet::SessionWatch> session_watch;
  std::shared_ptr<fleet::LastKnown> last_known;
  std::unique_ptr<fleet::Enrolment> enrolment;  // before the database, whose last tasks may be enrolments
  std::unique_ptr<store::Database> database;
  std::shared_ptr<calls::Approvals> approvals;
  std::unique_ptr<McpSide> mcp;
  std::unique_ptr<mcp_surface::StdioEndpoint> stdio;
  std::unique_ptr<net::ssh::Server> ssh_server;
  std::unique_ptr<net::http::Server> https_server;
  std::unique_ptr<net::http::Server> http_server;
  std::unique_ptr<FileConfigurationStore> configuration;
  std::unique_ptr<net::Watchdog> watchdog;  // null until somebody wants reports
  std::mutex reload_mutex;                  // the signal's thread and the surface's may both reload
  std::atomic<bool> ready = false;
  bool stopped = false;  // guarded by reload_mutex

  Result<void> open_log();
  Result<void> open_database();
  Result<void> make_fleet();
  Result<void> listen();
  /// What a credential that was accepted earlier gives by the settings in force. Thread-safe.
  [[nodiscard]] std::optional<policy::Principal> refresh(const policy::Principal& earlier) const;
  void open_configuration();
  Result<void> check(const std::string& text) const;
  Result<std::vector<std::string>> reload();
  Result<std::vector<std::string>> apply_file();
  Result<void> open_approvals();
  void make_mcp_core();
  Result<void> open_enrolment();
  Result<void> listen_ssh();
  Result<void> listen_https();
  Result<void> listen_http();
  net::http::Handler handler();
  void close_http(std::chrono::milliseconds limit);
  void wait_for_workers();
  void wait_for_records();
};

}  // namespace hive::gateway
