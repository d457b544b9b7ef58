#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/json.h"

namespace hive::cli {

/// What the gateway's answers may hold: as much as one answer, with hostile nesting kept away.
inline constexpr json::Limits answer_limits{.max_bytes = size_t{64} << 20, .max_depth = 128, .max_values = 5'000'000};

/// An object of the gateway's, read member by member: one that is missing, null or of another type is empty, so that an
/// older or newer gateway is still understood. The raw views point into the text it was made from.
class JsonFields {
 public:
  /// `what` names the thing in the failure.
  static Result<JsonFields> parse(std::string_view text, std::string_view what);

  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] std::int64_t number(std::string_view key) const;
  [[nodiscard]] bool flag(std::string_view key) const;
  /// The raw value; empty when it is missing or null.
  [[nodiscard]] std::string_view raw(std::string_view key) const;
  /// The raw elements of an array.
  [[nodiscard]] std::vector<std::string_view> elements(std::string_view key) const;
  /// The texts of an array.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;

 private:
  explicit JsonFields(std::vector<json::Member> members) : members_(std::move(members)) {}
  std::vector<json::Member> members_;
};

}  // namespace hive::cli
