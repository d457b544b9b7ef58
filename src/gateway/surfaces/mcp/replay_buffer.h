#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "gateway/surfaces/mcp/event_stream.h"

namespace hive::mcp_surface {

/// What was sent on the event streams of one session, kept for a client whose connection broke. Bounded: the oldest
/// notifications go first, and of answers the oldest. Not thread-safe.
class ReplayBuffer {
 public:
  struct Limits {
    std::size_t events = 256;
    std::size_t bytes = std::size_t{1} << 20;
    std::size_t ended_streams = 64;
  };
  struct Event {
    std::uint64_t number = 0;  ///< from 1
    SharedMessage message;
  };
  struct Replay {
    std::string stream;
    std::vector<Event> events;
    bool has_ended = false;
  };

  explicit ReplayBuffer(Limits limits) : limits_(limits) {}

  /// A new stream; its name is random, so that nobody can name a stream that he was not told of.
  std::string open();
  /// Keeps a message of a stream and returns its number in the stream. `keep` may differ from what was sent.
  std::uint64_t append(std::string_view stream, SharedMessage keep, bool is_answer);
  /// Nothing follows on this stream.
  void end(std::string_view stream, SteadyTime now);
  /// Forgets streams that ended before `time`.
  void forget_ended_before(SteadyTime time);
  /// What followed an event; nullopt if that is no event of this session, or is no longer kept.
  [[nodiscard]] std::optional<Replay> after(std::string_view event_id) const;
  /// The events of a stream with a number above `number`.
  [[nodiscard]] std::vector<Event> after(std::string_view stream, std::uint64_t number) const;

  void set_max_bytes(std::size_t bytes) { limits_.bytes = bytes; }
  [[nodiscard]] const Limits& limits() const { return limits_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  static std::string event_id(std::string_view stream, std::uint64_t number);

 private:
  struct Kept {
    Event event;
    std::uint64_t order = 0;  // over all streams
    bool is_answer = false;
  };
  struct Stream {
    std::deque<Kept> events;
    std::uint64_t last_number = 0;
    std::optional<SteadyTime> ended_at;
    std::uint64_t opened = 0;
  };
  using Streams = std::map<std::string, Stream, std::less<>>;

  void shrink();
  bool drop_oldest(bool answers);
  void erase(Streams::iterator stream);

  Limits limits_;
  Streams streams_;
  std::uint64_t order_ = 0;
  std::size_t events_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace hive::mcp_surface
