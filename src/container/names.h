#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

/// Names on the command line of hive-container. What a name may be is decided in priv/names.h.
namespace hive::container {

/// The name of an agent's container, from the agent's id or that name itself; hive-container takes both.
Result<std::string> container_of(std::string_view id_or_name);

/// The agent of a container: "iris" for "h-iris".
std::string_view agent_of(std::string_view name);

/// The host's end of the container's network, as nspawn names it: "vb-h-iris".
std::string port_of(std::string_view name);

}  // namespace hive::container
