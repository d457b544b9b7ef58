#include "gateway/surfaces/mcp/event_stream.h"

#include <algorithm>
#include <utility>

namespace hive::mcp_surface {

namespace {

/// What may wait for a worker that is busy; the server bounds what waits for the client.
constexpr std::size_t max_queued_bytes = std::size_t{4} << 20;

/// Messages are one line; should one not be, its breaks stand between JSON tokens and mean nothing.
void append_line(std::string& out, std::string_view text) {
  std::size_t begin = out.size();
  out += text;
  std::replace_if(
      out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
}

}  // namespace

EventStream::EventStream(net::Worker& worker, std::shared_ptr<net::http::Responder> responder, Options options)
    : worker_(worker), options_(std::move(options)), responder_(std::move(responder)) {}

std::shared_ptr<EventStream> EventStream::create(net::Worker& worker, std::shared_ptr<net::http::Responder> responder,
                                                 Options options) {
  std::shared_ptr<EventStream> made(new EventStream(worker, std::move(responder), std::move(options)));
  // The connection keeps the stream until its end, so that the timer never outlives what belongs to the worker.
  made->responder_->on_disconnect([made] { made->client_gone(); });
  if (!made->ended_) made->schedule_heartbeat();
  return made;
}

void EventStream::on_gone(net::Task task) {
  if (is_gone_) return task();
  if (!ended_) on_gone_ = std::move(task);
}

void EventStream::on_quiet(std::function<void()> task) {
  if (!ended_) on_quiet_ = std::move(task);
}

void EventStream::queue_open() {
  queue({.kind = Kind::open});
}

void EventStream::queue_message(SharedMessage message, std::string event_id) {
  queue({.kind = Kind::message, .message = std::move(message), .text = std::move(event_id)});
}

void EventStream::queue_text(std::string text) {
  queue({.kind = Kind::text, .text = std::move(text)});
}

void EventStream::queue_answer(SharedMessage message, unsigned status, net::http::Headers headers) {
  queue({.kind = Kind::answer, .message = std::move(message), .status = status, .headers = std::move(headers)});
}

void EventStream::queue_response(net::http::Response response) {
  queue({.kind = Kind::response, .response = std::make_unique<net::http::Response>(std::move(response))});
}

void EventStream::queue_end() {
  queue({.kind = Kind::end});
}

void EventStream::queue(Item item) {
  if (ended_) return;
  std::lock_guard lock(mutex_);
  if (overflowed_) return;
  // What is queued already counts, not the message: a single large answer is no flood, nor is what ends the stream.
  bool is_message = item.kind == Kind::message || item.kind == Kind::text;
  overflowed_ = is_message && queued_bytes_ >= max_queued_bytes;
  queued_bytes_ += item.text.size() + (item.message ? item.message->size() : 0);
  queue_.push_back(std::move(item));
}

// When it has ended there is nobody to send to, and perhaps no worker any more.
void EventStream::flush() {
  if (ended_) return;
  if (worker_.runs_here()) return drain();
  {
    std::lock_guard lock(mutex_);
    if (drain_posted_ || queue_.empty()) return;
    drain_posted_ = true;
  }
  worker_.post([self = shared_from_this()] { self->drain(); });
}

// Sending may find the connection broken, which calls back into this object.
void EventStream::drain() {
  if (draining_ || ended_) return;
  draining_ = true;
  std::shared_ptr<EventStream> self = shared_from_this();
  while (true) {
    std::vector<Item> items;
    bool overflowed = false;
    {
      std::lock_guard lock(mutex_);
      drain_posted_ = false;
      if (queue_.empty()) break;
      items.swap(queue_);
      queued_bytes_ = 0;
      overflowed = std::exchange(overflowed_, false);
    }
    if (overflowed) {
      abandon();
      break;
    }
    for (Item& item : items)
      apply(item);
    send_pending();
    if (ended_) break;
  }
  draining_ = false;
}

void EventStream::apply(Item& item) {
  if (ended_) return;
  bool as_events = is_open_ || options_.accepts_events;
  switch (item.kind) {
    case Kind::open:
      if (as_events) open();
      return;
    case Kind::message:
      if (as_events) append_event(item);
      return;
    case Kind::text:
      if (!as_events) return;
      open();
      if (!ended_) pending_ += item.text;
      return;
    case Kind::answer:
      if (!is_open_ && options_.accepts_json) {
        item.headers.insert(item.headers.end(), options_.headers.begin(), options_.headers.end());
        return respond({.status = item.status, .headers = std::move(item.headers), .body = *item.message});
      }
      options_.headers.insert(options_.headers.end(), item.headers.begin(), item.headers.end());
      append_event(item);
      return end();
    case Kind::response:
      if (is_open_) return end();
      item.response->headers.insert(item.response->headers.end(), options_.headers.begin(), options_.headers.end());
      return respond(std::move(*item.response));
    case Kind::end:
      if (is_open_) return end();
      return respond({.status = 202, .content_type = "", .headers = options_.headers});
  }
}

void EventStream::open() {
  if (is_open_) return;
  is_open_ = true;  // already while it opens, which may find the client gone
  net::http::Response head;
  head.content_type = "text/event-stream";
  head.headers = options_.headers;
  // Proxies that collect an answer before they pass it on would defeat the purpose.
  head.headers.emplace_back("X-Accel-Buffering", "no");
  std::shared_ptr<net::http::Stream> stream = std::exchange(responder_, nullptr)->respond_stream(std::move(head));
  if (!ended_) stream_ = std::move(stream);
}

void EventStream::append_event(const Item& item) {
  open();
  if (ended_) return;
  pending_.reserve(pending_.size() + item.message->size() + item.text.size() + 32);
  if (!item.text.empty()) {
    pending_ += "id: ";
    pending_ += item.text;
    pending_ += '\n';
  }
  pending_ += "event: message\ndata: ";
  append_line(pending_, *item.message);
  pending_ += "\n\n";
}

void EventStream::send_pending() {
  std::string text = std::exchange(pending_, {});
  if (text.empty() || stream_ == nullptr) return;
  sent_since_beat_ = true;
  // A client that has gone or does not read is told of by the connection, perhaps before this returns.
  std::shared_ptr<net::http::Stream> stream = stream_;
  (void)stream->send(text);
}

void EventStream::respond(net::http::Response response) {
  settle();
  std::exchange(responder_, nullptr)->respond(std::move(response));
}

void EventStream::end() {
  send_pending();
  if (ended_) return;
  settle();
  if (auto stream = std::exchange(stream_, nullptr)) stream->end();
}

// Without end(), the connection is cut, and the client knows that something is missing.
void EventStream::abandon() {
  net::Task task = std::exchange(on_gone_, nullptr);
  is_gone_ = true;
  settle();
  stream_.reset();
  responder_.reset();
  if (task) task();
}

void EventStream::settle() {
  ended_ = true;
  timer_.cancel();
  on_gone_ = nullptr;
  on_quiet_ = nullptr;
  pending_ = {};
}

// It may only have ended its sending side. Such clients are too rare to tell them from those that have closed.
void EventStream::client_gone() {
  if (ended_) return;
  net::Task task = std::exchange(on_gone_, nullptr);
  is_gone_ = true;
  if (is_open_) {
    pending_.clear();
    end();
  } else {
    respond({.status = 408, .content_type = "", .headers = options_.headers});
  }
  if (task) task();
}

void EventStream::schedule_heartbeat() {
  timer_ = worker_.schedule(options_.heartbeat, [weak = weak_from_this()] {
    if (auto alive = weak.lock()) alive->beat();
  });
}

void EventStream::beat() {
  if (ended_) return;
  if (options_.is_still_admitted && !options_.is_still_admitted()) {
    net::Task task = std::exchange(on_gone_, nullptr);
    is_gone_ = true;
    queue_end();
    flush();
    if (task) task();
    return;
  }
  if (!is_open_ && on_quiet_) {
    std::function<void()> task = on_quiet_;  // it may be unset meanwhile
    task();
  } else if (!sent_since_beat_) {
    queue_text(": heartbeat\n\n");
  }
  flush();
  if (ended_) return;
  sent_since_beat_ = false;
  schedule_heartbeat();
}

}  // namespace hive::mcp_surface
