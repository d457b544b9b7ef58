#include "service.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/gateway_check.h"
#include "configuration_store.h"
#include "crypto/ssh_key.h"
#include "event_recorder.h"
#include "gateway/audit/log.h"
#include "gateway/audit/reader.h"
#include "gateway/calls/approvals.h"
#include "gateway/calls/funnel.h"
#include "gateway/fleet/authorized_keys_file.h"
#include "gateway/fleet/enrolment.h"
#include "gateway/fleet/fleet.h"
#include "gateway/fleet/session_watch.h"
#include "gateway/oidc/provider.h"
#include "gateway/policy/authenticator.h"
#include "gateway/policy/policy.h"
#include "gateway/store/database.h"
#include "gateway/surfaces/mcp/stdio_endpoint.h"
#include "gateway/surfaces/rest/api.h"
#include "mcp_side.h"
#include "net/http/certificate.h"
#include "net/http/server.h"
#include "net/runtime/runtime.h"
#include "net/ssh/server.h"
#include "net/vault/vault.h"

namespace hive::gateway {

namespace {

constexpr std::string_view stdio_name = "stdio";

size_t worker_count(const config::GatewayConfig& config) {
  if (config.workers > 0) return config.workers;
  return std::max(1U, std::thread::hardware_concurrency());
}

// A gateway's name in its checkpoints; it must stay the same for the life of the log.
std::string log_origin(const config::GatewayConfig& config) {
  return "myrmex-hive/" + config.gateway_id;
}

// Whoever started the program with --mcp-stdio.
policy::Principal stdio_principal(const config::GatewayConfig& config) {
  auto grant = std::make_shared<policy::Grant>();
  grant->kind = policy::CredentialKind::internal;
  grant->rule = config.where("stdio_role");
  return {.name = std::string(stdio_name),
          .role = policy::role_from_string(config.stdio_role).value_or(policy::Role::read_only),
          .grant = std::move(grant)};
}

// Which settings differ and are read at the start only.
std::vector<std::string> changed_settings_that_need_a_restart(const config::GatewayConfig& now,
                                                              const config::GatewayConfig& next) {
  std::vector<std::string> changed;
  auto compare = [&changed](std::string_view key, const auto& left, const auto& right) {
    if (left != right) changed.emplace_back(key);
  };
  compare("listen_addr", now.listen_addr, next.listen_addr);
  compare("http_addr", now.http_addr, next.http_addr);
  compare("plaintext_http_addr", now.plaintext_http_addr, next.plaintext_http_addr);
  compare("host_key_path", now.host_key_path, next.host_key_path);
  compare("authorized_keys_path", now.authorized_keys_path, next.authorized_keys_path);
  compare("tls_cert_path", now.tls_cert_path, next.tls_cert_path);
  compare("tls_key_path", now.tls_key_path, next.tls_key_path);
  compare("client_ca_cert_path", now.client_ca_cert_path, next.client_ca_cert_path);
  compare("state_dir", now.state_dir, next.state_dir);
  compare("audit_log_path", now.audit_log_path, next.audit_log_path);
  compare("gateway_id", now.gateway_id, next.gateway_id);
  compare("keepalive_seconds", now.keepalive, next.keepalive);
  compare("call_timeout_seconds", now.call_timeout, next.call_timeout);
  compare("workers", now.workers, next.workers);
  return changed;
}

}  // namespace

// In the order in which the rooms depend on each other; destroyed from the bottom up.
struct Service::State {
  explicit State(config::GatewayConfig start_config) : config(std::move(start_config)), runtime(worker_count(config)) {}

  config::GatewayConfig config;
  const Clock& clock = system_clock();
  std::unique_ptr<audit::Log> log;
  std::unique_ptr<EventRecorder> events;
  std::unique_ptr<fleet::AuthorizedKeysFile> authorized_keys;
  std::unique_ptr<fleet::Fleet> fleet;
  std::shared_ptr<const policy::Policy> policy;
  std::unique_ptr<calls::Funnel> funnel;
  std::atomic<std::shared_ptr<const rest::Settings>> settings;  // those in force
  std::vector<std::string> certificate_names;
  std::shared_ptr<rest::Api> api;
  net::http::Handler surface;
  net::Runtime runtime;
  std::shared_ptr<fleet::SessionWatch> session_watch;
  std::unique_ptr<fleet::Enrolment> enrolment;  // before the database, whose last tasks may be enrolments
  std::unique_ptr<store::Database> database;
  std::shared_ptr<calls::Approvals> approvals;
  std::unique_ptr<McpSide> mcp;
  std::unique_ptr<mcp_surface::StdioEndpoint> stdio;
  std::unique_ptr<net::ssh::Server> ssh_server;
  std::unique_ptr<net::http::Server> https_server;
  std::unique_ptr<net::http::Server> http_server;
  std::unique_ptr<FileConfigurationStore> configuration;
  std::mutex reload_mutex;  // the signal's thread and the surface's may both reload
  std::atomic<bool> ready = false;
  bool stopped = false;  // guarded by reload_mutex

  Result<void> open_log();
  Result<void> open_database();
  void make_fleet();
  Result<void> listen();
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

Result<void> Service::State::open_log() {
  if (config.audit_log_path.empty()) {
    log::warning("audit_log_path is not set: calls of tier write and admin are refused");
    events = std::make_unique<EventRecorder>(nullptr, clock);
    return {};
  }
  crypto::PrivateKey key = TRY(crypto::PrivateKey::load(config.host_key_path));
  audit::LogOptions options;
  options.path = config.audit_log_path;
  options.origin = log_origin(config);
  log = TRY(audit::Log::open(std::move(options), std::move(key)));
  const audit::RecoveryReport& recovery = log->recovery();
  if (recovery.repaired_bytes > 0) {
    log::warning("the end of the audit log was torn by a crash and is repaired",
                 {{"bytes", recovery.repaired_bytes}, {"moved_to", recovery.torn_path}});
  }
  events = std::make_unique<EventRecorder>(log.get(), clock);
  return {};
}

Result<void> Service::State::open_database() {
  TRY_CONTEXT("state_dir", make_private_folder(config.state_dir));
  database = TRY_CONTEXT("state_dir", store::Database::open(config.state_dir + "/hive.db"));
  return {};
}

// What cannot be recorded is not approved either: without an audit log there are no approvals.
Result<void> Service::State::open_approvals() {
  if (log == nullptr) return {};
  calls::Approvals::Dependencies dependencies{
      .database = *database, .funnel = *funnel, .runtime = runtime, .log = log.get(), .clock = clock};
  dependencies.refresh = [this](const policy::Principal& principal) -> std::optional<policy::Principal> {
    auto now = settings.load();
    bool is_internal = principal.grant != nullptr && principal.grant->kind == policy::CredentialKind::internal;
    if (is_internal && principal.name == stdio_name) return stdio_principal(*now->config);
    return now->authenticator->refresh(principal);
  };
  dependencies.time_to_live = [this] { return settings.load()->config->approval_ttl; };
  approvals = TRY(calls::Approvals::open(std::move(dependencies), {}));
  funnel->set_approvals(approvals.get());
  return {};
}

// What a crash interrupted is completed before anybody can connect.
Result<void> Service::State::open_enrolment() {
  enrolment = std::make_unique<fleet::Enrolment>(*database, *authorized_keys, *fleet, clock);
  std::vector<std::string> completed = TRY_CONTEXT("enrolment", enrolment->recover());
  for (const std::string& agent : completed)
    events->enrolment_completed(agent);
  session_watch = fleet::SessionWatch::create(runtime, *fleet, *authorized_keys);
  return {};
}

void Service::State::make_mcp_core() {
  mcp_surface::Dependencies dependencies{.runtime = runtime, .fleet = *fleet, .funnel = *funnel, .clock = clock};
  dependencies.approvals = approvals.get();
  dependencies.log = log.get();
  if (log != nullptr) {
    dependencies.read_audit = [path = config.audit_log_path](const audit::Query& query) {
      return audit::read_entries(path, query);
    };
  }
  mcp->make_core(std::move(dependencies), settings.load()->config);
}

void Service::State::make_fleet() {
  fleet::Fleet::Options options;
  options.keepalive = config.keepalive;
  options.default_call_time = config.call_timeout;
  fleet::Fleet::Events fleet_events;
  fleet_events.online = [this](const std::string& agent, const net::ssh::Peer& peer) {
    events->agent_online(agent, peer);
    mcp->fleet_changed();
  };
  fleet_events.offline = [this](const std::string& agent, const std::string& reason) {
    events->agent_offline(agent, reason);
    mcp->fleet_changed();
  };
  fleet_events.contested = [this](const std::string& agent, const std::string& detail) {
    events->agent_contested(agent, detail);
  };
  fleet_events.admit = [this](const net::ssh::Peer& peer) {
    return authorized_keys->authorize_session(peer.user, peer.key_fingerprint, peer.address);
  };
  fleet = fleet::Fleet::create(clock, options, std::move(fleet_events));
}

Result<void> Service::State::listen_ssh() {
  net::ssh::ServerOptions options;
  options.listen_address = config.listen_addr;
  options.host_key_path = config.host_key_path;
  options.authenticate = [this](const std::string& user, const crypto::PublicKey& key, const std::string& address) {
    // Tools carry the name of who offers them, and calls reach who has the name.
    if (mcp->upstreams().has(user)) {
      return Result<void>(
          fail(ErrorCode::permission_denied, "a server behind this gateway is called {} too", quote(user)));
    }
    return authorized_keys->authorize(user, key, address);
  };
  options.accept = [this](std::shared_ptr<net::ssh::LineChannel> channel) { fleet->add(std::move(channel)); };
  options.refused = [this](const std::string& address, const std::string& user, const std::string& reason) {
    events->tunnel_refused(address, user, reason);
  };
  ssh_server = TRY_CONTEXT("listen_addr", net::ssh::Server::listen(runtime, std::move(options)));
  log::info("listening for agents", {{"address", config.listen_addr}, {"port", ssh_server->port()}});
  return {};
}

Result<void> Service::State::listen_https() {
  if (config.http_addr.empty()) return {};
  net::http::ServerOptions options;
  options.listen_address = config.http_addr;
  options.tls_certificate_path = config.tls_cert_path;
  options.tls_key_path = config.tls_key_path;
  options.client_ca_path = config.client_ca_cert_path;
  if (options.tls_certificate_path.empty()) {
    TRY_CONTEXT("state_dir", make_private_folder(config.state_dir + "/tls"));
    auto files =
        TRY_CONTEXT("certificate", net::http::ensure_self_signed_certificate(config.state_dir + "/tls", {}, clock));
    options.tls_certificate_path = files.certificate_path;
    options.tls_key_path = files.key_path;
  }
  certificate_names = TRY(net::http::certificate_names(options.tls_certificate_path));
  https_server = TRY_CONTEXT("http_addr", net::http::Server::listen(runtime, options, handler()));
  log::info(
      "listening for HTTPS",
      {{"address", config.http_addr}, {"port", https_server->port()}, {"certificate", options.tls_certificate_path}});
  return {};
}

Result<void> Service::State::listen_http() {
  if (config.plaintext_http_addr.empty()) return {};
  net::http::ServerOptions options;
  options.listen_address = config.plaintext_http_addr;
  options.loopback_only = true;
  http_server = TRY_CONTEXT("plaintext_http_addr", net::http::Server::listen(runtime, options, handler()));
  log::info("listening for HTTP on loopback", {{"address", config.plaintext_http_addr}, {"port", http_server->port()}});
  return {};
}

// The surface needs the certificate's names, and the listeners need a handler before that: until the surface is there,
// nobody is served.
net::http::Handler Service::State::handler() {
  return [this](std::shared_ptr<net::http::Request> request, std::shared_ptr<net::http::Responder> responder) {
    surface(std::move(request), std::move(responder));
  };
}

Result<void> Service::State::listen() {
  authorized_keys = std::make_unique<fleet::AuthorizedKeysFile>(config.authorized_keys_path, clock);
  TRY_CONTEXT("authorized_keys_path", authorized_keys->check());
  TRY(open_enrolment());
  TRY(listen_https());
  TRY(listen_http());
  TRY(listen_ssh());
  policy = policy::make_policy(config, clock);
  mcp = TRY_CONTEXT("upstreams", McpSide::create(runtime, clock, *database, *events));
  funnel = calls::Funnel::create(*fleet, policy, log.get(), clock, {});
  funnel->set_upstreams(&mcp->upstreams());
  auto first_settings = TRY(rest::make_settings(std::make_shared<const config::GatewayConfig>(config), policy,
                                                certificate_names, clock, oidc::provider_of(config, runtime, clock)));
  settings.store(first_settings);
  TRY(open_approvals());
  make_mcp_core();
  rest::Dependencies dependencies{
      .runtime = runtime, .fleet = *fleet, .funnel = *funnel, .clock = clock, .log = log.get()};
  if (log != nullptr) {
    dependencies.read_audit = [path = config.audit_log_path](const audit::Query& query) {
      return audit::read_entries(path, query);
    };
  }
  dependencies.is_ready = [this] { return ready.load(); };
  dependencies.approvals = approvals.get();
  dependencies.mcp = mcp->http();
  dependencies.upstreams = &mcp->upstreams();
  open_configuration();
  dependencies.configuration = configuration.get();
  dependencies.enrolment = enrolment.get();
  dependencies.host_key = TRY(crypto::PrivateKey::load(config.host_key_path)).public_key().to_line();
  api = rest::Api::create(std::move(dependencies), std::move(first_settings));
  surface = api->handler();
  return {};
}

void Service::State::open_configuration() {
  configuration = std::make_unique<FileConfigurationStore>(
      config.source_path, log.get(),
      FileConfigurationStore::Hooks{.check = [this](const std::string& text) { return check(text); },
                                    .reload = [this] { return reload(); }});
}

// Whether the gateway would start with this text in the place of its file.
Result<void> Service::State::check(const std::string& text) const {
  config::GatewayConfig next = TRY(
      config::parse_gateway_config(text, config.source_path, net::vault::with_vault(config::SecretSources::system())));
  // Otherwise one admin could lift the rule that asks for two: by a token for a person who does not exist, for example.
  const std::vector<std::string>& asking = settings.load()->config->require_approval_tiers;
  bool needs_others = std::ranges::find(asking, protocol::to_string(protocol::Tier::admin)) != asking.end();
  if (needs_others && policy::make_policy(next, clock)->version() != funnel->policy()->version()) {
    return fail(ErrorCode::permission_denied,
                "who may do what, and how often, cannot be changed over the API while require_approval_tiers holds "
                "\"admin\": edit {} "
                "on the gateway's machine and send the gateway SIGHUP",
                config.source_path);
  }
  config::GatewayFindings findings = config::check_gateway_files(next);
  if (findings.errors.empty()) return {};
  return fail(ErrorCode::invalid_argument, "{}", join(findings.errors, "\n"));
}

// Names the settings that need a restart.
Result<std::vector<std::string>> Service::State::apply_file() {
  config::GatewayConfig next =
      TRY(config::load_gateway_config(config.source_path, net::vault::with_vault(config::SecretSources::system())));
  auto next_policy = policy::make_policy(next, clock, policy.get());
  std::shared_ptr<oidc::Provider> provider =
      oidc::provider_of(next, runtime, clock, settings.load()->identity_provider);
  auto next_settings = TRY(rest::make_settings(std::make_shared<const config::GatewayConfig>(next), next_policy,
                                               certificate_names, clock, provider));
  TRY_CONTEXT("authorized_keys_path", authorized_keys->check());
  // The last step that can fail, and it changes nothing when it does.
  if (https_server != nullptr) TRY_CONTEXT("certificate", https_server->reload_certificate());
  policy = next_policy;
  funnel->set_policy(next_policy);
  settings.store(next_settings);
  if (provider != nullptr) provider->prepare();
  mcp->apply(next_settings->config);
  api->apply(std::move(next_settings));
  log::set_level(next.log_level);
  return changed_settings_that_need_a_restart(config, next);
}

Result<std::vector<std::string>> Service::State::reload() {
  std::lock_guard lock(reload_mutex);
  if (stopped) return fail(ErrorCode::unavailable, "the gateway stops");
  Result<std::vector<std::string>> restart = apply_file();
  if (!restart) {
    events->configuration_reloaded(false, restart.error().message);
    return restart;
  }
  std::string keys = join(*restart, ", ");
  if (!keys.empty()) log::warning("these settings changed and need a restart", {{"keys", keys}});
  events->configuration_reloaded(true, keys.empty() ? "" : "needs a restart: " + keys);
  log::info("the configuration is reloaded", {{"file", config.source_path}});
  return restart;
}

Service::Service(std::unique_ptr<State> state) : state_(std::move(state)) {}

Service::~Service() {
  if (state_ != nullptr) stop(std::chrono::milliseconds(0));
}

Result<std::unique_ptr<Service>> Service::start(config::GatewayConfig config) {
  for (const std::string& key : config.without_effect)
    log::warning("a setting has no effect yet", {{"key", key}});
  auto state = std::make_unique<State>(std::move(config));
  TRY(state->open_log());
  TRY(state->open_database());
  state->make_fleet();
  TRY(state->listen());
  // The listeners hold what arrived until now; nothing runs before everything is there.
  state->runtime.start();
  if (auto provider = state->settings.load()->identity_provider) provider->prepare();
  state->mcp->apply(state->settings.load()->config);
  state->events->gateway_started(fmt::format("version {}, {} workers", HIVE_VERSION, state->runtime.size()));
  state->ready = true;
  return std::unique_ptr<Service>(new Service(std::move(state)));
}

Result<void> Service::reload() {
  TRY(state_->reload());
  return {};
}

void Service::serve_stdio(int in_fd, int out_fd, std::function<void()> ended) {
  mcp_surface::StdioEndpoint::Options options;
  options.in_fd = in_fd;
  options.out_fd = out_fd;
  options.principal = [state = state_.get()] { return stdio_principal(*state->settings.load()->config); };
  options.ended = std::move(ended);
  state_->stdio =
      mcp_surface::StdioEndpoint::start(*state_->mcp->core(), state_->runtime.next_worker(), std::move(options));
  log::info("serving MCP on standard input and output", {{"role", state_->settings.load()->config->stdio_role}});
}

void Service::stop(std::chrono::milliseconds patience, std::chrono::milliseconds last_words) {
  State& state = *state_;
  {
    std::lock_guard lock(state.reload_mutex);
    if (std::exchange(state.stopped, true)) return;
  }
  log::info("stopping", {{"calls_in_flight", state.funnel->in_flight()}});
  state.ready = false;
  state.ssh_server->stop_accepting();
  state.session_watch->stop();
  state.mcp->close_core();
  if (state.approvals != nullptr) state.approvals->close();
  // What was decided until now becomes a call, or an end, before the funnel is drained.
  state.wait_for_records();
  auto drained = std::make_shared<std::promise<void>>();
  std::future<void> all_ended = drained->get_future();
  state.funnel->drain([drained] { drained->set_value(); });
  if (all_ended.wait_for(patience) != std::future_status::ready) {
    log::warning("withdrawing the calls that still run", {{"calls_in_flight", state.funnel->in_flight()}});
    state.funnel->cancel_all("the gateway stops");
    if (all_ended.wait_for(last_words) != std::future_status::ready) {
      log::error("some calls did not end", {{"calls_in_flight", state.funnel->in_flight()}});
    }
  }
  state.stdio.reset();
  state.close_http(std::min<std::chrono::milliseconds>(last_words, std::chrono::seconds(2)));
  state.mcp->close_upstreams();
  state.fleet->close("the gateway stops");
  state.api->flush();
  state.events->gateway_stopped({});
  if (state.log != nullptr) {
    if (auto flushed = state.log->flush(); !flushed) {
      log::error("the end of the audit log is not on disk", {{"reason", flushed.error().message}});
    }
  }
  state.wait_for_workers();
  state.https_server.reset();
  state.http_server.reset();
  state.ssh_server.reset();
  state.runtime.stop();
  state.wait_for_records();
  state.mcp.reset();
  state.database.reset();
  // What was recorded meanwhile is written now, while the workers that its callbacks post to still exist.
  state.log.reset();
  log::info("stopped");
}

// The last answers are still being written when the last call has ended.
void Service::State::close_http(std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds pause{5};
  auto deadline = clock.steady_now() + limit;
  for (net::http::Server* server : {https_server.get(), http_server.get()}) {
    if (server == nullptr) continue;
    server->drain();
    while (server->open_connections() > 0 && clock.steady_now() < deadline)
      std::this_thread::sleep_for(pause);
  }
}

// What the database and the log were given before this is done, and what followed from it as well. A log that cannot
// write tells those who wait for it; here nobody does.
void Service::State::wait_for_records() {
  for (int round = 0; round < 2; ++round) {
    database->run([](store::Connection&) {});
    if (log != nullptr) (void)log->flush();
  }
}

// Everything that was posted before this has run: farewells to agents are on their way.
void Service::State::wait_for_workers() {
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < runtime.size(); ++i) {
      std::promise<void> reached;
      runtime.worker(i).post([&reached] { reached.set_value(); });
      reached.get_future().wait();
    }
  }
}

}  // namespace hive::gateway
