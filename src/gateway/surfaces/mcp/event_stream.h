#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/message.h"
#include "net/runtime/runtime.h"

namespace hive::mcp_surface {

/// A message that may wait in several places at once.
using SharedMessage = std::shared_ptr<const std::string>;

/// One HTTP answer that is a JSON body or an event stream; which of them shows as messages come. What is queued leaves
/// in that order, from whichever threads it was queued, always on the connection's worker. The queue_ functions only
/// queue and call nothing, so they may be used under a lock; flush() must not.
///
/// A client that does not read is cut off by the server's bound on a stream's queue.
class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  struct Options {
    net::http::Headers headers = {};  ///< of the answer
    bool accepts_json = true;
    bool accepts_events = true;
    std::chrono::milliseconds heartbeat = std::chrono::seconds(15);
    /// Asked with every heartbeat; the stream ends when it says no. May be empty.
    std::function<bool()> is_still_admitted = {};
  };

  /// Only on `worker`, that of the request.
  static std::shared_ptr<EventStream> create(net::Worker& worker, std::shared_ptr<net::http::Responder> responder,
                                             Options options);
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  /// Called once on the worker when the client goes away, or the stream is ended because its credential has, before
  /// queue_answer(), queue_response() or queue_end() took effect. Only on the worker.
  void on_gone(net::Task task);
  /// Called on the worker when nothing was sent for one heartbeat and the stream is not open yet. Without it the
  /// stream opens then, if the client accepts one: proxies give up on connections that stay silent. Only on the worker.
  void on_quiet(std::function<void()> task);

  /// Begins the event stream.
  void queue_open();
  /// An event with a message, which begins the stream. Dropped for a client that accepts no stream. `event_id` may be
  /// empty.
  void queue_message(SharedMessage message, std::string event_id = {});
  /// Text in the event stream format.
  void queue_text(std::string text);
  /// The last message: the body of a JSON answer with this status if the stream has not begun and the client accepts
  /// JSON, otherwise an event.
  void queue_answer(SharedMessage message, unsigned status, net::http::Headers headers = {});
  /// A whole answer, unless the stream has begun; then the stream ends.
  void queue_response(net::http::Response response);
  /// Ends the stream. If it has not begun: 202 without body.
  void queue_end();

  /// Sends what is queued, now if called on the worker. Thread-safe.
  void flush();

 private:
  enum class Kind : std::uint8_t { open, message, text, answer, response, end };
  struct Item {
    Kind kind;
    SharedMessage message = {};
    std::string text = {};  // an event id, or the text
    unsigned status = 200;
    net::http::Headers headers = {};
    std::unique_ptr<net::http::Response> response = {};
  };

  EventStream(net::Worker& worker, std::shared_ptr<net::http::Responder> responder, Options options);
  void queue(Item item);
  void drain();
  void apply(Item& item);
  void open();
  void append_event(const Item& item);
  void send_pending();
  void respond(net::http::Response response);
  void end();
  void abandon();
  void settle();
  void client_gone();
  void schedule_heartbeat();
  void beat();

  net::Worker& worker_;
  std::mutex mutex_;
  std::vector<Item> queue_;       // guarded by mutex_
  std::size_t queued_bytes_ = 0;  // guarded by mutex_
  bool overflowed_ = false;       // guarded by mutex_
  bool drain_posted_ = false;     // guarded by mutex_

  // On the worker only.
  Options options_;
  std::shared_ptr<net::http::Responder> responder_;
  std::shared_ptr<net::http::Stream> stream_;
  std::string pending_;
  net::Timer timer_;
  net::Task on_gone_;
  std::function<void()> on_quiet_;
  bool sent_since_beat_ = false;
  bool draining_ = false;
  bool is_open_ = false;  // as an event stream
  bool is_gone_ = false;

  std::atomic<bool> ended_ = false;  // set on the worker
};

}  // namespace hive::mcp_surface
