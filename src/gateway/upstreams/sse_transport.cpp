#include <map>

#include <boost/url/parse.hpp>
#include <boost/url/url.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "gateway/upstreams/http_requests.h"
#include "gateway/upstreams/transport.h"
#include "net/http/async_client.h"
#include "net/http/event_stream_reader.h"
#include "protocol/mcp/message.h"

namespace hive::upstreams {

namespace {

using net::http::ClientResponse;
using net::http::RequestOptions;

constexpr std::size_t max_message_bytes = mcp::message_limits.max_bytes;
constexpr std::size_t max_posts = 1024;
constexpr std::chrono::seconds post_timeout(30);

/// Where messages go, from what the server says and where its stream is. Another origin would get our credentials.
Result<std::string> resolve_endpoint(const std::string& base_text, std::string_view reference_text) {
  auto base = boost::urls::parse_uri(base_text);
  auto reference = boost::urls::parse_uri_reference(reference_text);
  boost::urls::url endpoint;
  if (!base || !reference || !boost::urls::resolve(*base, *reference, endpoint)) {
    return fail(ErrorCode::corrupt, "the server names an endpoint that is no URL: {}",
                quote(reference_text.substr(0, 200)));
  }
  endpoint.normalize();
  boost::urls::url origin(*base);
  origin.normalize();
  auto port = [](const boost::urls::url& url) {
    return url.has_port() && !url.port().empty() ? std::string(url.port())
                                                 : std::string(url.scheme() == "https" ? "443" : "80");
  };
  if (endpoint.scheme() != origin.scheme() || endpoint.encoded_host() != origin.encoded_host() ||
      port(endpoint) != port(origin) || endpoint.has_userinfo()) {
    return fail(ErrorCode::permission_denied,
                "the server wants its messages at {}, which is another origin than its own: refused",
                quote(std::string(endpoint.encoded_host_and_port()).substr(0, 200)));
  }
  endpoint.remove_fragment();
  return std::string(endpoint.buffer());
}

class SseTransport final : public Transport, public std::enable_shared_from_this<SseTransport> {
 public:
  SseTransport(net::Worker& worker, net::http::AsyncClientReference client, const ConnectionOptions& options,
               TransportEvents events)
      : worker_(worker),
        client_(std::move(client)),
        options_(options),
        events_(std::move(events)),
        reader_([this](const net::http::StreamEvent& event) { on_event(event); }, max_message_bytes + 1024) {}

  void start() override;
  void send_request(Outgoing request) override { post(request.text, request.ticket, {}); }
  void send(std::string text, std::function<void()> sent) override { post(text, 0, std::move(sent)); }
  void finish(std::uint64_t) override {}
  void abandon(std::uint64_t) override {}
  void set_revision(mcp::Revision revision) override { revision_ = revision; }
  void listen() override {}
  void close() override {
    is_closed_ = true;
    cancel_all();
  }
  [[nodiscard]] bool has_request_streams() const override { return false; }

 private:
  void on_head(const ClientResponse& head);
  void on_event(const net::http::StreamEvent& event);
  void on_stream_ended(const Result<ClientResponse>& result);
  void post(std::string_view text, std::uint64_t ticket, std::function<void()> sent);
  void on_posted(std::uint64_t ticket, const Result<ClientResponse>& result);
  void closed(Error error);
  void cancel_all();
  [[nodiscard]] bool is_closed() const { return is_closed_; }

  net::Worker& worker_;
  net::http::AsyncClientReference client_;
  ConnectionOptions options_;
  const TransportEvents events_;  // never emptied, because one of them may be running
  bool is_closed_ = false;
  net::http::EventStreamReader reader_;
  std::optional<mcp::Revision> revision_;
  unsigned status_ = 0;
  bool is_stream_ = false;
  std::uint64_t stream_ = 0;  // of the HTTP client
  std::string endpoint_;
  std::map<std::uint64_t, std::uint64_t> posts_;  // our number to the client's
  std::uint64_t last_post_ = 0;
};

void SseTransport::start() {
  RequestOptions request = make_request(options_, "GET", options_.url);
  request.headers.emplace_back("Accept", "text/event-stream");
  auto guarded = [weak = weak_from_this()](auto action) {
    auto self = weak.lock();
    if (self != nullptr && !self->is_closed()) action(*self);
  };
  stream_ = client_.send(
      worker_, std::move(request),
      {.on_head = [guarded](const ClientResponse& head) { guarded([&](SseTransport& self) { self.on_head(head); }); },
       .on_data =
           [guarded](std::string_view piece) {
             guarded([&](SseTransport& self) {
               if (!self.is_stream_ || self.reader_.feed(piece)) return;
               self.closed({ErrorCode::corrupt,
                            fmt::format("the server sent a message of more than {} bytes", max_message_bytes)});
             });
           },
       .done =
           [guarded](Result<ClientResponse> result) {
             guarded([&](SseTransport& self) { self.on_stream_ended(result); });
           }});
}

void SseTransport::on_head(const ClientResponse& head) {
  status_ = head.status;
  is_stream_ = head.status == 200 && media_type(head) == "text/event-stream";
  if (is_stream_) return;
  RequestFailure failure = failure_of_status(head.status, {});
  if (head.status == 200) {
    failure.detail = "the URL answers, but not with a stream of events: it is no HTTP+SSE server";
    failure.code = ErrorCode::invalid_argument;
  }
  closed({failure.code, failure.detail});
}

void SseTransport::on_event(const net::http::StreamEvent& event) {
  if (is_closed()) return;
  if (event.name == "endpoint") {
    if (!endpoint_.empty()) return;  // it stays where it was
    auto endpoint = resolve_endpoint(options_.url, trim(event.data));
    if (!endpoint) return closed(endpoint.error());
    endpoint_ = *std::move(endpoint);
    events_.on_open();
  } else if (event.name == "message" && !endpoint_.empty()) {
    events_.on_message(event.data, 0);
  }
}

void SseTransport::on_stream_ended(const Result<ClientResponse>& result) {
  stream_ = 0;
  if (!result) return closed(result.error());
  closed({ErrorCode::io, "the server ended its stream of events"});
}

void SseTransport::post(std::string_view text, std::uint64_t ticket, std::function<void()> sent) {
  if (posts_.size() >= max_posts) {
    worker_.post([self = shared_from_this(), ticket, then = std::move(sent)] {
      if (then) then();
      if (ticket == 0 || self->is_closed()) return;
      self->events_.on_failed(ticket, {.kind = ReplyKind::not_sent,
                                       .reason = "upstream_busy",
                                       .detail = "the server does not take what is sent to it",
                                       .body = {},
                                       .code = ErrorCode::unavailable});
    });
    return;
  }
  RequestOptions request = make_post(options_, endpoint_, text);
  if (revision_ && *revision_ >= mcp::Revision::v2025_06_18) {
    request.headers.emplace_back("MCP-Protocol-Version", mcp::to_string(*revision_));
  }
  request.timeout = post_timeout;
  request.max_response_bytes = max_message_bytes;
  std::uint64_t number = ++last_post_;
  posts_[number] = client_.send(
      worker_, std::move(request),
      {.on_head = {},
       .on_data = {},
       .done = [weak = weak_from_this(), number, ticket, then = std::move(sent)](Result<ClientResponse> result) {
         auto self = weak.lock();
         if (self == nullptr || self->is_closed()) return;
         self->posts_.erase(number);
         if (then) then();
         if (ticket != 0) self->on_posted(ticket, result);
       }});
}

void SseTransport::on_posted(std::uint64_t ticket, const Result<ClientResponse>& result) {
  if (!result) {
    // A late "accepted" is no failure: the answer may have come on the stream, and the session watches the time.
    if (result.error().code != ErrorCode::timed_out) events_.on_failed(ticket, failure_of_exchange(result.error()));
    return;
  }
  if (result->status < 200 || result->status >= 300) {
    events_.on_failed(ticket, failure_of_status(result->status, result->body));
  } else if (media_type(*result) == "application/json" && result->body.starts_with('{')) {
    // Some servers answer at once, in the body, although the stream is the place for it.
    events_.on_message(result->body, ticket);
  }
}

void SseTransport::closed(Error error) {
  if (std::exchange(is_closed_, true)) return;
  cancel_all();
  events_.on_closed(error);
}

void SseTransport::cancel_all() {
  if (stream_ != 0) client_.cancel(std::exchange(stream_, 0));
  for (auto& [number, exchange] : posts_)
    client_.cancel(exchange);
  posts_.clear();
}

}  // namespace

std::shared_ptr<Transport> make_sse_transport(net::Worker& worker, net::http::AsyncClientReference client,
                                              const ConnectionOptions& options, TransportEvents events) {
  return std::make_shared<SseTransport>(worker, std::move(client), options, std::move(events));
}

}  // namespace hive::upstreams
