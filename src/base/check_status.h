#pragma once

#include <string_view>

namespace hive {

/// How one thing stands that a doctor looked at.
enum class CheckStatus {
  ok,
  warning,
  failed,
  skipped,  ///< not reached, or there is nothing to look at
};

constexpr std::string_view to_string(CheckStatus status) {
  switch (status) {
    case CheckStatus::ok:
      return "ok";
    case CheckStatus::warning:
      return "warning";
    case CheckStatus::failed:
      return "failed";
    case CheckStatus::skipped:
      return "skipped";
  }
  return "failed";
}

}  // namespace hive
