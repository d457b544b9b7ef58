#include <algorithm>
#include <map>

#include "base/log.h"
#include "gateway/upstreams/http_requests.h"
#include "gateway/upstreams/transport.h"
#include "net/http/async_client.h"
#include "net/http/event_stream_reader.h"
#include "protocol/mcp/http_headers.h"
#include "protocol/mcp/message.h"

namespace hive::upstreams {

namespace {

using net::http::ClientResponse;
using net::http::RequestOptions;

constexpr std::size_t max_message_bytes = mcp::message_limits.max_bytes;
constexpr std::size_t max_event_bytes = max_message_bytes + 1024;
constexpr std::size_t max_buffered_bytes = std::size_t{64} << 20;  // of all incomplete messages together
constexpr std::size_t max_session_id_bytes = 1024;
constexpr std::size_t max_posts = 256;  // notifications and answers on their way
constexpr int max_attempts = 5;         // to reach a stream again that brings nothing in between
constexpr int max_failures = 4;         // of the shared stream in a row, before the server counts as away
constexpr std::chrono::milliseconds default_retry(500);
constexpr std::chrono::milliseconds min_retry(100);
constexpr std::chrono::milliseconds max_retry(30'000);
constexpr std::chrono::milliseconds grace_after_answer(2000);
constexpr std::chrono::seconds post_timeout(30);
constexpr std::chrono::seconds lasting(10);  // a shared stream that a proxy ended for being idle
constexpr std::uint64_t shared_stream = 0;

bool is_session_id(std::string_view id) {
  return !id.empty() && id.size() <= max_session_id_bytes &&
         std::ranges::all_of(id, [](char c) { return c >= 0x21 && c <= 0x7e; });
}

bool is_success(unsigned status) {
  return status >= 200 && status < 300;
}

/// What one stream holds of a sum that all streams of a server have together; given back at its end.
class Share {
 public:
  explicit Share(std::shared_ptr<std::size_t> sum) : sum_(std::move(sum)) {}
  ~Share() { set(0); }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  void set(std::size_t bytes) {
    *sum_ = *sum_ - mine_ + bytes;
    mine_ = bytes;
  }
  [[nodiscard]] std::size_t sum() const { return *sum_; }

 private:
  std::shared_ptr<std::size_t> sum_;
  std::size_t mine_ = 0;
};

/// The answer to one request, which may be spread over several exchanges when a stream is resumed; or the shared
/// stream.
struct Stream {
  explicit Stream(std::shared_ptr<std::size_t> buffered_sum) : buffered(std::move(buffered_sum)) {}

  std::uint64_t ticket = 0;
  std::uint64_t exchange = 0;    ///< of the HTTP client; 0: none runs
  std::uint64_t generation = 0;  ///< tells late reports of an exchange that was replaced
  bool is_modern = false;
  bool is_initialize = false;
  bool is_answered = false;
  bool is_opened = false;  ///< an event stream has come at least once
  unsigned status = 0;
  std::unique_ptr<net::http::EventStreamReader> reader;
  std::string body;
  Share buffered;
  bool is_broken = false;  ///< sent more than it may
  std::string last_id;
  std::chrono::milliseconds retry = default_retry;
  int attempts = 0;
  int failures = 0;  ///< exchanges in a row that did not come about
  std::chrono::steady_clock::time_point opened_at;
  net::Timer timer;
};

class HttpTransport final : public Transport, public std::enable_shared_from_this<HttpTransport> {
 public:
  HttpTransport(net::Worker& worker, net::http::AsyncClientReference client, const ConnectionOptions& options,
                TransportEvents events)
      : worker_(worker), client_(std::move(client)), options_(options), events_(std::move(events)) {}

  void start() override {
    worker_.post([weak = weak_from_this()] {
      auto self = weak.lock();
      if (self != nullptr && !self->is_closed()) self->events_.on_open();
    });
  }

  void send_request(Outgoing request) override;
  void send(std::string text, std::function<void()> sent) override;
  void finish(std::uint64_t ticket) override;
  void abandon(std::uint64_t ticket) override;
  void set_revision(mcp::Revision revision) override { revision_ = revision; }
  void listen() override;
  void close() override;
  [[nodiscard]] bool has_request_streams() const override { return true; }

 private:
  using StreamPtr = std::shared_ptr<Stream>;

  void add_session(RequestOptions& request) const;
  void run(const StreamPtr& stream, RequestOptions request);
  void on_head(Stream& stream, const ClientResponse& head);
  void on_data(const StreamPtr& stream, std::string_view piece);
  void on_done(const StreamPtr& stream, const Result<ClientResponse>& result);
  void on_shared_stream_ended(const StreamPtr& stream, const Result<ClientResponse>& result);
  void resume_later(const StreamPtr& stream);
  void get(const StreamPtr& stream);
  void fail_request(const StreamPtr& stream, const RequestFailure& failure);
  void lose_session();
  void closed(Error error);
  void cancel(Stream& stream);
  void cancel_all();
  [[nodiscard]] bool is_closed() const { return is_closed_; }

  net::Worker& worker_;
  net::http::AsyncClientReference client_;
  ConnectionOptions options_;
  const TransportEvents events_;  // never emptied, because one of them may be running
  bool is_closed_ = false;
  std::optional<mcp::Revision> revision_;
  std::string session_id_;
  std::shared_ptr<std::size_t> buffered_ = std::make_shared<std::size_t>(0);  // of messages that are not complete
  std::map<std::uint64_t, StreamPtr> streams_;
  std::map<std::uint64_t, std::uint64_t> posts_;  // our number to the client's
  std::uint64_t last_post_ = 0;
};

void HttpTransport::add_session(RequestOptions& request) const {
  if (!session_id_.empty()) request.headers.emplace_back("Mcp-Session-Id", session_id_);
  if (revision_ && *revision_ >= mcp::Revision::v2025_06_18) {
    request.headers.emplace_back("MCP-Protocol-Version", mcp::to_string(*revision_));
  }
}

void HttpTransport::send_request(Outgoing request) {
  auto stream = std::make_shared<Stream>(buffered_);
  stream->ticket = request.ticket;
  stream->is_modern = request.revision && mcp::is_modern(*request.revision);
  stream->is_initialize = !request.revision;
  streams_[request.ticket] = stream;
  RequestOptions post = make_post(options_, options_.url, request.text);
  if (stream->is_modern) {
    post.headers.emplace_back("MCP-Protocol-Version", mcp::to_string(*request.revision));
    post.headers.emplace_back("Mcp-Method", request.method);
    if (!request.name.empty()) post.headers.emplace_back("Mcp-Name", mcp::encode_header_value(request.name));
    for (auto& header : request.headers)
      post.headers.push_back(std::move(header));
  } else if (!stream->is_initialize) {
    add_session(post);
  }
  run(stream, std::move(post));
}

void HttpTransport::run(const StreamPtr& stream, RequestOptions request) {
  std::uint64_t generation = ++stream->generation;
  stream->reader = nullptr;
  stream->body.clear();
  stream->status = 0;
  // Whatever comes for an exchange that was given up, or for a transport that was closed, is dropped here.
  auto guarded = [weak = weak_from_this(), stream, generation](auto action) {
    auto self = weak.lock();
    if (self != nullptr && !self->is_closed() && stream->generation == generation) action(*self);
  };
  stream->exchange = client_.send(
      worker_, std::move(request),
      {.on_head =
           [guarded, stream](const ClientResponse& head) {
             guarded([&](HttpTransport& self) { self.on_head(*stream, head); });
           },
       .on_data = [guarded, stream](
                      std::string_view piece) { guarded([&](HttpTransport& self) { self.on_data(stream, piece); }); },
       .done =
           [guarded, stream](Result<ClientResponse> result) {
             guarded([&](HttpTransport& self) { self.on_done(stream, result); });
           }});
}

void HttpTransport::on_head(Stream& stream, const ClientResponse& head) {
  stream.status = head.status;
  if (stream.is_initialize && is_success(head.status)) {
    std::string_view id = head.header("mcp-session-id");
    if (is_session_id(id)) session_id_ = id;
  }
  if (!is_success(head.status) || media_type(head) != "text/event-stream") return;
  stream.is_opened = true;
  stream.opened_at = std::chrono::steady_clock::now();
  stream.reader = std::make_unique<net::http::EventStreamReader>(
      [this, &stream](const net::http::StreamEvent& event) {
        if (event.data.empty() || event.name != "message") return;  // the first event only gives a position
        stream.attempts = 0;
        if (!stream.is_answered && !is_closed()) events_.on_message(event.data, stream.ticket);
      },
      max_event_bytes);
}

void HttpTransport::on_data(const StreamPtr& stream, std::string_view piece) {
  if (stream->reader == nullptr) {
    stream->is_broken = stream->body.size() + piece.size() > max_message_bytes;
    if (!stream->is_broken) stream->body.append(piece);
  } else {
    stream->is_broken = !stream->reader->feed(piece);
    if (!stream->reader->last_id().empty()) stream->last_id = stream->reader->last_id();
    if (stream->reader->retry()) stream->retry = std::clamp(*stream->reader->retry(), min_retry, max_retry);
  }
  stream->buffered.set(stream->reader == nullptr ? stream->body.size() : stream->reader->pending_bytes());
  bool is_too_much = stream->is_broken || stream->buffered.sum() > max_buffered_bytes;
  if (!is_too_much || is_closed()) return;
  cancel(*stream);
  RequestFailure failure{
      .kind = ReplyKind::lost,
      .reason = "upstream_answer_too_large",
      .detail = stream->is_broken ? fmt::format("the server sent a message of more than {} bytes", max_message_bytes)
                                  : "the server has begun too many large messages at once",
      .body = {},
      .http_status = stream->status,
      .code = ErrorCode::resource_exhausted};
  if (stream->ticket != shared_stream) return fail_request(stream, failure);
  closed({ErrorCode::corrupt, failure.detail});
}

void HttpTransport::on_done(const StreamPtr& stream, const Result<ClientResponse>& result) {
  stream->exchange = 0;
  if (stream->ticket == shared_stream) return on_shared_stream_ended(stream, result);
  if (stream->is_answered) {
    streams_.erase(stream->ticket);
    return;
  }
  bool was_stream = stream->reader != nullptr;
  bool can_resume = !stream->is_modern && !stream->is_initialize && !stream->last_id.empty();
  // A resumption that cannot connect now may do so a little later.
  if (can_resume && stream->attempts < max_attempts && (!result || was_stream)) {
    if (result && events_.on_interrupted) events_.on_interrupted(stream->ticket);
    if (!is_closed() && !stream->is_answered) resume_later(stream);
    return;
  }
  if (!result) {
    RequestFailure failure = failure_of_exchange(result.error());
    if (stream->is_opened) failure.kind = ReplyKind::lost;  // that was a resumption; the server had it long before
    return fail_request(stream, failure);
  }
  if (was_stream) {
    return fail_request(stream, {.kind = ReplyKind::lost,
                                 .reason = "lost",
                                 .detail = "the server ended the stream of the answer without an answer",
                                 .body = {},
                                 .http_status = stream->status});
  }
  if (stream->is_opened) {
    // The resumption was refused, which says nothing about the request itself.
    return fail_request(stream, {.kind = ReplyKind::lost,
                                 .reason = "lost",
                                 .detail = fmt::format("the stream of the answer broke, and the server resumes it not "
                                                       "(HTTP status {})",
                                                       stream->status),
                                 .body = {},
                                 .http_status = stream->status});
  }
  if (is_success(stream->status)) {
    std::string body = std::move(stream->body);
    events_.on_message(body, stream->ticket);
    if (is_closed() || stream->is_answered) return;
    return fail_request(stream, {.kind = ReplyKind::lost,
                                 .reason = "upstream_answer_invalid",
                                 .detail = fmt::format("the server answered with HTTP status {} but without the answer "
                                                       "to the request",
                                                       stream->status),
                                 .body = {},
                                 .http_status = stream->status,
                                 .code = ErrorCode::corrupt});
  }
  // "MUST start a new session": the server did nothing with this request.
  bool session_is_gone = stream->status == 404 && !session_id_.empty() && !stream->is_modern && !stream->is_initialize;
  if (session_is_gone) {
    session_id_.clear();
    fail_request(stream, {.kind = ReplyKind::not_sent,
                          .reason = "upstream_session_gone",
                          .detail = "the server has forgotten the session",
                          .body = {},
                          .http_status = 404,
                          .code = ErrorCode::not_found});
    return lose_session();
  }
  fail_request(stream, failure_of_status(stream->status, stream->body));
}

void HttpTransport::fail_request(const StreamPtr& stream, const RequestFailure& failure) {
  stream->is_answered = true;
  streams_.erase(stream->ticket);
  if (!is_closed()) events_.on_failed(stream->ticket, failure);
}

void HttpTransport::resume_later(const StreamPtr& stream) {
  ++stream->attempts;
  stream->timer = worker_.schedule(stream->retry, [weak = weak_from_this(), held = std::weak_ptr(stream)] {
    auto self = weak.lock();
    auto again = held.lock();  // the timer belongs to the stream and must not keep it
    if (self != nullptr && again != nullptr && !self->is_closed()) self->get(again);
  });
}

void HttpTransport::get(const StreamPtr& stream) {
  RequestOptions request = make_request(options_, "GET", options_.url);
  request.headers.emplace_back("Accept", "text/event-stream");
  add_session(request);
  if (!stream->last_id.empty()) request.headers.emplace_back("Last-Event-ID", stream->last_id);
  run(stream, std::move(request));
}

void HttpTransport::listen() {
  auto stream = std::make_shared<Stream>(buffered_);
  stream->ticket = shared_stream;
  streams_[shared_stream] = stream;
  get(stream);
}

void HttpTransport::on_shared_stream_ended(const StreamPtr& stream, const Result<ClientResponse>& result) {
  if (result && stream->reader == nullptr && stream->status < 500) {
    if (stream->status == 404 && !session_id_.empty() && stream->last_id.empty()) return lose_session();
    if (!stream->last_id.empty() && stream->status != 405) {
      stream->last_id.clear();  // it cannot be resumed, but perhaps opened anew
    } else {
      streams_.erase(shared_stream);  // 405: this server has no such stream
      return;
    }
  }
  bool was_quiet_but_lasting =
      stream->reader != nullptr && std::chrono::steady_clock::now() - stream->opened_at > lasting;
  if (was_quiet_but_lasting) stream->attempts = 0;
  stream->failures = result ? 0 : stream->failures + 1;
  if (stream->failures >= max_failures) return closed(with_context(result.error(), "the stream of notifications"));
  if (stream->attempts >= max_attempts) {
    streams_.erase(shared_stream);  // it answers, but closes the stream again and again: it has nothing to say
    return;
  }
  // Longer each time, until something comes.
  auto delay = std::min<std::chrono::milliseconds>(stream->retry * (1 << stream->attempts), max_retry);
  ++stream->attempts;
  stream->timer = worker_.schedule(delay, [weak = weak_from_this(), held = std::weak_ptr(stream)] {
    auto self = weak.lock();
    auto again = held.lock();  // the timer belongs to the stream and must not keep it
    if (self != nullptr && again != nullptr && !self->is_closed()) self->get(again);
  });
}

void HttpTransport::send(std::string text, std::function<void()> sent) {
  if (posts_.size() >= max_posts) {
    log::warning("an upstream server takes no more messages; one was dropped", {{"upstream", options_.name}});
    if (sent) worker_.post(std::move(sent));
    return;
  }
  RequestOptions post = make_post(options_, options_.url, text);
  if (revision_ && mcp::is_modern(*revision_)) {
    post.headers.emplace_back("MCP-Protocol-Version", mcp::to_string(*revision_));
    if (auto message = mcp::parse_message(text)) post.headers.emplace_back("Mcp-Method", message->method);
  } else {
    add_session(post);
  }
  post.timeout = post_timeout;
  post.max_response_bytes = max_message_bytes;
  std::uint64_t number = ++last_post_;
  bool has_session = !session_id_.empty();
  posts_[number] = client_.send(
      worker_, std::move(post),
      {.on_head = {},
       .on_data = {},
       .done = [weak = weak_from_this(), number, has_session, then = std::move(sent)](Result<ClientResponse> result) {
         auto self = weak.lock();
         if (self == nullptr || self->is_closed()) return;
         self->posts_.erase(number);
         if (then) then();
         if (result && result->status == 404 && has_session) self->lose_session();
       }});
}

void HttpTransport::finish(std::uint64_t ticket) {
  auto entry = streams_.find(ticket);
  if (entry == streams_.end()) return;
  StreamPtr stream = entry->second;
  stream->is_answered = true;
  if (stream->exchange == 0) {
    stream->timer.cancel();
    streams_.erase(entry);
    return;
  }
  // The server ends the stream now, and the connection can be used again; one that does not is cut off.
  stream->timer = worker_.schedule(grace_after_answer, [weak = weak_from_this(), ticket] {
    if (auto self = weak.lock()) self->abandon(ticket);
  });
}

void HttpTransport::abandon(std::uint64_t ticket) {
  auto entry = streams_.find(ticket);
  if (entry == streams_.end()) return;
  StreamPtr stream = entry->second;
  streams_.erase(entry);
  stream->is_answered = true;
  cancel(*stream);
}

void HttpTransport::cancel(Stream& stream) {
  ++stream.generation;
  stream.timer.cancel();
  if (stream.exchange != 0) client_.cancel(std::exchange(stream.exchange, 0));
}

void HttpTransport::cancel_all() {
  for (auto& [ticket, stream] : streams_)
    cancel(*stream);
  streams_.clear();
  for (auto& [number, exchange] : posts_)
    client_.cancel(exchange);
  posts_.clear();
}

void HttpTransport::lose_session() {
  session_id_.clear();
  closed({ErrorCode::not_found, "the server has forgotten the session"});
}

void HttpTransport::closed(Error error) {
  if (std::exchange(is_closed_, true)) return;
  cancel_all();
  events_.on_closed(error);
}

void HttpTransport::close() {
  is_closed_ = true;
  cancel_all();
  if (session_id_.empty()) return;
  RequestOptions request = make_request(options_, "DELETE", options_.url);
  add_session(request);
  session_id_.clear();
  request.timeout = std::chrono::seconds(5);
  request.max_response_bytes = max_message_bytes;
  // Courtesy: the server forgets the session by itself some day, too.
  client_.send(worker_, std::move(request), {});
}

}  // namespace

std::shared_ptr<Transport> make_http_transport(net::Worker& worker, net::http::AsyncClientReference client,
                                               const ConnectionOptions& options, TransportEvents events) {
  return std::make_shared<HttpTransport>(worker, std::move(client), options, std::move(events));
}

}  // namespace hive::upstreams
