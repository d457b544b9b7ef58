#include "priv/conf_file.h"

#include <algorithm>

#include "base/strings.h"

namespace hive::priv {

namespace {

constexpr std::string_view flags_key = "EXTRA_NSPAWN_FLAGS";
constexpr std::string_view blanks = " \t\n\r";
// What a backslash protects inside double quotes; before any other character it stands for itself.
constexpr std::string_view escapable = "\"\\`$";

bool is_blank(char c) {
  return blanks.find(c) != std::string_view::npos;
}

bool is_key(std::string_view key) {
  if (key.empty() || (key[0] >= '0' && key[0] <= '9')) return false;
  return std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_line_end(char c) {
  return c == '\n' || c == '\r';
}

// Reads the value of one assignment, state by state as systemd does (parse_env_file, systemd 252); `at` stands behind
// the "=" and ends behind the line end. Quotes count at the beginning and behind other quotes alone; inside an unquoted
// value they stand for themselves.
class ValueReader {
 public:
  ValueReader(std::string_view text, size_t& at) : text_(text), at_(at) {}

  Result<std::string> read() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (is_line_end(c)) {
        ++at_;
        return value_;
      }
      if (c == '\'' || c == '"') {
        ++at_;
        TRY(read_quoted(c));
      } else if (is_blank(c)) {
        ++at_;
      } else {
        return read_unquoted();
      }
    }
    return value_;
  }

 private:
  Result<std::string> read_unquoted() {
    size_t keep = value_.size();  // blanks at the end are dropped
    for (; at_ < text_.size() && !is_line_end(text_[at_]); ++at_) {
      char c = text_[at_];
      if (c == '\\') {
        if (++at_ >= text_.size()) return fail(ErrorCode::corrupt, "a backslash at the end of the file");
        c = text_[at_];
        if (is_line_end(c)) {
          if (at_ + 1 >= text_.size()) return fail(ErrorCode::corrupt, "a backslash at the end of the file");
        } else {
          value_ += c;
        }
        keep = value_.size();
        continue;
      }
      value_ += c;
      if (!is_blank(c)) keep = value_.size();
    }
    if (at_ < text_.size()) ++at_;
    value_.resize(keep);
    return value_;
  }

  Result<void> read_quoted(char quote) {
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == quote) {
        ++at_;
        return {};
      }
      if (quote == '"' && c == '\\' && at_ + 1 < text_.size()) {
        char next = text_[++at_];
        if (next == '\n') continue;
        if (escapable.find(next) == std::string_view::npos) value_ += '\\';
        value_ += next;
      } else {
        value_ += c;
      }
    }
    return fail(ErrorCode::corrupt, "a quote without an end");
  }

  std::string_view text_;
  size_t& at_;
  std::string value_;
};

std::string quoted(std::string_view value) {
  std::string out = "\"";
  for (char c : value) {
    if (escapable.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace

Result<ConfFile> ConfFile::parse(std::string_view text) {
  if (text.size() > max_bytes) return fail(ErrorCode::resource_exhausted, "larger than {} bytes", max_bytes);
  if (text.find('\0') != std::string_view::npos) return fail(ErrorCode::corrupt, "holds a NUL byte");
  ConfFile conf;
  for (size_t at = 0; at < text.size();) {
    size_t first = text.find_first_not_of(blanks, at);
    // Empty lines are a piece of their own, so that they stay when the assignment behind them is replaced.
    size_t start = first == std::string_view::npos ? text.size() : text.find_last_of("\n\r", first) + 1;
    if (start > at) conf.pieces_.push_back({.raw = std::string(text.substr(at, start - at)), .key = {}, .value = {}});
    if (first == std::string_view::npos) break;
    auto at_line = [&] { return fmt::format("line {}", 1 + std::ranges::count(text.substr(0, first), '\n')); };
    Piece piece;
    if (text[first] == '#' || text[first] == ';') {
      size_t end = std::min(text.find_first_of("\n\r", first), text.size());
      // Some versions of systemd take the next line into such a comment, others do not.
      if (text[end - 1] == '\\') {
        return fail(ErrorCode::corrupt, "{}: a comment that ends in a backslash", at_line());
      }
      at = std::min(end + 1, text.size());
    } else {
      size_t stop = text.find_first_of("=\n\r", first);
      if (stop == std::string_view::npos || text[stop] != '=') {
        return fail(ErrorCode::corrupt, "{}: neither a comment nor KEY=VALUE", at_line());
      }
      piece.key = trim(text.substr(first, stop - first));
      if (!is_key(piece.key)) {
        return fail(ErrorCode::corrupt, "{}: {} is not the name of a variable", at_line(),
                    quote(std::string_view(piece.key).substr(0, 64)));
      }
      at = stop + 1;
      piece.value = TRY_CONTEXT(at_line(), ValueReader(text, at).read());
    }
    piece.raw = text.substr(start, at - start);
    conf.pieces_.push_back(std::move(piece));
  }
  return conf;
}

std::optional<std::string_view> ConfFile::value(std::string_view key) const {
  for (auto piece = pieces_.rbegin(); piece != pieces_.rend(); ++piece) {
    if (piece->key == key) return piece->value;
  }
  return std::nullopt;
}

std::vector<std::string_view> ConfFile::nspawn_flags() const {
  std::vector<std::string_view> words;
  std::string_view rest = value(flags_key).value_or("");
  while (true) {
    size_t start = rest.find_first_not_of(blanks);
    if (start == std::string_view::npos) return words;
    rest.remove_prefix(start);
    words.push_back(rest.substr(0, rest.find_first_of(blanks)));
    rest.remove_prefix(words.back().size());
  }
}

bool ConfFile::is_ephemeral() const {
  return std::ranges::any_of(nspawn_flags(), [](std::string_view word) {
    return word == "--ephemeral" || word == "-x" || word == "--ephemeral=yes";
  });
}

void ConfFile::set(std::string_view key, std::string_view value) {
  Piece piece{.raw = fmt::format("{}={}\n", key, quoted(value)), .key = std::string(key), .value = std::string(value)};
  auto first = std::ranges::find(pieces_, key, &Piece::key);
  if (first == pieces_.end()) {
    if (!pieces_.empty() && !pieces_.back().raw.ends_with('\n')) pieces_.back().raw += '\n';
    pieces_.push_back(std::move(piece));
    return;
  }
  *first = std::move(piece);
  pieces_.erase(std::remove_if(first + 1, pieces_.end(), [&](const Piece& other) { return other.key == key; }),
                pieces_.end());
}

void ConfFile::remove(std::string_view key) {
  std::erase_if(pieces_, [&](const Piece& piece) { return piece.key == key; });
}

std::vector<std::pair<std::string_view, std::string_view>> ConfFile::assignments() const {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  for (const Piece& piece : pieces_) {
    if (!piece.key.empty()) all.emplace_back(piece.key, piece.value);
  }
  return all;
}

std::string ConfFile::text() const {
  std::string text;
  for (const Piece& piece : pieces_)
    text += piece.raw;
  return text;
}

}  // namespace hive::priv
