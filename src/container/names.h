#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::container {

/// What the names of agents' containers begin with.
inline constexpr std::string_view agent_prefix = "h-";

/// Whether `name` can be a container: 1 to 11 characters of A-Z a-z 0-9 _ -, none of them first that looks like an
/// option. The limit is that of a network interface's name behind "vb-".
Result<void> check_container_name(std::string_view name);

/// Whether `id` can be an agent with a container of its own: 1 to 9 characters of a-z 0-9 -, a letter or digit first
/// and last. The same rule as hive-priv's.
Result<void> check_container_agent(std::string_view id);

/// The name of an agent's container, from the agent's id or that name itself; hive-container takes both.
Result<std::string> container_of(std::string_view id_or_name);

/// The agent of a container: "iris" for "h-iris". The name must have been checked.
std::string_view agent_of(std::string_view name);

/// The host's end of the container's network: "vb-h-iris".
std::string port_of(std::string_view name);

}  // namespace hive::container
