#include "gateway/surfaces/mcp/http_session.h"

#include <utility>
#include <vector>

#include "crypto/random.h"
#include "protocol/agent_protocol.h"

namespace hive::mcp_surface {

namespace {

/// What all sessions together keep for clients that have gone, before each must do with little.
constexpr std::size_t max_kept_bytes = std::size_t{64} << 20;
constexpr std::size_t scarce_bytes = std::size_t{64} << 10;
std::atomic<std::size_t> kept_bytes = 0;

/// A number of milliseconds from `least` to twice that, so that clients that were sent away together do not come back
/// together.
unsigned spread(unsigned least) {
  std::uint8_t random = 0;
  crypto::random_bytes({&random, 1});
  return least + least * random / 255;
}

std::string retry_field(unsigned milliseconds) {
  return fmt::format("retry: {}\n\n", milliseconds);
}

constexpr unsigned retry_milliseconds = 500;
constexpr unsigned restart_milliseconds = 3000;

}  // namespace

std::shared_ptr<HttpSession> HttpSession::create(std::shared_ptr<Session> session, const Clock& clock,
                                                 Options options) {
  return std::shared_ptr<HttpSession>(new HttpSession(std::move(session), clock, options));
}

HttpSession::HttpSession(std::shared_ptr<Session> session, const Clock& clock, Options options)
    : session_(std::move(session)),
      clock_(clock),
      options_(options),
      last_used_(clock.steady_now()),
      replay_(options.replay),
      main_(replay_.open()) {}

HttpSession::~HttpSession() {
  kept_bytes -= counted_bytes_;
}

bool HttpSession::is_busy() const {
  std::lock_guard lock(mutex_);
  return requests_ > 0 || !clients_.empty();
}

bool HttpSession::begin_request() {
  learn_revision();
  std::lock_guard lock(mutex_);
  if (requests_ >= options_.max_requests) return false;
  ++requests_;
  return true;
}

void HttpSession::end_request() {
  touch();
  std::lock_guard lock(mutex_);
  --requests_;
}

void HttpSession::account() {
  kept_bytes += replay_.bytes();
  kept_bytes -= std::exchange(counted_bytes_, replay_.bytes());
  replay_.set_max_bytes(kept_bytes > max_kept_bytes ? scarce_bytes : options_.replay.bytes);
}

// What would not fit is not silently lost: the client is told in its place.
SharedMessage HttpSession::to_keep(const SharedMessage& message, bool is_answer) {
  if (!is_answer || message->size() <= replay_.limits().bytes) return message;
  auto parsed = mcp::parse_message(*message);
  return std::make_shared<const std::string>(mcp::encode_error(
      parsed ? parsed->id : std::string_view(), protocol::internal_error_code,
      "the answer was too large to be kept while the connection was gone; call again if that does no harm"));
}

void HttpSession::queue_priming(std::string_view stream, std::uint64_t number, EventStream& client) {
  client.queue_text(
      fmt::format("id: {}\nretry: {}\ndata: \n\n", ReplayBuffer::event_id(stream, number), spread(retry_milliseconds)));
}

void HttpSession::queue_events(std::string_view stream, std::span<const ReplayBuffer::Event> events,
                               EventStream& client) {
  for (const ReplayBuffer::Event& event : events)
    client.queue_message(event.message, ReplayBuffer::event_id(stream, event.number));
}

// Returns the client that the stream had before, with its end queued.
std::shared_ptr<EventStream> HttpSession::attach(const std::string& stream,
                                                 const std::shared_ptr<EventStream>& client) {
  std::shared_ptr<EventStream> earlier = std::exchange(clients_[stream], client);
  if (earlier) earlier->queue_end();
  client->queue_open();
  return earlier;
}

std::string HttpSession::open_stream(const std::shared_ptr<EventStream>& client) {
  std::lock_guard lock(mutex_);
  std::string stream = replay_.open();
  account();
  attach(stream, client);
  if (primes_streams_) queue_priming(stream, 0, *client);
  return stream;
}

HttpSession::ToFlush HttpSession::queue(std::string_view stream, std::string text, bool is_answer) {
  auto message = std::make_shared<const std::string>(std::move(text));
  std::lock_guard lock(mutex_);
  std::uint64_t number = replay_.append(stream, to_keep(message, is_answer), is_answer);
  account();
  auto found = clients_.find(stream);
  if (found == clients_.end()) return nullptr;
  if (stream == main_) main_sent_ = number;
  found->second->queue_message(std::move(message), number == 0 ? "" : ReplayBuffer::event_id(stream, number));
  return found->second;
}

HttpSession::ToFlush HttpSession::end_stream(std::string_view stream) {
  std::lock_guard lock(mutex_);
  replay_.end(stream, clock_.steady_now());
  auto found = clients_.find(stream);
  if (found == clients_.end()) return nullptr;
  std::shared_ptr<EventStream> client = std::move(found->second);
  clients_.erase(found);
  client->queue_end();
  return client;
}

HttpSession::ToFlush HttpSession::interrupt(std::string_view stream) {
  std::lock_guard lock(mutex_);
  auto found = clients_.find(stream);
  if (found == clients_.end()) return nullptr;
  std::shared_ptr<EventStream> client = std::move(found->second);
  clients_.erase(found);
  client->queue_text(retry_field(spread(retry_milliseconds)));
  client->queue_end();
  return client;
}

void HttpSession::detach(std::string_view stream, const EventStream* client) {
  touch();
  std::lock_guard lock(mutex_);
  auto found = clients_.find(stream);
  if (found != clients_.end() && found->second.get() == client) clients_.erase(found);
}

void HttpSession::send_unsolicited(std::string message) {
  if (ToFlush client = queue(main_, std::move(message), false)) client->flush();
}

std::string HttpSession::listen(const std::shared_ptr<EventStream>& client) {
  learn_revision();
  bool is_first = false;
  std::shared_ptr<EventStream> earlier;
  {
    std::lock_guard lock(mutex_);
    is_first = !std::exchange(is_listened_to_, true);
    earlier = attach(main_, client);
    if (primes_streams_) queue_priming(main_, main_sent_, *client);
    // What waited for a listener; what another one got is not sent twice.
    std::vector<ReplayBuffer::Event> waiting = replay_.after(main_, main_sent_);
    queue_events(main_, waiting, *client);
    if (!waiting.empty()) main_sent_ = waiting.back().number;
  }
  if (earlier) earlier->flush();
  client->flush();
  if (is_first) {
    session_->set_unsolicited([weak = weak_from_this()](std::string message) {
      if (auto alive = weak.lock()) alive->send_unsolicited(std::move(message));
    });
  }
  return main_;
}

std::string HttpSession::resume(std::string_view event_id, const std::shared_ptr<EventStream>& client) {
  std::string stream;
  std::shared_ptr<EventStream> earlier;
  {
    std::lock_guard lock(mutex_);
    std::optional<ReplayBuffer::Replay> replay = replay_.after(event_id);
    if (!replay) return "";
    stream = std::move(replay->stream);
    earlier = attach(stream, client);
    queue_events(stream, replay->events, *client);
    if (stream == main_ && !replay->events.empty()) main_sent_ = replay->events.back().number;
    if (replay->has_ended) {
      client->queue_end();
      clients_.erase(stream);
    }
  }
  if (earlier) earlier->flush();
  client->flush();
  return stream;
}

void HttpSession::close() {
  session_->set_unsolicited(nullptr);
  session_->close();
  Clients clients;
  {
    std::lock_guard lock(mutex_);
    clients.swap(clients_);
  }
  for (const auto& [stream, client] : clients) {
    client->queue_end();
    client->flush();
  }
}

void HttpSession::send_listener_away() {
  ToFlush client;
  {
    std::lock_guard lock(mutex_);
    auto found = clients_.find(main_);
    if (found == clients_.end()) return;
    client = std::move(found->second);
    clients_.erase(found);
    client->queue_text(retry_field(spread(restart_milliseconds)));
    client->queue_end();
  }
  client->flush();
}

void HttpSession::forget_streams_ended_before(SteadyTime time) {
  std::lock_guard lock(mutex_);
  replay_.forget_ended_before(time);
  account();
}

}  // namespace hive::mcp_surface
