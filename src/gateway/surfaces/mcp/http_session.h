#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "gateway/surfaces/mcp/core.h"
#include "gateway/surfaces/mcp/event_stream.h"
#include "gateway/surfaces/mcp/replay_buffer.h"

namespace hive::mcp_surface {

/// The event streams of a legacy session over Streamable HTTP: one for each request that has more to say than its
/// answer, and one for what belongs to no request. A stream outlives its connection, and a client that comes back gets
/// what it missed. Thread-safe.
class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  struct Options {
    ReplayBuffer::Limits replay = {};
    std::size_t max_requests = 128;  ///< in flight
  };

  static std::shared_ptr<HttpSession> create(std::shared_ptr<Session> session, const Clock& clock, Options options);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  [[nodiscard]] Session& core() { return *session_; }
  [[nodiscard]] const std::string& id() const { return session_->id(); }
  [[nodiscard]] const std::string& owner() const { return session_->owner(); }
  /// From 2025-11-25 on a stream begins with an empty event, whose id a client can come back with.
  [[nodiscard]] bool primes_streams() const { return primes_streams_; }

  /// The session was used now.
  void touch() { last_used_ = clock_.steady_now(); }
  [[nodiscard]] SteadyTime last_used() const { return last_used_; }
  /// Whether a request is in flight or a client listens.
  [[nodiscard]] bool is_busy() const;

  /// A request begins; false if there are too many. Each one that began is to end.
  bool begin_request();
  void end_request();

  // These only queue: what they return, unless it is null, is to be flushed by the caller when it holds no lock.

  /// A client, with something queued for it.
  using ToFlush = std::shared_ptr<EventStream>;
  /// Begins the stream of a request, which `client` gets until it goes away. Returns the stream's name; flush `client`.
  std::string open_stream(const std::shared_ptr<EventStream>& client);
  /// Sends on a stream, or keeps the message for when its client comes back.
  [[nodiscard]] ToFlush queue(std::string_view stream, std::string message, bool is_answer);
  [[nodiscard]] ToFlush end_stream(std::string_view stream);
  /// Closes the connection of a stream that goes on: the client is told to come back.
  [[nodiscard]] ToFlush interrupt(std::string_view stream);
  /// The client of a stream has gone; a newer one stays.
  void detach(std::string_view stream, const EventStream* client);

  // These send at once, and are not for use under a lock.

  /// Sends what belongs to no request.
  void send_unsolicited(std::string message);
  /// Makes `client` the listener for that, instead of the one that was. Returns the stream's name.
  std::string listen(const std::shared_ptr<EventStream>& client);
  /// Goes on with the stream of an event behind it. Returns the stream's name; "" if there is no such event here.
  std::string resume(std::string_view event_id, const std::shared_ptr<EventStream>& client);

  /// The client has gone for good: ends its requests and its streams.
  void close();
  /// Ends the stream of the listener, which is to come back later; not all are to do so at once.
  void send_listener_away();

  void forget_streams_ended_before(SteadyTime time);

 private:
  using Clients = std::map<std::string, std::shared_ptr<EventStream>, std::less<>>;

  HttpSession(std::shared_ptr<Session> session, const Clock& clock, Options options);
  std::shared_ptr<EventStream> attach(const std::string& stream, const std::shared_ptr<EventStream>& client);
  void learn_revision() { primes_streams_ = session_->revision() >= mcp::Revision::v2025_11_25; }
  void queue_events(std::string_view stream, std::span<const ReplayBuffer::Event> events, EventStream& client);
  void queue_priming(std::string_view stream, std::uint64_t number, EventStream& client);
  SharedMessage to_keep(const SharedMessage& message, bool is_answer);
  void account();

  const std::shared_ptr<Session> session_;
  const Clock& clock_;
  const Options options_;
  std::atomic<SteadyTime> last_used_;
  std::atomic<bool> primes_streams_ = false;
  mutable std::mutex mutex_;
  ReplayBuffer replay_;            // guarded by mutex_
  Clients clients_;                // guarded by mutex_; by stream
  const std::string main_;         // the stream for what belongs to no request
  std::uint64_t main_sent_ = 0;    // guarded by mutex_; the last number that went to a client
  std::size_t requests_ = 0;       // guarded by mutex_
  std::size_t counted_bytes_ = 0;  // guarded by mutex_
  bool is_listened_to_ = false;    // guarded by mutex_; the core sends to this object
};

}  // namespace hive::mcp_surface
