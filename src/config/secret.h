#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace hive::config {

/// A secret of a configuration. Prints as "[redacted]" wherever it is formatted by mistake.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  [[nodiscard]] const std::string& reveal() const { return value_; }
  [[nodiscard]] bool empty() const { return value_.empty(); }
  bool operator==(const Secret&) const = default;

 private:
  std::string value_;
};

}  // namespace hive::config

/// So that a secret that is formatted by mistake shows nothing.
template <>
struct fmt::formatter<hive::config::Secret> : fmt::formatter<std::string_view> {
  auto format(const hive::config::Secret& /*secret*/, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format("[redacted]", context);
  }
};
