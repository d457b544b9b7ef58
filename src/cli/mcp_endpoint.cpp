#include "cli/mcp_endpoint.h"

#include <limits>
#include <memory>

#include "net/http/event_stream_reader.h"

namespace hive::cli {

namespace {

/// One exchange while it lasts.
struct Exchange {
  McpEndpoint::Handlers handlers;
  McpAnswer answer = {};
  std::unique_ptr<net::http::EventStreamReader> events = {};
  std::uint64_t id = 0;
  bool is_too_large = false;
};

void take_head(Exchange& exchange, const net::http::ClientResponse& head) {
  exchange.answer.response = head;
  if (exchange.handlers.head) exchange.handlers.head(head);
  exchange.answer.is_stream = head.status == 200 && head.header("content-type").starts_with("text/event-stream");
  if (!exchange.answer.is_stream) return;
  exchange.events = std::make_unique<net::http::EventStreamReader>(
      [&exchange](const net::http::StreamEvent& event) {
        // Without data it only says where the stream can be resumed.
        if (event.name == "message" && !event.data.empty()) exchange.handlers.message(event.data);
      },
      max_mcp_message_bytes);
}

/// False when there is more than any honest answer has.
bool take_data(Exchange& exchange, std::string_view piece) {
  if (exchange.events != nullptr) return exchange.events->feed(piece);
  exchange.answer.response.body += piece;
  return exchange.answer.response.body.size() <= max_mcp_message_bytes;
}

McpAnswer finished(Exchange& exchange, Result<net::http::ClientResponse> result) {
  McpAnswer answer = std::move(exchange.answer);
  if (exchange.is_too_large) {
    answer.error = Error{ErrorCode::resource_exhausted,
                         fmt::format("the gateway's answer is larger than {} MiB", max_mcp_message_bytes >> 20)};
  } else if (!result) {
    answer.error = std::move(result.error());
  } else if (answer.response.status == 0) {
    answer.response = *std::move(result);
  }
  if (exchange.events != nullptr) {
    answer.last_event_id = exchange.events->last_id();
    answer.retry = exchange.events->retry();
  }
  return answer;
}

}  // namespace

std::uint64_t McpEndpoint::send(Request request, Handlers handlers) {
  net::http::RequestOptions options;
  options.method = std::move(request.method);
  options.url = connection_.url + "/mcp";
  options.headers = std::move(request.headers);
  options.body = std::move(request.body);
  options.timeout = request.timeout;
  options.max_response_bytes = std::numeric_limits<std::size_t>::max();  // of a stream; each event has its own limit
  options.ca_certificate_path = connection_.ca_certificate_path;
  options.verify_tls = connection_.verify_tls;
  options.headers.emplace_back("Authorization", "Bearer " + connection_.token);
  options.headers.emplace_back("Accept",
                               options.method == "GET" ? "text/event-stream" : "application/json, text/event-stream");
  if (!options.body.empty()) options.headers.emplace_back("Content-Type", "application/json");
  if (!request.last_event_id.empty()) options.headers.emplace_back("Last-Event-ID", request.last_event_id);

  auto exchange = std::make_shared<Exchange>(std::move(handlers));
  net::http::AsyncHandlers async;
  async.on_head = [exchange](const net::http::ClientResponse& head) { take_head(*exchange, head); };
  async.on_data = [exchange, &client = client_](std::string_view piece) {
    if (exchange->is_too_large || take_data(*exchange, piece)) return;
    exchange->is_too_large = true;
    client.cancel(exchange->id);
  };
  async.done = [exchange](Result<net::http::ClientResponse> result) {
    bool was_withdrawn = !result && result.error().code == ErrorCode::cancelled && !exchange->is_too_large;
    McpAnswer answer = finished(*exchange, std::move(result));
    if (!was_withdrawn) exchange->handlers.end(answer);
  };
  exchange->id = client_.send(worker_, std::move(options), std::move(async));
  return exchange->id;
}

}  // namespace hive::cli
