#include "cli/event_stream.h"

namespace hive::cli {

bool EventStreamReader::feed(std::string_view piece) {
  while (!piece.empty() && !is_broken_) {
    if (skips_line_feed_ && piece.front() == '\n') piece.remove_prefix(1);
    skips_line_feed_ = false;
    size_t end = piece.find_first_of("\r\n");
    line_ += piece.substr(0, end);
    if (line_.size() + data_.size() > max_event_bytes_) is_broken_ = true;
    if (end == std::string_view::npos) break;
    skips_line_feed_ = piece[end] == '\r';
    take_line(line_);
    line_.clear();
    piece.remove_prefix(end + 1);
  }
  return !is_broken_;
}

void EventStreamReader::take_line(std::string_view line) {
  if (line.empty()) {
    if (has_data_) handler_(name_.empty() ? "message" : std::string_view(name_), data_);
    name_.clear();
    data_.clear();
    has_data_ = false;
    return;
  }
  size_t colon = line.find(':');
  std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") {
    name_ = value;
  } else if (field == "data") {
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  }
}

}  // namespace hive::cli
