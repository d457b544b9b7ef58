#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hive::net::http {

/// One server-sent event. Views are valid during the call that hands it over.
struct StreamEvent {
  std::string_view name;  ///< "message" when it has none
  std::string_view data;
  std::string_view id;  ///< the last id that the stream gave, which may be that of an earlier event
};

/// Reads server-sent events (WHATWG HTML, section 9.2) from pieces of any size.
class EventStreamReader {
 public:
  using Handler = std::function<void(const StreamEvent&)>;

  explicit EventStreamReader(Handler handler, std::size_t max_event_bytes)
      : handler_(std::move(handler)), max_event_bytes_(max_event_bytes) {}

  /// False when an event is larger than allowed; nothing more is read then.
  [[nodiscard]] bool feed(std::string_view piece);

  /// How much of an event that is not complete is held.
  [[nodiscard]] std::size_t pending_bytes() const { return line_.size() + data_.size(); }
  /// The id of the last event that was complete; empty if none had one.
  [[nodiscard]] const std::string& last_id() const { return last_id_; }
  /// How long the server wants to be left alone before a reconnection, if it said so.
  [[nodiscard]] std::optional<std::chrono::milliseconds> retry() const { return retry_; }

 private:
  void take_line(std::string_view line);

  Handler handler_;
  std::size_t max_event_bytes_;
  std::string line_;
  std::string name_;
  std::string data_;
  std::string id_;
  std::string last_id_;
  std::optional<std::chrono::milliseconds> retry_;
  bool has_data_ = false;
  bool skips_line_feed_ = false;  ///< the last line ended in CR; an LF right behind belongs to it
  bool is_first_line_ = true;     ///< which may begin with a byte order mark
  bool is_broken_ = false;
};

}  // namespace hive::net::http
