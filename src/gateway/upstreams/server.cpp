#include "gateway/upstreams/server.h"

#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "protocol/mcp/revision.h"

namespace hive::upstreams {

namespace {

constexpr std::size_t max_told_bytes = 256;
constexpr std::size_t max_url_bytes = 256;

TransportKind transport_kind(std::string_view name) {
  if (name == "stdio") return TransportKind::stdio;
  return name == "sse" ? TransportKind::sse : TransportKind::http;
}

// A query may hold a key, and a user name was refused.
std::string shown_address(const config::UpstreamConfig& config) {
  std::string shown;
  if (config.transport == "stdio") {
    shown = config.command;
    for (const std::string& argument : config.arguments)
      shown += " " + argument;
  } else {
    shown = config.url.substr(0, config.url.find_first_of("?#"));
  }
  return std::string(utf8::truncate(shown, max_url_bytes));
}

/// Text that a server had a hand in, for one line.
std::string bounded(std::string_view text) {
  return escape_for_terminal(utf8::truncate(text, max_told_bytes));
}

}  // namespace

Server::Server(std::shared_ptr<const Environment> environment, net::Worker& worker, std::uint64_t id,
               config::UpstreamConfig config, std::chrono::milliseconds call_timeout)
    : environment_(std::move(environment)),
      worker_(worker),
      id_(id),
      config_(std::move(config)),
      call_timeout_ms_(call_timeout.count()),
      catalog_(std::make_shared<const Catalog>()),
      backoff_(environment_->tuning.backoff_base, environment_->tuning.backoff_cap, environment_->random) {
  status_.name = config_.name;
  status_.prefix = config_.prefix;
  status_.transport = config_.transport;
  status_.url = shown_address(config_);
  status_.state = config_.enabled ? "connecting" : "disabled";
  status_.since = environment_->clock.wall_now();
}

void Server::start() {
  if (!config_.enabled) return;
  auto begin = [weak = weak_from_this()](Result<AcceptedTools> accepted) {
    auto self = weak.lock();
    if (self == nullptr || self->stopped_) return;
    if (accepted) {
      self->accepted_ = *std::move(accepted);
      self->may_accept_first_sight_ = self->accepted_.empty();
    } else {
      // Nothing is known to be accepted then, and nothing may be taken for it.
      log::error("the accepted descriptions cannot be read; all tools are held back",
                 {{"upstream", self->config_.name}, {"reason", accepted.error().message}});
    }
    self->open_main();
  };
  if (!config_.pin_tools) {
    worker_.post([begin] { begin(AcceptedTools()); });
    return;
  }
  environment_->database.post([weak = weak_from_this(), name = config_.name, begin](store::Connection& connection) {
    auto self = weak.lock();
    if (self == nullptr) return;
    self->worker_.post(
        [begin, accepted = load_accepted_tools(connection, name)]() mutable { begin(std::move(accepted)); });
  });
}

void Server::stop(net::Task stopped) {
  // The last reference goes on the worker: what belongs to it is destroyed there.
  worker_.post([self = shared_from_this(), stopped = std::move(stopped)]() mutable {
    self->stop_now();
    self.reset();
    if (stopped) stopped();
  });
}

void Server::stop_now() {
  stopped_ = true;
  reconnect_.cancel();
  settled_.cancel();
  refresh_.cancel();
  stop_listing();
  if (main_ != nullptr) release(*std::exchange(main_, nullptr));
  for (auto& [key, session] : std::exchange(sessions_, {}))
    release(*session);
  std::vector<std::uint64_t> tickets;
  for (const auto& [ticket, pending] : pending_)
    tickets.push_back(ticket);
  for (std::uint64_t ticket : tickets) {
    bool is_sent = pending_.at(ticket).is_sent;
    answer(ticket, unanswered(is_sent ? ReplyKind::lost : ReplyKind::not_sent, is_sent ? "lost" : "upstream_offline",
                              fmt::format("the upstream server {} is not used any more", quote(config_.name))));
  }
  set_state("disconnected", true);
}

UpstreamStatus Server::status() const {
  std::lock_guard lock(mutex_);
  UpstreamStatus status = status_;
  status.tools = catalog_->of(ItemKind::tools).size();
  status.held_back = catalog_->held_back.size();
  status.notes = catalog_->notes;
  status.calls_in_flight = in_flight_;
  return status;
}

std::shared_ptr<const Catalog> Server::catalog() const {
  std::lock_guard lock(mutex_);
  return catalog_;
}

ConnectionOptions Server::options() const {
  ConnectionOptions options;
  options.name = config_.name;
  options.transport = transport_kind(config_.transport);
  options.era = options.transport == TransportKind::sse ? EraPreference::legacy : EraPreference::probe;
  options.command = config_.command;
  options.arguments = config_.arguments;
  for (const auto& [name, value] : config_.environment)
    options.environment[name] = value.reveal();
  options.url = config_.url;
  for (const auto& [name, value] : config_.headers)
    options.headers.emplace_back(name, value.reveal());
  options.auth_token = config_.auth_token.reveal();
  options.ca_certificate_path = config_.ca_certificate_path;
  options.client_info = R"({"name":"myrmex-gateway","version":")" HIVE_VERSION R"("})";
  options.start_timeout = environment_->tuning.start_timeout;
  options.max_in_flight = environment_->tuning.max_in_flight * 2;
  return options;
}

std::shared_ptr<Session> Server::open_session(std::string key, ConnectionOptions options) {
  auto session = std::make_shared<Session>();
  session->key = std::move(key);
  session->log_level = options.log_level;
  std::weak_ptr<Server> weak = weak_from_this();
  std::weak_ptr<Session> weak_session = session;
  ConnectionEvents events;
  events.on_ready = [weak, weak_session](const ServerInfo& info) {
    auto self = weak.lock();
    auto opened = weak_session.lock();
    if (self != nullptr && opened != nullptr) self->on_ready(opened, info);
  };
  events.on_closed = [weak, weak_session](const Error& error) {
    auto self = weak.lock();
    auto closed = weak_session.lock();
    if (self != nullptr && closed != nullptr) self->on_closed(closed, error);
  };
  if (session->key.empty()) {
    events.on_notification = [weak](std::string_view method, std::string_view raw_params) {
      if (auto self = weak.lock()) self->on_notification(method, raw_params);
    };
  }
  session->connection = environment_->connect(worker_, std::move(options), std::move(events));
  session->connection->start();
  return session;
}

void Server::open_main() {
  reconnect_.cancel();
  main_ = open_session({}, options());
  for (std::uint64_t ticket : std::exchange(early_, {}))
    route(ticket);
}

void Server::on_ready(const std::shared_ptr<Session>& session, const ServerInfo& info) {
  if (stopped_ || session->phase != Session::Phase::opening) return;
  session->phase = Session::Phase::ready;
  if (session == main_) on_main_ready(info);
  {
    std::lock_guard lock(mutex_);
    status_.sessions = sessions_.size() + (main_is(Session::Phase::ready) ? 1 : 0);
  }
  flush(session);
}

void Server::on_main_ready(const ServerInfo& info) {
  bool was_connected_before = info_.has_value();
  info_ = info;
  has_no_sessions_ = false;
  last_error_.clear();
  {
    std::lock_guard lock(mutex_);
    status_.revision = mcp::to_string(info.revision);
    status_.server_name = bounded(info.name);
    status_.server_version = bounded(info.version);
    if (was_connected_before) ++status_.restarts;
  }
  set_state("connected", true);
  // A session that a server forgot and that was opened anew at once is no news.
  if (!was_announced_ || !is_announced_up_) {
    was_announced_ = is_announced_up_ = true;
    tell("upstream_connected",
         fmt::format("{} {}, MCP {}", bounded(info.name), bounded(info.version), mcp::to_string(info.revision)));
  }
  settled_ = worker_.schedule(environment_->tuning.settled, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->note_useful();
  });
  want_all({});
  apply_watches();
}

void Server::note_useful() {
  failures_ = 0;
  is_reopened_ = false;
  backoff_.reset();
}

void Server::on_closed(const std::shared_ptr<Session>& session, const Error& error) {
  if (stopped_ || session->phase == Session::Phase::ended) return;
  bool was_ready = session->phase == Session::Phase::ready;
  bool is_main = session == main_;
  // Of a modern server a session was only the better way.
  bool goes_without = !is_main && !was_ready && info_ && mcp::is_modern(info_->revision);
  if (goes_without) has_no_sessions_ = true;
  std::vector<std::uint64_t> waiting = std::exchange(session->waiting, {});
  std::set<std::uint64_t> in_flight = std::exchange(session->in_flight, {});
  if (is_main) {
    stop_listing();
    main_.reset();
    on_main_closed(was_ready, error);
  } else {
    sessions_.erase(session->key);
    log::debug("session of a caller ended", {{"upstream", config_.name}, {"reason", bounded(error.message)}});
  }
  release(*session);
  {
    std::lock_guard lock(mutex_);
    status_.sessions = sessions_.size() + (main_is(Session::Phase::ready) ? 1 : 0);
  }
  for (std::uint64_t ticket : in_flight) {
    answer(ticket, unanswered(ReplyKind::lost, "lost",
                              fmt::format("the connection to the upstream server {} broke: {}", quote(config_.name),
                                          bounded(error.message))));
  }
  for (std::uint64_t ticket : waiting) {
    auto pending = pending_.find(ticket);
    if (pending == pending_.end()) continue;
    pending->second.session.reset();
    if (is_main || goes_without) {
      route(ticket);
    } else {
      answer(ticket, unanswered(ReplyKind::not_sent, "upstream_offline",
                                fmt::format("the upstream server {} opened no session for this caller: {}",
                                            quote(config_.name), bounded(error.message))));
    }
  }
}

void Server::on_main_closed(bool was_ready, const Error& error) {
  settled_.cancel();
  last_error_ = bounded(error.message);
  // A server may forget sessions whenever it likes; one that does nothing else has to wait.
  if (was_ready && error.code == ErrorCode::not_found && !is_reopened_) {
    is_reopened_ = true;
    return open_main();
  }
  ++failures_;
  set_state("error: " + last_error_, was_ready);
  auto delay = backoff_.next();
  // Somebody must change something first; a try a minute finds out that it was done.
  if (error.code == ErrorCode::invalid_argument || error.code == ErrorCode::permission_denied) {
    delay = environment_->tuning.backoff_cap;
  }
  if (!was_announced_ || is_announced_up_) {
    was_announced_ = true;
    is_announced_up_ = false;
    tell(was_ready ? "upstream_lost" : "upstream_failed", last_error_);
  } else {
    log::debug("upstream server not reached", {{"upstream", config_.name}, {"reason", last_error_}});
  }
  reconnect_ = worker_.schedule(delay, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (self != nullptr && !self->stopped_) self->open_main();
  });
}

void Server::end_session(const std::shared_ptr<Session>& session) {
  std::set<std::uint64_t> in_flight = std::exchange(session->in_flight, {});
  std::vector<std::uint64_t> waiting = std::exchange(session->waiting, {});
  sessions_.erase(session->key);
  release(*session);
  {
    std::lock_guard lock(mutex_);
    status_.sessions = sessions_.size() + (main_is(Session::Phase::ready) ? 1 : 0);
  }
  for (std::uint64_t ticket : waiting)
    answer(ticket, unanswered(ReplyKind::not_sent, "cancelled", "the caller has gone"));
  for (std::uint64_t ticket : in_flight)
    answer(ticket, unanswered(ReplyKind::unconfirmed, "cancelled", "the caller has gone"));
}

// A connection may be at work in the very call that ends it, so it goes a little later; what it is made with stays.
void Server::release(Session& session) {
  session.phase = Session::Phase::ended;
  session.idle.cancel();
  if (session.connection == nullptr) return;
  session.connection->close();
  worker_.post(
      [environment = environment_, connection = std::move(session.connection)]() mutable { connection.reset(); });
}

void Server::set_state(std::string state, bool is_new) {
  std::lock_guard lock(mutex_);
  bool is_other = status_.state != state;
  status_.state = std::move(state);
  if (is_new && is_other) status_.since = environment_->clock.wall_now();
}

// A server that comes and goes, or changes its tools all the time, must not fill the audit log.
void Server::tell(const std::string& action, const std::string& detail) {
  if (!environment_->event) return;
  SteadyTime now = environment_->clock.steady_now();
  if (events_ == 0 || now - events_since_ >= std::chrono::hours(1)) {
    events_ = 0;
    events_since_ = now;
  }
  if (++events_ <= environment_->tuning.max_events_per_hour) {
    environment_->event(config_.name, action, detail);
  } else if (events_ == environment_->tuning.max_events_per_hour + 1) {
    log::warning("an upstream server causes too many audit entries; the rest of this hour is left out",
                 {{"upstream", config_.name}});
  }
}

}  // namespace hive::upstreams
