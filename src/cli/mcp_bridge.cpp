#include "cli/mcp_bridge.h"

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>

#include "base/strings.h"
#include "cli/mcp_endpoint.h"
#include "cli/mcp_session.h"
#include "cli/mcp_tool_headers.h"
#include "net/runtime/lines.h"
#include "protocol/agent_protocol.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr std::size_t max_requests = 256;
constexpr unsigned max_attempts = 6;
constexpr unsigned max_restores = 2;
constexpr unsigned max_list_pages = 50;
constexpr std::chrono::milliseconds farewell_time{400};

/// Whether a request may be sent a second time when nobody knows whether the first one was carried out.
bool is_repeatable(std::string_view method) {
  constexpr std::array<std::string_view, 11> methods = {"initialize",
                                                        "ping",
                                                        "server/discover",
                                                        "tools/list",
                                                        "resources/list",
                                                        "prompts/list",
                                                        "resources/read",
                                                        "prompts/get",
                                                        "completion/complete",
                                                        "subscriptions/listen",
                                                        "resources/templates/list"};
  return std::ranges::find(methods, method) != methods.end();
}

/// A request of the client until it is answered.
struct Request {
  std::string id;  ///< raw
  std::string method;
  std::string text;
  bool is_modern = false;
  bool is_done = false;        ///< answered or withdrawn: whatever still comes for it is dropped
  std::uint64_t transfer = 0;  ///< 0: nothing is on its way
  unsigned generation = 0;     ///< of the session that it was sent in
  unsigned attempts = 0;
  unsigned restores = 0;
  bool has_asked_for_tools = false;
  std::string position;  ///< of its event stream, from which it can be resumed
  net::Timer timer;
};
using RequestPtr = std::shared_ptr<Request>;

class Bridge {
 public:
  Bridge(net::Worker& worker, net::http::AsyncClient& client, const GatewayClient& gateway,
         const McpBridgeOptions& options)
      : gateway_(gateway),
        options_(options),
        endpoint_(worker, client, gateway.connection()),
        session_(endpoint_, options.first_pause,
                 {.receive = [this](std::string_view message) { receive(nullptr, message); },
                  .note = [this](const std::string& note) { options_.note(note); }}),
        out_(options.out_fd) {}

  void take_line(std::string_view line);
  void take_too_long_line();
  void end(std::chrono::milliseconds patience);
  net::LineWriter& out() { return out_; }

 private:
  net::Worker& worker() { return endpoint_.worker(); }
  void take_request(const mcp::Message& message, std::string_view text);
  void take_notification(const mcp::Message& message, std::string_view text);
  void cancel(const mcp::Message& message, std::string_view text);
  void tell(std::string text, unsigned attempt = 0);

  void send(const RequestPtr& request);
  void transmit(const RequestPtr& request, McpEndpoint::Request http);
  void on_end(const RequestPtr& request, const McpAnswer& answer);
  void on_broken(const RequestPtr& request, const McpAnswer& answer);
  void on_status(const RequestPtr& request, const McpAnswer& answer);
  bool is_about_headers(const RequestPtr& request, const McpAnswer& answer);
  void ask_for_tools(const RequestPtr& request, const std::string& cursor, unsigned page);
  void send_later(const RequestPtr& request, std::chrono::milliseconds at_least, std::function<void()> task);
  void on_lost_session(const RequestPtr& request);

  void receive(const RequestPtr& request, std::string_view text);
  void on_result(const RequestPtr& request, const mcp::Message& message, const net::http::ClientResponse& head);
  void refuse(const RequestPtr& request, const std::string& why);
  void complete(const RequestPtr& request);
  void emit(std::string_view message);
  void say_farewell();

  const GatewayClient& gateway_;
  const McpBridgeOptions& options_;
  McpEndpoint endpoint_;
  McpSession session_;
  McpToolHeaders tool_headers_;
  net::LineWriter out_;
  std::unordered_map<std::string, RequestPtr> requests_;  ///< by mcp::id_key
  net::http::ClientResponse head_;                        ///< of the answer to initialize
  bool is_ending_ = false;
  bool has_left_ = false;
  net::Timer end_timer_;
};

void Bridge::take_line(std::string_view line) {
  line = trim(line);
  if (line.empty() || is_ending_) return;
  auto message = mcp::parse_message(line);
  if (!message) {
    auto batch = session_.has_batches() && mcp::is_batch(line)
                     ? mcp::split_batch(line)
                     : std::expected<std::vector<std::string_view>, mcp::Fault>(std::unexpect, message.error());
    if (!batch) return emit(mcp::encode_fault(batch.error()));
    for (std::string_view element : *batch)
      take_line(element);
    return;
  }
  switch (message->kind) {
    case mcp::MessageKind::request:
      return take_request(*message, line);
    case mcp::MessageKind::notification:
      return take_notification(*message, line);
    case mcp::MessageKind::response:
    case mcp::MessageKind::error_response:
      return tell(std::string(line));
  }
}

void Bridge::take_too_long_line() {
  emit(mcp::encode_error("", protocol::parse_error_code,
                         fmt::format("the line is longer than {} MiB", max_mcp_message_bytes >> 20)));
}

void Bridge::take_request(const mcp::Message& message, std::string_view text) {
  auto [place, is_new] = requests_.try_emplace(mcp::id_key(message.id));
  if (!is_new) {
    return emit(mcp::encode_error(message.id, protocol::invalid_request_code,
                                  "another request with this id has not been answered yet"));
  }
  if (requests_.size() > max_requests) {
    requests_.erase(place);
    return emit(mcp::encode_error(message.id, protocol::internal_error_code,
                                  fmt::format("more than {} requests wait for answers", max_requests)));
  }
  auto request = std::make_shared<Request>();
  place->second = request;
  request->id = message.id;
  request->method = message.method;
  request->text = text;
  auto meta = mcp::parse_meta(message);
  // A request whose _meta is wrong is the gateway's to refuse.
  request->is_modern = message.method == "server/discover" || (meta && meta->has_modern_keys);
  if (!request->is_modern && message.method == "initialize") session_.begin(message.params);
  send(request);
}

void Bridge::take_notification(const mcp::Message& message, std::string_view text) {
  if (message.method == "notifications/cancelled") return cancel(message, text);
  if (message.method == "notifications/initialized" && !session_.is_busy()) {
    return session_.announce(std::string(text));
  }
  tell(std::string(text));
}

// A modern request is withdrawn by closing its connection; of a legacy one the gateway must be told, and has to see it
// before the connection goes.
void Bridge::cancel(const mcp::Message& message, std::string_view text) {
  auto params = json::parse_object(message.params.empty() ? "{}" : message.params, mcp::message_limits);
  auto raw_id = params ? json::find(*params, "requestId") : std::nullopt;
  auto found = raw_id ? requests_.find(mcp::id_key(*raw_id)) : requests_.end();
  if (found == requests_.end() || found->second->method == "initialize") return;
  RequestPtr request = found->second;
  bool was_sent = request->transfer != 0 || !request->position.empty();
  std::uint64_t transfer = std::exchange(request->transfer, 0);
  complete(request);
  if (request->is_modern || !was_sent) {
    if (transfer != 0) endpoint_.cancel(transfer);
    return;
  }
  endpoint_.send({.headers = session_.headers(), .body = std::string(text), .timeout = options_.timeout},
                 {.end = [this, transfer](const McpAnswer&) {
                   if (transfer != 0) endpoint_.cancel(transfer);
                 }});
}

// Notifications, and answers to what the gateway has asked: nothing comes back.
void Bridge::tell(std::string text, unsigned attempt) {
  if (session_.is_busy()) {
    session_.when_settled([this, text = std::move(text)]() mutable { tell(std::move(text)); });
    return;
  }
  McpEndpoint::Request http{.headers = session_.headers(), .body = text, .timeout = options_.timeout};
  auto end = [this, text = std::move(text), attempt](const McpAnswer& answer) mutable {
    if (!answer.error && answer.response.status < 400) return;
    if (answer.error && answer.error->code == ErrorCode::unavailable && attempt + 1 < max_attempts) {
      auto timer = std::make_shared<net::Timer>();
      *timer = worker().schedule(pause_before(attempt, options_.first_pause),
                                 [this, timer, text = std::move(text), attempt]() mutable {
                                   tell(std::move(text), attempt + 1);
                                   timer->cancel();
                                 });
      return;
    }
    options_.note(
        "a message of the client did not reach the gateway: " +
        (answer.error ? gateway_.failure_from(*answer.error, false) : gateway_.failure_from(answer.response, false))
            .message);
  };
  endpoint_.send(std::move(http), {.end = std::move(end)});
}

void Bridge::send(const RequestPtr& request) {
  if (request->is_done) return;
  auto message = mcp::parse_message(request->text);
  if (!message) return refuse(request, message.error().message);
  if (request->is_modern) {
    auto meta = mcp::parse_meta(*message);
    auto headers = tool_headers_.headers_of(*message, meta ? *meta : mcp::RequestMeta{});
    if (!headers) return refuse(request, headers.error().message);
    return transmit(request, {.headers = *std::move(headers), .body = request->text});
  }
  if (request->method == "initialize") return transmit(request, {.body = request->text});
  if (session_.is_busy()) return session_.when_settled([this, request] { send(request); });
  request->generation = session_.generation();
  if (!session_.restore_error().empty()) return on_lost_session(request);
  transmit(request, {.headers = session_.headers(), .body = request->text});
}

void Bridge::transmit(const RequestPtr& request, McpEndpoint::Request http) {
  request->generation = session_.generation();
  if (request->method != "subscriptions/listen") http.timeout = options_.timeout;
  request->transfer = endpoint_.send(std::move(http), {.message =
                                                           [this, request](std::string_view message) {
                                                             if (!request->is_done) receive(request, message);
                                                           },
                                                       .end =
                                                           [this, request](const McpAnswer& answer) {
                                                             if (request->is_done) return;
                                                             request->transfer = 0;
                                                             on_end(request, answer);
                                                           },
                                                       .head =
                                                           [this, request](const net::http::ClientResponse& head) {
                                                             if (request->method == "initialize") head_ = head;
                                                           }});
}

void Bridge::on_end(const RequestPtr& request, const McpAnswer& answer) {
  if (!answer.last_event_id.empty() && !request->is_modern) request->position = answer.last_event_id;
  if (answer.error) return on_broken(request, answer);
  if (answer.is_stream) return on_broken(request, answer);
  unsigned status = answer.response.status;
  bool was_in_session = !request->is_modern && request->method != "initialize";
  if (status == 404 && was_in_session && session_.generation() > 0) return on_lost_session(request);
  if (status == 200) {
    receive(request, answer.response.body);
    if (!request->is_done) refuse(request, "the gateway's answer is no answer to this request");
    return;
  }
  on_status(request, answer);
}

// The stream ended, or the connection broke, before there was an answer.
void Bridge::on_broken(const RequestPtr& request, const McpAnswer& answer) {
  bool was_sent = !answer.error || answer.error->code == ErrorCode::io || answer.error->code == ErrorCode::timed_out;
  bool may_come_back =
      !answer.error || answer.error->code == ErrorCode::io || answer.error->code == ErrorCode::unavailable;
  if (may_come_back && request->attempts < max_attempts) {
    auto at_least = answer.retry.value_or(std::chrono::milliseconds(0));
    if (!request->position.empty() && session_.generation() == request->generation) {
      return send_later(request, at_least, [this, request] {
        transmit(request, {.method = "GET", .headers = session_.headers(), .last_event_id = request->position});
      });
    }
    if (!was_sent || is_repeatable(request->method)) {
      return send_later(request, at_least, [this, request] { send(request); });
    }
  }
  if (!answer.error)
    return refuse(request,
                  "the gateway closed the stream without an answer: whether the call ran "
                  "is unknown; the audit log will tell");
  refuse(request, gateway_.failure_from(*answer.error, was_sent && !is_repeatable(request->method)).message);
}

void Bridge::send_later(const RequestPtr& request, std::chrono::milliseconds at_least, std::function<void()> task) {
  auto pause = std::max(at_least, pause_before(request->attempts++, options_.first_pause));
  request->timer = worker().schedule(pause, [request, task = std::move(task)] {
    if (!request->is_done) task();
  });
}

// The gateway answered with an HTTP status that is no success.
void Bridge::on_status(const RequestPtr& request, const McpAnswer& answer) {
  unsigned status = answer.response.status;
  if (is_about_headers(request, answer)) {
    request->has_asked_for_tools = true;
    return ask_for_tools(request, "", 0);
  }
  auto error = mcp::parse_message(answer.response.body);
  if (error && error->kind == mcp::MessageKind::error_response) {
    emit(mcp::encode_error_body(request->id, error->body));
    if (request->method == "initialize") session_.not_opened();
    return complete(request);
  }
  bool is_passing = status == 502 || status == 503 || status == 504;
  if (is_passing && is_repeatable(request->method) && request->attempts < max_attempts) {
    return send_later(request, std::chrono::milliseconds(0), [this, request] { send(request); });
  }
  if (status < 300)
    return refuse(request, fmt::format("the gateway took the request, but will not answer it (HTTP {})", status));
  refuse(request, gateway_.failure_from(answer.response, !is_repeatable(request->method)).message);
}

/// The gateway wants arguments mirrored into headers that are not known here yet, or not any more.
bool Bridge::is_about_headers(const RequestPtr& request, const McpAnswer& answer) {
  if (!request->is_modern || request->method != "tools/call" || request->has_asked_for_tools) return false;
  auto message = mcp::parse_message(answer.response.body);
  if (!message || message->kind != mcp::MessageKind::error_response) return false;
  auto error = json::parse_object(message->body, mcp::message_limits);
  auto code = error ? json::find(*error, "code") : std::nullopt;
  return code && json::decode_integer(*code) == mcp::header_mismatch_code;
}

void Bridge::ask_for_tools(const RequestPtr& request, const std::string& cursor, unsigned page) {
  auto call = mcp::parse_message(request->text);
  auto params = json::parse_object(call ? call->params : "{}", mcp::message_limits);
  auto raw_meta = params ? json::find(*params, "_meta") : std::nullopt;
  std::string list_params =
      fmt::format(R"({{"_meta":{}{}}})", raw_meta.value_or("{}"), cursor.empty() ? "" : ",\"cursor\":" + cursor);
  std::string text = mcp::encode_request("\"myrmex-tools\"", "tools/list", list_params);
  auto list = mcp::parse_message(text);
  auto meta = mcp::parse_meta(*list);
  net::http::Headers headers =
      tool_headers_.headers_of(*list, meta ? *meta : mcp::RequestMeta{}).value_or(net::http::Headers{});
  auto next = std::make_shared<std::string>();
  auto learn = [this, next](std::string_view answer) {
    auto message = mcp::parse_message(answer);
    if (!message || message->kind != mcp::MessageKind::response) return;
    tool_headers_.learn(message->body);
    auto result = json::parse_object(message->body, mcp::message_limits);
    *next = result ? json::find(*result, "nextCursor").value_or("") : "";
  };
  request->transfer =
      endpoint_.send({.headers = std::move(headers), .body = std::move(text), .timeout = options_.timeout},
                     {.message = learn, .end = [this, request, next, learn, page](const McpAnswer& answer) {
                        if (request->is_done) return;
                        request->transfer = 0;
                        if (!answer.error && !answer.is_stream) learn(answer.response.body);
                        if (!next->empty() && page + 1 < max_list_pages) return ask_for_tools(request, *next, page + 1);
                        send(request);
                      }});
}

void Bridge::on_lost_session(const RequestPtr& request) {
  bool was_running = !request->position.empty();
  if (was_running && !is_repeatable(request->method)) {
    return refuse(request,
                  "the gateway lost the session while the call ran: whether it ended is unknown; the audit log "
                  "will tell");
  }
  request->position.clear();
  if (request->restores++ >= max_restores || !session_.restore(request->generation)) {
    std::string why = session_.restore_error();
    return refuse(request, "the gateway does not know the session any more" +
                               (why.empty() ? std::string() : ", and made no new one: " + why));
  }
  if (session_.is_busy()) {
    session_.when_settled([this, request] {
      request->generation = session_.generation();
      session_.restore_error().empty() ? send(request) : on_lost_session(request);
    });
  } else {
    send(request);
  }
}

/// A message of the gateway, on the stream of `request` or on that which belongs to none.
void Bridge::receive(const RequestPtr& request, std::string_view text) {
  auto message = mcp::parse_message(text);
  if (!message) {
    options_.note("the gateway sent what is no MCP message: " + escape_for_terminal(message.error().message));
    return;
  }
  if (request != nullptr) request->attempts = 0;
  bool is_answer = message->kind == mcp::MessageKind::response || message->kind == mcp::MessageKind::error_response;
  if (!is_answer) return emit(text);
  auto found = message->id.empty() ? requests_.end() : requests_.find(mcp::id_key(message->id));
  RequestPtr answered = found == requests_.end() ? nullptr : found->second;
  if (answered == nullptr && request != nullptr && message->kind == mcp::MessageKind::error_response &&
      message->id.empty()) {
    // About a request whose id the gateway could not read; on this stream it can be one alone.
    emit(mcp::encode_error_body(request->id, message->body));
    return complete(request);
  }
  if (answered == nullptr) return;
  if (message->kind == mcp::MessageKind::response) {
    on_result(answered, *message, head_);
  } else if (answered->method == "initialize") {
    session_.not_opened();
  }
  emit(text);
  complete(answered);
}

void Bridge::on_result(const RequestPtr& request, const mcp::Message& message, const net::http::ClientResponse& head) {
  if (request->is_modern) {
    if (request->method == "tools/list") tool_headers_.learn(message.body);
    return;
  }
  if (request->method == "initialize") {
    session_.opened(head, message.body);
  } else if (auto sent = mcp::parse_message(request->text)) {
    session_.remember(*sent);
  }
}

void Bridge::refuse(const RequestPtr& request, const std::string& why) {
  emit(mcp::encode_error(request->id, protocol::internal_error_code, why));
  options_.note(fmt::format("{}: {}", escape_for_terminal(request->method), why));
  if (!request->is_modern && request->method == "initialize") session_.not_opened();
  complete(request);
}

void Bridge::complete(const RequestPtr& request) {
  request->is_done = true;
  request->timer.cancel();
  auto found = requests_.find(mcp::id_key(request->id));
  if (found != requests_.end() && found->second == request) requests_.erase(found);
  if (is_ending_) end(std::chrono::milliseconds(0));
}

void Bridge::emit(std::string_view message) {
  auto written = out_.write(message);
  if (!written && !has_left_) end(std::chrono::milliseconds(0));
}

void Bridge::end(std::chrono::milliseconds patience) {
  if (has_left_) return;
  bool is_first = !std::exchange(is_ending_, true);
  bool waits =
      std::ranges::any_of(requests_, [](const auto& entry) { return entry.second->method != "subscriptions/listen"; });
  if (is_first && waits && patience.count() > 0) {
    end_timer_ = worker().schedule(patience, [this] { say_farewell(); });
  } else if (!waits || is_first) {
    say_farewell();
  }
}

void Bridge::say_farewell() {
  if (std::exchange(has_left_, true)) return;
  for (const auto& [key, request] : requests_) {
    request->is_done = true;
    if (request->transfer != 0) endpoint_.cancel(request->transfer);
  }
  end_timer_ = worker().schedule(farewell_time, [this] { worker().stop(); });
  session_.end([this] { worker().stop(); });
}

}  // namespace

Result<void> run_mcp_bridge(const GatewayClient& gateway, const McpBridgeOptions& options) {
  net::Worker worker;
  std::unique_ptr<net::http::AsyncClient> client = TRY(net::http::AsyncClient::create());
  Bridge bridge(worker, *client, gateway, options);
  bool failed = false;
  net::LineReader reader(
      worker, options.in_fd, options.stop_fd, max_mcp_message_bytes,
      {.line = [&bridge](const std::string& line) { bridge.take_line(line); },
       .too_long = [&bridge] { bridge.take_too_long_line(); },
       .end =
           [&](net::LineReader::End end) {
             failed = end == net::LineReader::End::failed;
             bridge.end(end == net::LineReader::End::input ? options.last_answers : std::chrono::milliseconds(0));
           },
       // Who has closed our input may have stopped reading as well.
       .at_end = [&bridge, &options] { bridge.out().limit_waiting(options.last_answers); }});
  worker.run();
  if (failed) return fail(ErrorCode::io, "standard input cannot be read");
  return {};
}

}  // namespace hive::cli
