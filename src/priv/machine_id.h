#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "priv/site.h"

/// A container whose root is thrown away keeps its machine id on the host: in a file that only root reads, in its
/// template and in --uuid=.
namespace hive::priv {

/// 32 lower-case hexadecimal digits, not all of them 0.
[[nodiscard]] bool is_machine_id(std::string_view text);

/// The id of a container: the one on record; else the one that its root has, if it is valid and nobody else's; else a
/// new one. Records it.
Result<std::string> machine_id_of(const Site& site, const std::string& container);

/// Makes the root of a container have this id, making the root and its etc/ where they are missing. A link in the
/// place of the file or of etc/ is permission_denied and stays.
Result<void> write_template_id(const Site& site, const std::string& container, const std::string& id);

/// What stands in etc/machine-id of a root; empty if it is missing or isn't a valid id.
Result<std::string> template_id(int roots, const std::string& container);

}  // namespace hive::priv
