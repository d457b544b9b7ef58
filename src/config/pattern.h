#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace hive::config {

/// An args_regex: compiled as it is written, so that a pattern that is only sound inside a group is refused, and
/// matched against the whole argument line (the arguments joined by single spaces).
class Pattern {
 public:
  static Result<Pattern> compile(std::string_view text);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  [[nodiscard]] bool admits(std::string_view line) const;

 private:
  explicit Pattern(std::unique_ptr<re2::RE2> compiled);
  std::unique_ptr<re2::RE2> compiled_;
};

}  // namespace hive::config
