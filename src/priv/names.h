#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

/// The names that a caller may send. Everything else is derived from them.
namespace hive::priv {

/// An agent's container: "h-", then 1 to 9 characters of a-z 0-9 -, neither beginning nor ending with "-". Eleven bytes
/// at most, because the name becomes part of an interface name. Containers of services have no "h-" and stay out of
/// reach.
Result<void> check_agent_container(std::string_view name);

/// Any container that the unit container@ may start: 1 to 64 characters of A-Z a-z 0-9 _ -, not beginning with "-".
Result<void> check_any_container(std::string_view name);

/// Whether `name` is an agent's container.
[[nodiscard]] bool is_agent_container(std::string_view name);

/// "h-iris" to "iris"; the name must have passed check_agent_container().
std::string_view agent_of(std::string_view container);

/// A network interface: 1 to 15 characters of A-Z a-z 0-9 _ . -, not "." or "..".
Result<void> check_interface(std::string_view name);

/// An absolute path of A-Z a-z 0-9 . _ / - alone, at most 255 bytes, without "." or ".." as a part, without "//" and
/// without a final "/". No quoting question can arise from such a path: not in an environment file, not where
/// EXTRA_NSPAWN_FLAGS is split into words, not in nspawn's own parsing.
Result<void> check_plain_path(std::string_view path);

/// Whether `path` is `folder` or lies under it; both are plain paths.
[[nodiscard]] bool is_at_or_below(std::string_view path, std::string_view folder);

}  // namespace hive::priv
