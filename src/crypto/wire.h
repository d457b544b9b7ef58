#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"

/// The data types of SSH's wire encoding (RFC 4251 section 5).
namespace hive::crypto {

/// Reads from bytes that may be hostile; after the first failure every read fails.
class WireReader {
 public:
  explicit WireReader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  std::optional<std::uint32_t> uint32() {
    if (rest_.size() < 4) return fail_all<std::uint32_t>();
    std::uint32_t value = static_cast<std::uint32_t>(rest_[0]) << 24 | static_cast<std::uint32_t>(rest_[1]) << 16 |
                          static_cast<std::uint32_t>(rest_[2]) << 8 | rest_[3];
    rest_ = rest_.subspan(4);
    return value;
  }

  std::optional<std::span<const std::uint8_t>> string() {
    std::optional<std::uint32_t> size = uint32();
    if (!size || *size > rest_.size()) return fail_all<std::span<const std::uint8_t>>();
    auto value = rest_.first(*size);
    rest_ = rest_.subspan(*size);
    return value;
  }

  std::optional<std::string_view> text() {
    auto value = string();
    if (!value) return std::nullopt;
    return as_text(*value);
  }

  /// Steps over `expected` if the bytes begin with it.
  bool literal(std::string_view expected) {
    if (!as_text(rest_).starts_with(expected)) return false;
    rest_ = rest_.subspan(expected.size());
    return true;
  }

  [[nodiscard]] std::span<const std::uint8_t> rest() const { return rest_; }
  [[nodiscard]] bool at_end() const { return rest_.empty() && !failed_; }

 private:
  template <class T>
  std::optional<T> fail_all() {
    failed_ = true;
    rest_ = {};
    return std::nullopt;
  }

  std::span<const std::uint8_t> rest_;
  bool failed_ = false;
};

/// Appends to a buffer of the caller's, who decides whether it must be wiped.
class WireWriter {
 public:
  explicit WireWriter(std::vector<std::uint8_t>& out) : out_(out) {}

  void uint32(std::uint32_t value) {
    for (int shift : {24, 16, 8, 0})
      out_.push_back(static_cast<std::uint8_t>(value >> shift));
  }
  void raw(std::span<const std::uint8_t> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void raw(std::string_view text) { raw(as_bytes(text)); }
  void string(std::span<const std::uint8_t> bytes) {
    uint32(static_cast<std::uint32_t>(bytes.size()));
    raw(bytes);
  }
  void string(std::string_view text) { string(as_bytes(text)); }

 private:
  std::vector<std::uint8_t>& out_;
};

}  // namespace hive::crypto
