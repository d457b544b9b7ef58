#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/secret.h"
#include "config/secret_reference.h"

namespace hive::config {

/// A value of a configuration file and the name under which messages speak of it ("allowed_commands[3].args_regex").
struct Value {
  std::string field;
  std::string_view raw;  ///< JSON text, inside the file's text
};

/// Reads typed values from a configuration file and collects every problem, so that one run shows all that must be
/// mended. A read that fails has already recorded why. Values of secrets never enter a message.
class Reader {
 public:
  /// `text` must outlive the reader.
  Reader(std::string_view text, std::string path, const SecretSources& sources);

  /// Checks size, grammar, depth and duplicate keys; nullopt after recording the problem.
  std::optional<Value> document();

  /// Records "path:line: field: message".
  void problem(const Value& at, std::string_view message);
  /// Records "path: message", for what has no place in the file because it is missing.
  void problem_with_file(std::string_view message);
  /// Records "path:line: unknown key ...", with the nearest of `known`.
  void unknown_key(const Value& at, std::string_view key, std::span<const std::string_view> known);
  void note_without_effect(std::string note) { without_effect_.push_back(std::move(note)); }

  std::optional<std::string> string(const Value& value);
  std::optional<std::string> non_empty_string(const Value& value);
  std::optional<std::int64_t> integer(const Value& value, std::int64_t min, std::int64_t max);
  std::optional<double> number(const Value& value, double min, double max);
  std::optional<bool> boolean(const Value& value);
  /// The elements of an array; empty after recording a problem.
  std::vector<Value> elements(const Value& value);
  /// The members of an object without comments and nulls, each with its key; empty after recording a problem.
  std::vector<std::pair<std::string, Value>> members(const Value& value);
  /// The same for an object whose keys are secrets: the fields are numbered, "tokens[1]", and hold no key.
  std::vector<std::pair<std::string, Value>> secret_members(const Value& value);
  std::vector<std::string> string_list(const Value& value);
  /// A path; a relative one is taken from the folder of the file.
  std::optional<std::string> path(const Value& value);
  /// A text that may stand elsewhere: a reference is resolved. It is no secret.
  std::optional<std::string> string_or_reference(const Value& value);
  /// A secret of several lines, which must stand elsewhere: only a reference is accepted. `remedy` says what to write.
  std::optional<Secret> referred_text(const Value& value, std::string_view remedy);
  /// A secret or a reference to one, resolved. Empty text is a problem.
  std::optional<Secret> secret(const Value& value);
  /// A bearer token, its hash ("sha256:" and 64 lower-case hexadecimal digits), or a reference to either.
  std::optional<Secret> token(const Value& value);
  /// The same for text that is already decoded (the keys of "tokens").
  std::optional<Secret> token_text(const Value& at, std::string_view text);
  /// One of `allowed`; the message lists them.
  std::optional<std::string> one_of(const Value& value, std::span<const std::string_view> allowed);

  [[nodiscard]] const std::string& file() const { return path_; }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  /// Whether a secret stands in the file itself and not as a reference.
  [[nodiscard]] bool holds_plain_secret() const { return holds_plain_secret_; }
  [[nodiscard]] bool ok() const { return problems_.empty(); }
  [[nodiscard]] std::vector<std::string> take_without_effect() { return std::move(without_effect_); }
  /// The line of every value that was handed out so far, by its field.
  [[nodiscard]] std::map<std::string, std::size_t, std::less<>> take_lines() { return std::move(lines_); }
  /// All problems, one a line.
  [[nodiscard]] Error error() const;

 private:
  enum class Naming { by_key, by_number };

  void record(std::string line);
  std::vector<std::pair<std::string, Value>> members(const Value& value, Naming naming);
  /// Resolves a reference; `is_plain` tells whether there was none.
  std::optional<std::string> reveal(const Value& at, std::string_view text, bool& is_plain);
  std::optional<std::string> wrong_type(const Value& value, std::string_view expected);
  [[nodiscard]] std::size_t line_of(std::string_view raw) const;

  std::string_view text_;
  std::string path_;
  std::string folder_;
  std::vector<std::size_t>
      line_starts_;  ///< offsets; a file may hold ten thousand tokens, so lines are not counted anew
  std::map<std::string, std::size_t, std::less<>> lines_;
  const SecretSources& sources_;
  std::vector<std::string> problems_;
  std::size_t problems_left_out_ = 0;
  std::vector<std::string> without_effect_;
  bool holds_plain_secret_ = false;
};

/// The digits of a token that stands as its hash; nullopt for one that is written out.
std::optional<std::string_view> token_hash(std::string_view token);

/// Whether a value says anything: not null, false, 0, "", [] or {}.
bool says_something(std::string_view raw);

}  // namespace hive::config
