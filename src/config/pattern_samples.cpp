#include "config/pattern_samples.h"

#include <algorithm>
#include <bitset>
#include <limits>

namespace hive::config {

namespace {

constexpr std::size_t max_samples = 64;
constexpr std::size_t max_sample_bytes = 1024;
constexpr std::size_t max_finite = 24;
constexpr std::size_t infinite = std::numeric_limits<std::size_t>::max();
constexpr int max_depth = 50;
constexpr int max_repeat_shown = 64;

using Ascii = std::bitset<128>;

std::size_t times(std::size_t a, std::size_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == infinite || b == infinite || a > infinite / b) return infinite;
  return a * b;
}

std::size_t plus(std::size_t a, std::size_t b) {
  return a == infinite || b == infinite || a > infinite - b ? infinite : a + b;
}

/// The texts of a part: how many there are, and some or all of them.
struct Language {
  std::size_t count = 1;
  std::vector<std::string> samples = {""};

  [[nodiscard]] bool is_complete() const { return count != infinite && count == samples.size(); }
};

std::size_t longest(const Language& language) {
  std::size_t size = 0;
  for (const std::string& sample : language.samples) {
    size = std::max(size, sample.size());
  }
  return size;
}

// All pairs while they are few, so that a small language stays complete; otherwise each sample of both sides once.
Language concatenated(const Language& left, const Language& right) {
  Language result{.count = times(left.count, right.count), .samples = {}};
  // A class without characters has no text, and neither has what it is part of.
  if (left.samples.empty() || right.samples.empty()) return result;
  std::size_t pairs = times(left.samples.size(), right.samples.size());
  if (left.is_complete() && right.is_complete() && pairs <= max_finite) {
    for (const std::string& a : left.samples) {
      for (const std::string& b : right.samples) {
        result.samples.push_back(a + b);
      }
    }
    return result;
  }
  std::size_t size = std::min(max_samples, std::max(left.samples.size(), right.samples.size()));
  for (std::size_t i = 0; i < size; ++i) {
    result.samples.push_back(left.samples[i % left.samples.size()] + right.samples[i % right.samples.size()]);
  }
  return result;
}

Language united(Language left, const Language& right) {
  left.count = plus(left.count, right.count);
  for (const std::string& sample : right.samples) {
    if (left.samples.size() >= max_samples) break;
    left.samples.push_back(sample);
  }
  return left;
}

Language repeated(const Language& part, int min, int max) {
  Language power;
  for (int i = 0; i < std::min(min, max_repeat_shown) && longest(power) <= max_sample_bytes; ++i) {
    power = concatenated(power, part);
  }
  if (min == max) return power;
  if (max < 0 || max - min > 16 || part.count > max_finite) {
    // Too many to list: the shortest, and one more so that an optional part is seen.
    Language longer = concatenated(power, part);
    Language result = min == 0 ? united(longer, power) : united(power, longer);
    if (part.count != 0) result.count = infinite;
    return result;
  }
  Language result = power;
  for (int i = min; i < max; ++i) {
    power = concatenated(power, part);
    result = united(std::move(result), power);
  }
  return result;
}

Ascii range(char first, char last) {
  Ascii set;
  for (auto c = static_cast<unsigned char>(first); c <= static_cast<unsigned char>(last); ++c) {
    set.set(c);
  }
  return set;
}

const Ascii digits = range('0', '9');
const Ascii letters = range('a', 'z') | range('A', 'Z');
const Ascii words = digits | letters | range('_', '_');
const Ascii blanks = range('\t', '\n') | range('\f', '\r') | range(' ', ' ');

Language of_class(const Ascii& set) {
  Language language{.count = set.count(), .samples = {}};
  if (set.none()) return language;
  if (set.count() <= max_finite) {
    for (int c = 0; c < 128; ++c) {
      if (set.test(static_cast<std::size_t>(c))) language.samples.emplace_back(1, static_cast<char>(c));
    }
    // Digits: one of them says enough, and the count is kept.
    if (set == digits) language.samples = {"5"};
    return language;
  }
  for (char c : {'a', 'A', '5', '-', '/', '.'}) {
    if (!set.test(static_cast<std::size_t>(c))) continue;
    language.samples.emplace_back(1, c);
    return language;
  }
  for (int c = 126; c >= 0; --c) {
    if (!set.test(static_cast<std::size_t>(c))) continue;
    language.samples.emplace_back(1, static_cast<char>(c));
    return language;
  }
  return language;
}

/// Recursive descent over the pattern's text. `failed_` says that something was met that it does not know.
class Sketch {
 public:
  explicit Sketch(std::string_view pattern) : text_(pattern) {}

  std::optional<PatternOutline> outline() {
    std::vector<std::string> alternatives;
    Language language = alternation(0, &alternatives);
    if (failed_ || at_ != text_.size()) return std::nullopt;
    PatternOutline result;
    result.samples = std::move(language.samples);
    if (language.count == result.samples.size()) result.finite_count = language.count;
    if (alternatives.size() > 1) result.alternatives = std::move(alternatives);
    return result;
  }

 private:
  [[nodiscard]] bool ended() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek() const { return text_[at_]; }

  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Language fail() {
    failed_ = true;
    return {};
  }

  Language alternation(int depth, std::vector<std::string>* parts = nullptr) {
    if (depth > max_depth) return fail();
    std::size_t start = at_;
    Language result = sequence(depth);
    if (parts != nullptr) parts->emplace_back(text_.substr(start, at_ - start));
    while (!failed_ && take("|")) {
      start = at_;
      result = united(std::move(result), sequence(depth));
      if (parts != nullptr) parts->emplace_back(text_.substr(start, at_ - start));
    }
    return result;
  }

  Language sequence(int depth) {
    Language result;
    while (!failed_ && !ended() && peek() != '|' && peek() != ')') {
      Language part = atom(depth);
      if (failed_) return {};
      part = quantified(part);
      result = concatenated(result, part);
      if (result.samples.empty() || longest(result) > max_sample_bytes) return fail();
    }
    return result;
  }

  Language quantified(const Language& part) {
    int min = 1;
    int max = 1;
    if (take("*")) {
      min = 0;
      max = -1;
    } else if (take("+")) {
      max = -1;
    } else if (take("?")) {
      min = 0;
    } else if (!counted(min, max)) {
      return part;
    }
    take("?");
    if (min > max_repeat_shown) return fail();
    return repeated(part, min, max);
  }

  // "{m}", "{m,}" and "{m,n}"; anything else that begins with a brace is literal text.
  bool counted(int& min, int& max) {
    std::size_t at = at_;
    if (at >= text_.size() || text_[at] != '{') return false;
    std::size_t end = text_.find('}', at);
    if (end == std::string_view::npos) return false;
    std::string_view inside = text_.substr(at + 1, end - at - 1);
    std::size_t comma = inside.find(',');
    auto number = [](std::string_view digits_text, int& value) {
      if (digits_text.empty() || digits_text.size() > 4) return false;
      value = 0;
      for (char c : digits_text) {
        if (c < '0' || c > '9') return false;
        value = value * 10 + (c - '0');
      }
      return true;
    };
    if (!number(inside.substr(0, comma), min)) return false;
    if (comma == std::string_view::npos) {
      max = min;
    } else if (comma + 1 == inside.size()) {
      max = -1;
    } else if (!number(inside.substr(comma + 1), max)) {
      return false;
    }
    at_ = end + 1;
    return true;
  }

  Language atom(int depth) {
    if (take("(")) {
      if (take("?P<") || take("?<")) {
        std::size_t end = text_.find('>', at_);
        if (end == std::string_view::npos) return fail();
        at_ = end + 1;
      } else if (!take("?:") && take("?")) {
        return flags(depth);
      }
      Language inner = alternation(depth + 1);
      if (!take(")")) return fail();
      return inner;
    }
    if (take("[")) return of_class(bracket());
    if (take("\\")) return escape();
    char c = peek();
    ++at_;
    if (c == '^' || c == '$') return {};
    if (c == '.') {
      // Alone it mostly is a dot that was not escaped, and reads best as one.
      bool is_quantified = !ended() && std::string_view("*+?{").contains(peek());
      Language any = of_class(range(' ', '~'));
      if (!is_quantified) any.samples = {"."};
      return any;
    }
    if (c == '*' || c == '+' || c == '?') return fail();
    return Language{.count = 1, .samples = {std::string(1, c)}};
  }

  // "(?i)" and "(?i:...)": samples of the unchanged pattern still match. The count is not known any more.
  Language flags(int depth) {
    while (!ended() && (peek() == '-' || (peek() >= 'a' && peek() <= 'z') || peek() == 'U')) {
      ++at_;
    }
    if (take(")")) return Language{.count = infinite, .samples = {""}};
    if (!take(":")) return fail();
    Language inner = alternation(depth + 1);
    if (!take(")")) return fail();
    inner.count = infinite;
    return inner;
  }

  // The set of an escape such as \d, or the one character it stands for.
  std::optional<Ascii> escaped_set() {
    if (ended()) return std::nullopt;
    char c = peek();
    ++at_;
    switch (c) {
      case 'd':
        return digits;
      case 'D':
        return ~digits;
      case 'w':
        return words;
      case 'W':
        return ~words;
      case 's':
        return blanks;
      case 'S':
        return ~blanks;
      case 'n':
        return range('\n', '\n');
      case 't':
        return range('\t', '\t');
      case 'r':
        return range('\r', '\r');
      case 'f':
        return range('\f', '\f');
      case 'v':
        return range('\v', '\v');
      default:
        break;
    }
    bool punctuation = c > ' ' && c < 127 && !words.test(static_cast<std::size_t>(c));
    if (!punctuation) return std::nullopt;
    return range(c, c);
  }

  Language escape() {
    if (take("A") || take("z") || take("b") || take("B")) return {};
    if (take("Q")) {
      std::size_t end = text_.find("\\E", at_);
      std::string literal(text_.substr(at_, end == std::string_view::npos ? end : end - at_));
      at_ = end == std::string_view::npos ? text_.size() : end + 2;
      return Language{.count = 1, .samples = {std::move(literal)}};
    }
    std::optional<Ascii> set = escaped_set();
    if (!set) return fail();
    return of_class(*set);
  }

  Ascii bracket() {
    Ascii set;
    bool negated = take("^");
    bool first = true;
    while (!ended() && (first || peek() != ']')) {
      first = false;
      if (text_.substr(at_).starts_with("[:")) {
        set |= named_class();
        if (failed_) return set;
        continue;
      }
      Ascii low = class_character();
      if (failed_) return set;
      bool is_range = low.count() == 1 && at_ + 1 < text_.size() && peek() == '-' && text_[at_ + 1] != ']';
      if (!is_range) {
        set |= low;
        continue;
      }
      ++at_;
      Ascii high = class_character();
      if (failed_ || high.count() != 1) {
        failed_ = true;
        return set;
      }
      set |= range(static_cast<char>(low._Find_first()), static_cast<char>(high._Find_first()));
    }
    if (!take("]")) failed_ = true;
    return negated ? ~set : set;
  }

  Ascii class_character() {
    if (ended()) {
      failed_ = true;
      return {};
    }
    if (take("\\")) {
      std::optional<Ascii> set = escaped_set();
      if (!set) failed_ = true;
      return set.value_or(Ascii());
    }
    char c = peek();
    ++at_;
    if (static_cast<unsigned char>(c) >= 128) failed_ = true;
    return failed_ ? Ascii() : range(c, c);
  }

  Ascii named_class() {
    struct Named {
      std::string_view name;
      Ascii set;
    };
    static const Named classes[] = {
        {"[:alpha:]", letters},          {"[:digit:]", digits},
        {"[:alnum:]", letters | digits}, {"[:word:]", words},
        {"[:lower:]", range('a', 'z')},  {"[:upper:]", range('A', 'Z')},
        {"[:space:]", blanks},           {"[:xdigit:]", digits | range('a', 'f') | range('A', 'F')},
    };
    for (const Named& named : classes) {
      if (take(named.name)) return named.set;
    }
    failed_ = true;
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace

std::optional<PatternOutline> outline_pattern(std::string_view pattern) {
  return Sketch(pattern).outline();
}

}  // namespace hive::config
