#include "net/http/event_stream_reader.h"

#include "base/strings.h"

namespace hive::net::http {

namespace {
constexpr std::size_t max_id_bytes = 1024;  // it comes back to the server in a header
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
}  // namespace

bool EventStreamReader::feed(std::string_view piece) {
  while (!piece.empty() && !is_broken_) {
    if (skips_line_feed_) {
      skips_line_feed_ = false;
      if (piece.front() == '\n') {
        piece.remove_prefix(1);
        continue;
      }
    }
    std::size_t end = piece.find_first_of("\r\n");
    std::string_view part = piece.substr(0, end);
    if (line_.size() + data_.size() + part.size() > max_event_bytes_) {
      is_broken_ = true;
      break;
    }
    if (end == std::string_view::npos) {
      line_.append(part);
      break;
    }
    skips_line_feed_ = piece[end] == '\r';
    if (line_.empty()) {
      take_line(part);
    } else {
      line_.append(part);
      take_line(line_);
      line_.clear();
    }
    piece.remove_prefix(end + 1);
  }
  return !is_broken_;
}

void EventStreamReader::take_line(std::string_view line) {
  if (is_first_line_ && line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
  is_first_line_ = false;
  if (line.empty()) {
    last_id_ = id_;
    if (has_data_) {
      data_.pop_back();  // the line feed behind the last line
      handler_({.name = name_.empty() ? std::string_view("message") : name_, .data = data_, .id = last_id_});
    }
    name_.clear();
    data_.clear();
    has_data_ = false;
    return;
  }
  std::size_t colon = line.find(':');
  std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    data_.append(value);
    data_.push_back('\n');
    has_data_ = true;
  } else if (field == "event") {
    name_ = value;
  } else if (field == "id") {
    if (value.size() <= max_id_bytes && value.find('\0') == std::string_view::npos) id_ = value;
  } else if (field == "retry") {
    auto milliseconds = parse_int64(value);
    if (milliseconds && *milliseconds >= 0) retry_ = std::chrono::milliseconds(*milliseconds);
  }
}

}  // namespace hive::net::http
