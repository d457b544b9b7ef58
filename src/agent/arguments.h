#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/json.h"

namespace hive::agent {

/// The arguments object of a tool call. Every accessor fails with invalid_argument when the value has the wrong type;
/// null counts as absent, as the reference's clients send it.
class Arguments {
 public:
  /// `raw` is empty when the call has no arguments, which only tools that need none accept. Held against the tool's
  /// input schema: a key that it does not have is refused, for a caller who misspells "dry_run" must not get a real
  /// run; so is the absence of a required one.
  static Result<Arguments> parse(std::string_view raw, std::string_view tool, bool may_be_absent);

  [[nodiscard]] Result<std::optional<std::string>> string(std::string_view key) const;
  /// Failure also when it is absent.
  [[nodiscard]] Result<std::string> required_string(std::string_view key) const;
  [[nodiscard]] Result<std::optional<std::int64_t>> integer(std::string_view key) const;
  [[nodiscard]] Result<bool> boolean(std::string_view key) const;
  /// Empty when absent.
  [[nodiscard]] Result<std::vector<std::string>> strings(std::string_view key) const;

 private:
  [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const;

  std::string tool_;
  std::vector<json::Member> members_;  // views into the raw text
};

}  // namespace hive::agent
