#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "priv/layout.h"
#include "priv/settings.h"

namespace hive::priv {

/// What the check before a start found.
struct RootfsFindings {
  std::vector<std::string> refusals;  ///< each one is reason enough not to start
  std::vector<std::string> warnings;
};

/// Looks at the root of a container for what a guest could have planted to trick the start, which works in it as the
/// host's root: links and other things where a folder or a file is expected. Then at the sources of the binds that
/// hive-priv has written, and at whether a switch is under way. Reads only. An absent root is fine. The Error is for
/// what could not be looked at; a start must be refused then as well.
Result<RootfsFindings> check_rootfs(const Layout& layout, const Settings& settings, const std::string& container);

}  // namespace hive::priv
