#include "gateway/upstreams/uri_template.h"

#include <cstddef>

namespace hive::upstreams {

namespace {

constexpr std::size_t max_template_bytes = 1024;
constexpr std::size_t max_uri_bytes = 2048;
constexpr std::size_t max_expressions = 8;

// RFC 3986 section 2.2: what simple expansion would have escaped.
bool is_reserved(char c) {
  return std::string_view(":/?#[]@!$&'()*+;=").contains(c);
}

/// One element of the pattern, a character each, so that matching is a walk over a set of positions.
struct Step {
  enum class Kind { exact, one_or_more, any };
  Kind kind = Kind::exact;
  char c = 0;
};

}  // namespace

UriTemplate::UriTemplate(std::string_view text) {
  if (text.size() > max_template_bytes) return;
  std::vector<Part> parts;
  std::size_t expressions = 0;
  while (!text.empty()) {
    std::size_t open = text.find('{');
    std::string_view literal = text.substr(0, open);
    if (literal.contains('}')) return;
    if (!literal.empty()) parts.push_back({Part::Kind::literal, std::string(literal)});
    if (open == std::string_view::npos) break;
    std::size_t close = text.find('}', open);
    if (close == std::string_view::npos || close == open + 1 || ++expressions > max_expressions) return;
    // Every operator but none lets reserved characters in, or leaves everything out.
    bool is_simple = !std::string_view("+#./;?&").contains(text[open + 1]);
    parts.push_back({is_simple ? Part::Kind::segment : Part::Kind::any, {}});
    text.remove_prefix(close + 1);
  }
  parts_ = std::move(parts);
}

bool UriTemplate::matches(std::string_view uri) const {
  if (parts_.empty() || uri.size() > max_uri_bytes) return false;
  if (parts_.front().kind == Part::Kind::literal && !uri.starts_with(parts_.front().text)) return false;
  std::vector<Step> steps;
  for (const Part& part : parts_) {
    if (part.kind == Part::Kind::segment) steps.push_back({Step::Kind::one_or_more, 0});
    if (part.kind == Part::Kind::any) steps.push_back({Step::Kind::any, 0});
    for (char c : part.text)
      steps.push_back({Step::Kind::exact, c});
  }
  // at[k]: what was read so far may end before step k.
  std::vector<bool> at(steps.size() + 1);
  auto pass_empty = [&] {
    for (std::size_t k = 0; k < steps.size(); ++k) {
      if (at[k] && steps[k].kind == Step::Kind::any) at[k + 1] = true;
    }
  };
  at[0] = true;
  pass_empty();
  for (char c : uri) {
    std::vector<bool> next(steps.size() + 1);
    bool is_alive = false;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      if (!at[k]) continue;
      const Step& step = steps[k];
      bool takes = step.kind == Step::Kind::any || (step.kind == Step::Kind::exact ? step.c == c : !is_reserved(c));
      if (!takes) continue;
      is_alive = true;
      next[k + 1] = true;
      if (step.kind != Step::Kind::exact) next[k] = true;
    }
    if (!is_alive) return false;
    at = std::move(next);
    pass_empty();
  }
  return at[steps.size()];
}

}  // namespace hive::upstreams
