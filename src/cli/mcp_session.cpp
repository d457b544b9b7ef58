#include "cli/mcp_session.h"

#include <algorithm>
#include <memory>
#include <random>

#include "base/strings.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr std::size_t max_subscriptions = 1000;
constexpr std::chrono::milliseconds longest_pause = std::chrono::seconds(30);
constexpr std::chrono::milliseconds handshake_timeout = std::chrono::seconds(30);

/// What a handshake brought: a result, or why there is none.
std::string why_refused(const McpAnswer& answer) {
  if (answer.error) return answer.error->message;
  return fmt::format("HTTP {}", answer.response.status);
}

}  // namespace

std::chrono::milliseconds pause_before(unsigned attempt, std::chrono::milliseconds first) {
  thread_local std::minstd_rand random{std::random_device{}()};
  auto limit = std::min<std::chrono::milliseconds>(first * (1U << std::min(attempt, 10U)), longest_pause);
  return std::chrono::milliseconds(std::uniform_int_distribution<long long>(limit.count() / 2, limit.count())(random));
}

void McpSession::begin(std::string_view raw_params) {
  if (!id_.empty()) end([] {});
  forget();
  restore_error_.clear();
  initialize_params_ = raw_params.empty() ? "{}" : std::string(raw_params);
  log_level_params_.clear();
  subscriptions_.clear();
  state_ = State::opening;
}

void McpSession::opened(const net::http::ClientResponse& head, std::string_view raw_result) {
  auto members = json::parse_object(raw_result, mcp::message_limits);
  auto raw = members ? json::find(*members, "protocolVersion") : std::nullopt;
  revision_ = raw ? json::decode_string(*raw).value_or("") : "";
  id_ = std::string(head.header("mcp-session-id"));
  ++generation_;
  // The client's notifications/initialized is still to come, but it may send pings before.
  if (state_ == State::opening) settle(State::ready);
}

void McpSession::not_opened() {
  settle(State::none);
}

void McpSession::settle(State state) {
  state_ = state;
  std::vector<std::function<void()>> waiting = std::exchange(waiting_, {});
  for (auto& task : waiting)
    task();
}

void McpSession::announce(std::string text) {
  state_ = State::announcing;
  post(std::move(text), [this](const McpAnswer& answer) {
    if (answer.error) hooks_.note("the gateway did not take notifications/initialized: " + answer.error->message);
    settle(State::ready);
    listen();
  });
}

net::http::Headers McpSession::headers() const {
  net::http::Headers headers;
  if (!id_.empty()) headers.emplace_back("Mcp-Session-Id", id_);
  if (!revision_.empty()) headers.emplace_back("MCP-Protocol-Version", revision_);
  return headers;
}

bool McpSession::restore(unsigned generation) {
  if (initialize_params_.empty()) return false;
  if (state_ == State::restoring || generation != generation_) return true;
  hooks_.note("the gateway does not know the session any more: making a new one");
  std::string revision = revision_;
  forget();
  revision_ = revision;
  state_ = State::restoring;
  send_restored();
  return true;
}

void McpSession::send_restored() {
  std::string raw_id = json::encode_string(fmt::format("myrmex-{}", ++own_ids_));
  auto result = std::make_shared<std::string>();
  auto take = [result, raw_id](std::string_view text) {
    auto message = mcp::parse_message(text);
    if (message && message->kind == mcp::MessageKind::response && message->id == raw_id) *result = message->body;
  };
  std::string expected = std::exchange(revision_, "");
  endpoint_.send({.body = mcp::encode_request(raw_id, "initialize", initialize_params_), .timeout = handshake_timeout},
                 {.message = take, .end = [this, take, result, expected](const McpAnswer& answer) {
                    if (state_ != State::restoring) return;
                    if (!answer.is_stream) take(answer.response.body);
                    if (result->empty()) return restored(false, why_refused(answer));
                    opened(answer.response, *result);
                    if (revision_ != expected) {
                      return restored(false, fmt::format("it now speaks revision {} instead of {}: start the client "
                                                         "again",
                                                         quote(revision_), quote(expected)));
                    }
                    post(mcp::encode_notification("notifications/initialized", ""), [this](const McpAnswer&) {
                      if (state_ != State::restoring) return;
                      repeat_settings();
                      restored(true, "");
                    });
                  }});
}

void McpSession::repeat_settings() {
  auto ask = [this](std::string_view method, std::string_view params) {
    post(mcp::encode_request(json::encode_string(fmt::format("myrmex-{}", ++own_ids_)), method, params),
         [](const McpAnswer&) {});
  };
  if (!log_level_params_.empty()) ask("logging/setLevel", log_level_params_);
  for (const std::string& params : subscriptions_)
    ask("resources/subscribe", params);
}

void McpSession::restored(bool is_good, std::string error) {
  restore_error_ = std::move(error);
  if (!is_good) hooks_.note("no new session: " + restore_error_);
  settle(is_good ? State::ready : State::none);
  if (is_good) listen();
}

void McpSession::remember(const mcp::Message& request) {
  if (request.method == "logging/setLevel") {
    log_level_params_ = request.params;
  } else if (request.method == "resources/subscribe") {
    if (subscriptions_.size() < max_subscriptions) subscriptions_.emplace(request.params);
  } else if (request.method == "resources/unsubscribe") {
    subscriptions_.erase(std::string(request.params));
  }
}

void McpSession::post(std::string text, std::function<void(const McpAnswer&)> done) {
  endpoint_.send({.headers = headers(), .body = std::move(text), .timeout = handshake_timeout},
                 {.end = std::move(done)});
}

void McpSession::listen() {
  if (stream_ != 0 || generation_ == 0) return;
  unsigned generation = generation_;
  stream_ = endpoint_.send({.method = "GET", .headers = headers(), .last_event_id = stream_position_},
                           {.message =
                                [this](std::string_view message) {
                                  stream_failures_ = 0;
                                  hooks_.receive(message);
                                },
                            .end = [this, generation](const McpAnswer& answer) { on_stream_end(answer, generation); }});
}

void McpSession::on_stream_end(const McpAnswer& answer, unsigned generation) {
  if (generation != generation_) return;
  stream_ = 0;
  if (!answer.last_event_id.empty()) stream_position_ = answer.last_event_id;
  unsigned status = answer.response.status;
  if (!answer.error && status == 404) {
    restore(generation);
    return;
  }
  // A gateway without such a stream, or one that will not have this client: nothing changes by asking again.
  bool is_refused = !answer.error && status >= 400 && status < 500;
  bool is_final = is_refused && status != 409 && status != 429;
  // The position may be too old for it.
  bool may_be_position = is_refused && !stream_position_.empty();
  if (may_be_position) stream_position_.clear();
  if (is_final && !may_be_position) return;
  std::chrono::milliseconds pause = pause_before(++stream_failures_, first_pause_);
  listen_later(std::max(pause, answer.retry.value_or(std::chrono::milliseconds(0))));
}

void McpSession::listen_later(std::chrono::milliseconds pause) {
  stream_timer_ = endpoint_.worker().schedule(pause, [this] { listen(); });
}

void McpSession::forget() {
  stream_timer_.cancel();
  if (stream_ != 0) endpoint_.cancel(std::exchange(stream_, 0));
  stream_position_.clear();
  stream_failures_ = 0;
  id_.clear();
  revision_.clear();
}

void McpSession::end(std::function<void()> done) {
  if (id_.empty()) return done();
  net::http::Headers session = headers();
  forget();
  endpoint_.send({.method = "DELETE", .headers = std::move(session), .timeout = handshake_timeout},
                 {.end = [done = std::move(done)](const McpAnswer&) { done(); }});
}

}  // namespace hive::cli
