#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::container {

/// A container's configuration: what stands in /etc/nixos-containers/NAME.conf, as systemd.exec(5) reads an
/// EnvironmentFile=, without its laxities: a line that systemd would skip or mend is an error here.
class Conf {
 public:
  /// `path` is for messages.
  static Result<Conf> parse(std::string_view text, const std::string& path);
  /// Refuses a file that somebody else than root can write. Follows links: on NixOS the file lies in the store.
  static Result<Conf> load(const std::string& path);

  /// The value of a key, empty if it is not there: an empty value switches a key off.
  [[nodiscard]] std::string_view get(std::string_view key) const;
  /// Whether a key is 1. Failure names a value that is neither 1, 0 nor empty.
  [[nodiscard]] Result<bool> flag(std::string_view key) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
  std::string path_;
};

}  // namespace hive::container
