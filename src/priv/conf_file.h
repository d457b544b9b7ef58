#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hive::priv {

/// The configuration of a container, /etc/nixos-containers/NAME.conf: an environment file in the grammar of
/// systemd.exec(5), EnvironmentFile=. Keys that are set are changed where they stand; everything else, comments
/// included, keeps its bytes and its place.
class ConfFile {
 public:
  static constexpr size_t max_bytes = size_t{256} << 10;

  /// Reads the text. Stricter than systemd where systemd guesses: a line that is no assignment, a quote without an end
  /// and a NUL are errors that name the line, because what would be written behind them could be read in another way.
  static Result<ConfFile> parse(std::string_view text);

  /// The value that systemd would use: the last one of the key.
  [[nodiscard]] std::optional<std::string_view> value(std::string_view key) const;

  /// The words of EXTRA_NSPAWN_FLAGS, split at blanks and line ends as the start of a container does it.
  [[nodiscard]] std::vector<std::string_view> nspawn_flags() const;

  /// Whether the flags ask for a root that is thrown away.
  [[nodiscard]] bool is_ephemeral() const;

  /// Sets a key: the first assignment gets the value, further ones go, a missing one is added at the end.
  void set(std::string_view key, std::string_view value);

  /// Removes every assignment of a key.
  void remove(std::string_view key);

  /// Keys and values in their order.
  [[nodiscard]] std::vector<std::pair<std::string_view, std::string_view>> assignments() const;

  [[nodiscard]] std::string text() const;

 private:
  struct Piece {
    std::string raw;    // with the line end, where there is one
    std::string key;    // empty for comments and empty lines
    std::string value;  // decoded
  };
  std::vector<Piece> pieces_;
};

}  // namespace hive::priv
