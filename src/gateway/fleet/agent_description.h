#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gateway/fleet/fleet.h"

namespace hive::fleet {

/// Reads the result of an agent's tools/list. Tools with a name that is not 1 to 64 characters of A-Z a-z 0-9 _ . - and
/// repeated names are left out; more than `max_tools` is an error.
Result<ToolList> parse_tools_list(std::string_view result, std::size_t max_tools);

/// Fills what get_system_info tells into `status`; leaves out what is not usable. All text and lists are bounded.
void describe(std::string_view result, AgentStatus& status);

}  // namespace hive::fleet
