#include "config/pattern.h"

#include <re2/re2.h>

#include "base/strings.h"

namespace hive::config {

namespace {
constexpr std::size_t max_pattern_bytes = 16384;
}

Pattern::Pattern(std::unique_ptr<re2::RE2> compiled) : compiled_(std::move(compiled)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

Result<Pattern> Pattern::compile(std::string_view text) {
  if (text.size() > max_pattern_bytes) {
    return fail(ErrorCode::resource_exhausted, "the pattern is longer than {} bytes", max_pattern_bytes);
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto compiled = std::make_unique<re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
  if (!compiled->ok()) {
    return fail(ErrorCode::invalid_argument, "not a valid RE2 pattern: {}", escape_for_terminal(compiled->error()));
  }
  return Pattern(std::move(compiled));
}

bool Pattern::admits(std::string_view line) const {
  return re2::RE2::FullMatch(re2::StringPiece(line.data(), line.size()), *compiled_);
}

}  // namespace hive::config
