#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::cli {

/// Reads server-sent events (WHATWG HTML, section 9.2) from pieces of any size.
class EventStreamReader {
 public:
  /// Gets the event's name ("message" when it has none) and its data.
  using Handler = std::function<void(std::string_view name, std::string_view data)>;

  explicit EventStreamReader(Handler handler, size_t max_event_bytes = size_t{64} << 20)
      : handler_(std::move(handler)), max_event_bytes_(max_event_bytes) {}

  /// False when an event is larger than allowed; nothing more is read then.
  [[nodiscard]] bool feed(std::string_view piece);

 private:
  void take_line(std::string_view line);

  Handler handler_;
  size_t max_event_bytes_;
  std::string line_;
  std::string name_;
  std::string data_;
  bool has_data_ = false;
  bool skips_line_feed_ = false;  ///< the last line ended in CR; an LF right behind belongs to it
  bool is_broken_ = false;
};

}  // namespace hive::cli
