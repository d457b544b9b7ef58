#include "gateway/surfaces/mcp/legacy_session.h"

#include "base/log.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "crypto/random.h"
#include "gateway/surfaces/mcp/methods.h"
#include "gateway/surfaces/mcp/server.h"
#include "protocol/agent_protocol.h"
#include "protocol/json_object.h"

namespace hive::mcp_surface {

namespace {

constexpr std::size_t id_bytes = 16;
constexpr std::size_t question_id_bytes = 8;
constexpr std::size_t max_shown_bytes = 64;

// What a client calls itself, for the audit log.
std::string shown_name(std::string_view raw_info) {
  auto members = json::parse_object(raw_info, mcp::message_limits);
  std::string shown;
  for (std::string_view key : {"name", "version"}) {
    auto raw = members ? json::find(*members, key) : std::nullopt;
    std::string text = raw ? json::decode_string(*raw).value_or("") : "";
    if (!shown.empty()) shown += ' ';
    shown += utf8::truncate(text, max_shown_bytes);
  }
  return shown;
}

}  // namespace

LegacySession::LegacySession(std::shared_ptr<Server> server, const Client& client)
    : server_(std::move(server)),
      opener_(client),
      id_(crypto::random_hex(id_bytes)),
      owner_(client.principal.identity()) {}

std::shared_ptr<LegacySession> LegacySession::open(std::shared_ptr<Server> server, const Client& client) {
  if (server->is_closing() || !server->admit_session(client.principal.identity())) return nullptr;
  auto session = std::make_shared<LegacySession>(std::move(server), client);
  session->subscriber_ = std::make_shared<Subscriber>(
      client.principal, [weak = std::weak_ptr(session)](std::string_view method, std::string_view raw_params) {
        if (auto self = weak.lock()) self->hear(method, raw_params);
      });
  return session;
}

LegacySession::~LegacySession() {
  close();
}

mcp::Revision LegacySession::revision() const {
  std::lock_guard lock(mutex_);
  return revision_;
}

bool LegacySession::is_initialized() const {
  std::lock_guard lock(mutex_);
  return is_initialized_;
}

std::string LegacySession::log_level() const {
  std::lock_guard lock(mutex_);
  return log_level_;
}

void LegacySession::set_log_level(std::string level) {
  std::lock_guard lock(mutex_);
  log_level_ = std::move(level);
}

std::shared_ptr<Running> LegacySession::request(net::Worker& worker, Client client, std::string text,
                                                std::shared_ptr<Reply> reply) {
  auto parsed = Exchange::parse(worker, std::move(client), std::move(text), reply);
  if (!parsed) {
    reply->finish(mcp::encode_fault(parsed.error()), parsed.error().http_status);
    return nullptr;
  }
  ExchangePointer exchange = *std::move(parsed);
  if (exchange->message().method == "initialize") {
    worker.dispatch([self = shared_from_this(), exchange] { self->initialize(exchange); });
    return nullptr;
  }
  if (auto refusal = enter(exchange)) {
    reply->finish(mcp::encode_error(exchange->message().id, protocol::invalid_request_code, *refusal), 400);
    return nullptr;
  }
  exchange->on_over([weak = weak_from_this(), key = mcp::id_key(exchange->message().id)] {
    if (auto self = weak.lock()) self->leave(key);
  });
  worker.dispatch([server = server_, exchange] { handle(server, exchange); });
  return exchange->is_over() ? nullptr : exchange;
}

std::optional<std::string> LegacySession::enter(const ExchangePointer& exchange) {
  const mcp::Message& message = exchange->message();
  std::lock_guard lock(mutex_);
  if (is_closed_) return "the session has ended";
  if (!is_initialized_ && message.method != "ping") return "send initialize first";
  if (in_flight_.size() >= max_in_flight) {
    return fmt::format("{} requests of this session are in flight; wait for some of them", max_in_flight);
  }
  if (!in_flight_.emplace(mcp::id_key(message.id), exchange).second) {
    return fmt::format("the id {} is already in flight in this session", message.id);
  }
  exchange->set_context({.revision = revision_,
                         .capabilities = capabilities_,
                         .caller_key = "session:" + id_,
                         .log_level = {},
                         .session = shared_from_this(),
                         .server_info = Server::server_info()});
  return std::nullopt;
}

void LegacySession::leave(const std::string& id_key) {
  std::lock_guard lock(mutex_);
  in_flight_.erase(id_key);
}

void LegacySession::initialize(const ExchangePointer& exchange) {
  exchange->set_context({.revision = mcp::newest_legacy,
                         .capabilities = "{}",
                         .caller_key = {},
                         .log_level = {},
                         .session = nullptr,
                         .server_info = Server::server_info()});
  auto version = exchange->parameter("protocolVersion");
  auto capabilities = exchange->parameter("capabilities");
  auto info = exchange->parameter("clientInfo");
  auto name = version ? json::decode_string(*version) : std::nullopt;
  if (!name || !capabilities || !json::is_object(*capabilities) || !info || !json::is_object(*info)) {
    return exchange->fail(protocol::invalid_params_code,
                          "initialize needs protocolVersion, capabilities and clientInfo", {}, 400);
  }
  if (server_->is_closing()) {
    return exchange->fail(protocol::internal_error_code, "the gateway is stopping", {}, 503);
  }
  auto wanted = mcp::revision_from_string(*name);
  mcp::Revision revision = wanted && !mcp::is_modern(*wanted) ? *wanted : mcp::newest_legacy;
  {
    std::lock_guard lock(mutex_);
    if (is_initialized_ || is_closed_) revision = mcp::newest;
    if (!mcp::is_modern(revision)) {
      is_initialized_ = true;
      revision_ = revision;
      capabilities_ = *capabilities;
    }
  }
  if (mcp::is_modern(revision)) {
    return exchange->fail(protocol::invalid_request_code, "the session is initialized already", {}, 400);
  }
  listen();
  server_->session_events.record(exchange->client(), "mcp_session_opened",
                                 fmt::format("{} speaks {}", quote(shown_name(*info)), mcp::to_string(revision)));
  bool knows_titles = revision >= mcp::Revision::v2025_06_18;
  exchange->finish_adapted(json::ObjectText()
                               .text("protocolVersion", mcp::to_string(revision))
                               .raw("capabilities", Server::capabilities(revision))
                               .raw("serverInfo", knows_titles ? Server::server_info()
                                                               : R"({"name":"myrmex-hive","version":")" HIVE_VERSION
                                                                 R"("})")
                               .text("instructions", Server::instructions())
                               .take());
}

void LegacySession::listen() {
  Interest lists{.tools = true, .prompts = true, .resources = true, .uris = {}};
  if (!server_->subscriptions->add(subscriber_, lists)) {
    log::warning("an MCP session hears of no changes: too many subscriptions", {{"identity", owner_}});
  }
  bool has_ended = false;
  {
    std::lock_guard lock(mutex_);
    has_ended = is_closed_;
  }
  if (has_ended) server_->subscriptions->remove(subscriber_);
}

void LegacySession::accept(const Client&, std::string text) {
  auto message = mcp::parse_message(text);
  if (!message) return;
  if (message->kind == mcp::MessageKind::notification) {
    if (message->method == "notifications/cancelled") on_cancelled(*message);
    return;
  }
  if (message->kind != mcp::MessageKind::request) on_response(*message);
}

void LegacySession::on_cancelled(const mcp::Message& notification) {
  if (notification.params.empty()) return;
  auto members = json::parse_object(notification.params, mcp::message_limits);
  auto id = members ? json::find(*members, "requestId") : std::nullopt;
  if (!id) return;
  auto raw_reason = json::find(*members, "reason");
  std::string reason = raw_reason ? json::decode_string(*raw_reason).value_or("") : "";
  ExchangePointer exchange;
  {
    std::lock_guard lock(mutex_);
    if (auto found = in_flight_.find(mcp::id_key(*id)); found != in_flight_.end()) exchange = found->second.lock();
  }
  if (exchange == nullptr) return;
  exchange->cancel(reason.empty() ? "withdrawn by the client"
                                  : "withdrawn by the client: " + std::string(utf8::truncate(reason, 200)));
}

void LegacySession::on_response(const mcp::Message& response) {
  auto id = json::decode_string(response.id);
  if (!id) return;
  std::move_only_function<void(Result<std::string>)> done;
  {
    std::lock_guard lock(mutex_);
    auto found = questions_.find(*id);
    if (found == questions_.end()) return;
    done = std::move(found->second.done);
    questions_.erase(found);
  }
  if (response.kind == mcp::MessageKind::response) {
    if (json::is_object(response.body)) return done(std::string(response.body));
    return done(fail(ErrorCode::invalid_argument, "the client's answer is no object"));
  }
  auto members = json::parse_object(response.body, mcp::message_limits);
  auto message = members ? json::find(*members, "message") : std::nullopt;
  std::string said = message ? json::decode_string(*message).value_or("") : "";
  done(fail(ErrorCode::permission_denied, "the client refused: {}", utf8::truncate(said, 500)));
}

void LegacySession::ask(const ExchangePointer& exchange, const std::string& method, std::string_view raw_params,
                        std::move_only_function<void(Result<std::string>)> done) {
  std::string id = "hive-" + crypto::random_hex(question_id_bytes);
  {
    std::unique_lock lock(mutex_);
    if (is_closed_ || exchange->is_over() || questions_.size() >= max_questions) {
      lock.unlock();
      return done(fail(ErrorCode::unavailable, "the client cannot be asked now"));
    }
    questions_.emplace(id, Question{exchange.get(), std::move(done)});
  }
  exchange->send(mcp::encode_request(json::encode_string(id), method, raw_params.empty() ? "{}" : raw_params));
}

void LegacySession::withdraw_questions(const Exchange& exchange, Reply* reply) {
  std::vector<std::pair<std::string, Question>> open;
  {
    std::lock_guard lock(mutex_);
    for (auto each = questions_.begin(); each != questions_.end();) {
      if (each->second.exchange == &exchange) {
        open.emplace_back(each->first, std::move(each->second));
        each = questions_.erase(each);
      } else {
        ++each;
      }
    }
  }
  if (reply == nullptr) return;
  for (const auto& [id, question] : open) {
    reply->send(
        mcp::encode_notification("notifications/cancelled",
                                 json::ObjectText().text("requestId", id).text("reason", "the call has ended").take()));
  }
}

void LegacySession::hear(std::string_view method, std::string_view raw_params) {
  bool has_params = !raw_params.empty() && raw_params != "{}";
  std::string message = mcp::encode_notification(method, has_params ? raw_params : std::string_view());
  std::function<void(std::string)> sink;
  {
    std::lock_guard lock(mutex_);
    if (is_closed_) return;
    if (!sink_) {
      std::string key = std::string(method) + (has_params ? std::string(raw_params) : "");
      if (waiting_.size() < max_waiting) waiting_[std::move(key)] = std::move(message);
      return;
    }
    sink = sink_;
  }
  sink(std::move(message));
}

void LegacySession::set_unsolicited(std::function<void(std::string message)> sink) {
  std::map<std::string, std::string> waiting;
  {
    std::lock_guard lock(mutex_);
    sink_ = sink;
    if (sink_) waiting.swap(waiting_);
  }
  for (auto& [key, message] : waiting)
    sink(std::move(message));
}

void LegacySession::close() {
  std::vector<ExchangePointer> running;
  std::map<std::string, Question, std::less<>> questions;
  std::function<void(std::string)> sink;
  bool was_initialized = false;
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(is_closed_, true)) return;
    was_initialized = is_initialized_;
    for (const auto& [key, weak] : in_flight_)
      if (auto exchange = weak.lock()) running.push_back(std::move(exchange));
    questions.swap(questions_);
    sink.swap(sink_);
  }
  for (const ExchangePointer& exchange : running)
    exchange->cancel("the client has gone");
  server_->release_session(owner_);
  if (!was_initialized) return;
  if (subscriber_ != nullptr) server_->subscriptions->remove(subscriber_);
  if (server_->dependencies.upstreams != nullptr) server_->dependencies.upstreams->forget_caller("session:" + id_);
  server_->session_events.record(opener_, "mcp_session_closed", {});
}

}  // namespace hive::mcp_surface
