#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "priv/conf_file.h"

namespace hive::container {

/// A container's configuration as the start of a container reads it: what stands in /etc/nixos-containers/NAME.conf,
/// with the name of the file for messages.
class Conf {
 public:
  /// `path` is for messages.
  static Result<Conf> parse(std::string_view text, const std::string& path);
  /// Refuses a file that somebody else than root can write. Follows links: on NixOS the file lies in the store.
  static Result<Conf> load(const std::string& path);

  /// The value of a key, empty if it is not there: an empty value switches a key off.
  [[nodiscard]] std::string_view get(std::string_view key) const { return file_.value(key).value_or(""); }
  /// Whether a key is 1. Failure names a value that is neither 1, 0 nor empty.
  [[nodiscard]] Result<bool> flag(std::string_view key) const;
  /// The words of EXTRA_NSPAWN_FLAGS.
  [[nodiscard]] std::vector<std::string_view> extra_flags() const { return file_.nspawn_flags(); }
  [[nodiscard]] bool is_ephemeral() const { return file_.is_ephemeral(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  priv::ConfFile file_;
  std::string path_;
};

}  // namespace hive::container
