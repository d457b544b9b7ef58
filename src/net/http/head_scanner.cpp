#include "net/http/head_scanner.h"

namespace hive::net::http {

std::optional<std::size_t> HeadScanner::scan(std::string_view head) {
  while (position_ < head.size()) {
    auto c = static_cast<unsigned char>(head[position_]);
    if (c == '\n') {
      error_ = "a line ends with a bare line feed";
      return std::nullopt;
    }
    if (c == '\r') {
      if (position_ + 1 == head.size()) return std::nullopt;
      if (head[position_ + 1] != '\n') {
        error_ = "a carriage return stands alone";
        return std::nullopt;
      }
      bool is_empty_line = position_ == line_begin_;
      position_ += 2;
      line_begin_ = position_;
      if (is_empty_line) return position_;
      continue;
    }
    if (position_ == line_begin_ && (c == ' ' || c == '\t')) {
      error_ = "a line begins with white space (folded header lines are not accepted)";
      return std::nullopt;
    }
    if ((c < 0x20 && c != '\t') || c == 0x7f) {
      error_ = "the request head contains a control character";
      return std::nullopt;
    }
    ++position_;
  }
  return std::nullopt;
}

}  // namespace hive::net::http
