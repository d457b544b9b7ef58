#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "container/layout.h"

namespace hive::container {

/// What container@.service does at a start, up to and without the last step: reads NAME.conf, gives the root a system,
/// makes the guest's network files and admits its port. Returns what nspawn is to be called with. Blocks.
Result<std::vector<std::string>> prepare_start(std::string_view name, const Layout& layout);

}  // namespace hive::container
