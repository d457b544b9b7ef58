#include "service.h"

#include <algorithm>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "crypto/ssh_key.h"
#include "gateway/audit/reader.h"
#include "gateway/fleet/probe.h"
#include "gateway/oidc/provider.h"
#include "net/http/certificate.h"
#include "protocol/agent_protocol.h"
#include "service_state.h"

namespace hive::gateway {

namespace {

constexpr std::string_view stdio_name = "stdio";

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

}  // namespace

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

std::optional<policy::Principal> Service::State::refresh(const policy::Principal& earlier) const {
  auto now = settings.load();
  bool is_internal = earlier.grant != nullptr && earlier.grant->kind == policy::CredentialKind::internal;
  if (is_internal && earlier.name == stdio_name) return stdio_principal(*now->config);
  return now->authenticator->refresh(earlier);
}

// What cannot be recorded is not approved either: without an audit log there are no approvals.
Result<void> Service::State::open_approvals() {
  if (log == nullptr) return {};
  calls::Approvals::Dependencies dependencies{
      .database = *database, .funnel = *funnel, .runtime = runtime, .log = log.get(), .clock = clock};
  dependencies.refresh = [this](const policy::Principal& principal) { return refresh(principal); };
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
  mcp_surface::Dependencies dependencies{
      .runtime = runtime, .fleet = *fleet, .funnel = *funnel, .fan_outs = *fan_outs, .clock = clock};
  dependencies.approvals = approvals.get();
  dependencies.log = log.get();
  if (log != nullptr) {
    dependencies.read_audit = [path = config.audit_log_path](const audit::Query& query) {
      return audit::read_entries(path, query);
    };
  }
  mcp->make_core(std::move(dependencies), settings.load()->config);
}

Result<void> Service::State::make_fleet() {
  roster = std::make_unique<fleet::Roster>(clock);
  last_known = TRY_CONTEXT(
      "state_dir",
      fleet::LastKnown::open(
          {.runtime = runtime, .database = *database, .roster = *roster, .clock = clock, .keyless_for = [this] {
             return settings.load()->config->fleet_retention;
           }}));
  fleet::Fleet::Options options;
  options.keepalive = config.keepalive;
  options.default_call_time = config.call_timeout;
  options.max_calls_in_flight_per_agent = config.max_calls_per_agent;
  fleet::Fleet::Events fleet_events;
  fleet_events.online = [this](const std::string& agent, const net::ssh::Peer& peer) {
    events->agent_online(agent, peer);
    mcp->fleet_changed();
  };
  fleet_events.offline = [this](const std::string& agent, const std::string& reason) {
    events->agent_offline(agent, reason);
    mcp->fleet_changed();
    memory_return.tunnel_ended();
  };
  fleet_events.contested = [this](const std::string& agent, const std::string& detail) {
    events->agent_contested(agent, detail);
  };
  fleet_events.flapping = [this](const std::string& agent, const std::string& detail) {
    events->agent_flapping(agent, detail);
  };
  fleet_events.listed = [this](const std::string&) { mcp->fleet_changed(); };
  fleet_events.admit = [this](const net::ssh::Peer& peer) {
    return authorized_keys->authorize_session(peer.user, peer.key_fingerprint, peer.address);
  };
  fleet = fleet::Fleet::create(clock, options, std::move(fleet_events), roster.get());
  return {};
}

Result<void> Service::State::listen_ssh() {
  net::ssh::ServerOptions options;
  options.listen_address = config.listen_addr;
  options.host_key_path = config.host_key_path;
  options.max_handshakes = config.max_handshakes;
  options.max_handshakes_per_source = config.max_handshakes_per_address;
  options.authenticate = [this](const std::string& user, const crypto::PublicKey& key, const std::string& address) {
    // Tools carry the name of who offers them, and calls reach who has the name.
    if (mcp->upstreams().has(user)) {
      return Result<void>(
          fail(ErrorCode::permission_denied, "a server behind this gateway is called {} too", quote(user)));
    }
    return authorized_keys->authorize(user, key, address);
  };
  options.probe_subsystem = std::string(protocol::ssh_probe_subsystem);
  options.accept = [this](std::shared_ptr<net::ssh::LineChannel> channel) {
    if (channel->peer().kind == net::ssh::ChannelKind::probe) {
      return fleet::answer_probe(std::move(channel), *fleet, clock);
    }
    fleet->add(std::move(channel));
  };
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
  fleet->set_enrolled(*authorized_keys->agents());
  TRY(listen_https());
  TRY(listen_http());
  TRY(listen_ssh());
  policy = policy::make_policy(config, clock);
  mcp = TRY_CONTEXT("upstreams", McpSide::create(runtime, clock, *database, *events));
  funnel = calls::Funnel::create(
      *fleet, policy, log.get(), clock,
      {.max_calls_per_caller = config.max_calls_per_caller, .max_wait_for_agent = config.max_agent_wait});
  funnel->set_upstreams(&mcp->upstreams());
  funnel->set_refresh([this](const policy::Principal& principal) { return refresh(principal); });
  fan_outs = calls::FanOuts::create(*funnel, *fleet, log.get(), clock);
  auto first_settings = TRY(rest::make_settings(std::make_shared<const config::GatewayConfig>(config), policy,
                                                certificate_names, clock, oidc::provider_of(config, runtime, clock)));
  settings.store(first_settings);
  TRY(open_approvals());
  make_mcp_core();
  rest::Dependencies dependencies{
      .runtime = runtime, .fleet = *fleet, .funnel = *funnel, .fan_outs = *fan_outs, .clock = clock, .log = log.get()};
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
  TRY(state->make_fleet());
  TRY(state->listen());
  state->last_known->start();
  // The listeners hold what arrived until now; nothing runs before everything is there.
  state->runtime.start();
  if (auto provider = state->settings.load()->identity_provider) provider->prepare();
  state->mcp->apply(state->settings.load()->config);
  state->events->gateway_started(fmt::format("version {}, {} workers", HIVE_VERSION, state->runtime.size()));
  state->ready = true;
  return std::unique_ptr<Service>(new Service(std::move(state)));
}

namespace {

// Whether a server has said what it offers, or will not soon. One without tools is believed after a second.
bool is_settled(const upstreams::UpstreamStatus& status, WallTime now) {
  if (status.state != "connected") return status.state != "connecting";
  return status.tools + status.held_back > 0 || now - status.since >= std::chrono::seconds(1);
}

// A client that starts this program lists the tools once, at its own start, and would miss those of servers that start
// together with us.
void await_upstreams(const upstreams::Upstreams& upstreams, const Clock& clock) {
  constexpr std::chrono::seconds patience(5);
  constexpr std::chrono::milliseconds pause(20);
  SteadyTime deadline = clock.steady_now() + patience;
  auto all_settled = [&] {
    return std::ranges::all_of(upstreams.statuses(),
                               [&](const auto& status) { return is_settled(status, clock.wall_now()); });
  };
  while (!all_settled() && clock.steady_now() < deadline)
    std::this_thread::sleep_for(pause);
}

}  // namespace

void Service::serve_stdio(int in_fd, int out_fd, std::function<void()> ended) {
  mcp_surface::StdioEndpoint::Options options;
  options.in_fd = in_fd;
  options.out_fd = out_fd;
  options.principal = [state = state_.get()] { return stdio_principal(*state->settings.load()->config); };
  options.ended = std::move(ended);
  await_upstreams(state_->mcp->upstreams(), state_->clock);
  state_->stdio =
      mcp_surface::StdioEndpoint::start(*state_->mcp->core(), state_->runtime.next_worker(), std::move(options));
  log::info("serving MCP on standard input and output", {{"role", state_->settings.load()->config->stdio_role}});
}

std::string Service::status() const {
  const fleet::SnapshotPointer fleet = state_->fleet->snapshot();
  const auto online = std::ranges::count_if(fleet->agents, [](const auto& agent) { return agent->online; });
  return fmt::format("{} agent{} online, {} calls running", online, online == 1 ? "" : "s",
                     state_->funnel->in_flight());
}

void Service::report_to(const net::ServiceManager& manager) {
  manager.ready(status());
  std::vector<net::Worker*> workers;
  for (std::size_t i = 0; i < state_->runtime.size(); ++i)
    workers.push_back(&state_->runtime.worker(i));
  state_->watchdog = std::make_unique<net::Watchdog>(manager, std::move(workers), [this] { return status(); });
}

}  // namespace hive::gateway
