#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hive::net::http {

/// Looks at the bytes of a request head once each, as they arrive, and stops at the first that no strict reader
/// accepts, long before the head is complete.
class HeadScanner {
 public:
  /// Continues in `head`, which begins with everything that was scanned before. Returns the size of the complete head,
  /// or nullopt while its end is missing or when error() is set.
  std::optional<std::size_t> scan(std::string_view head);

  /// What is wrong, one line; empty if nothing is.
  [[nodiscard]] std::string_view error() const { return error_; }

 private:
  std::size_t position_ = 0;
  std::size_t line_begin_ = 0;
  std::string_view error_;
};

}  // namespace hive::net::http
