#pragma once

#include <string>
#include <vector>

#include "config/gateway_config.h"

namespace hive::config {

/// What is wrong with the files that a gateway's configuration names. One line each, beginning with the
/// configuration's path and the field. Secrets never stand in them.
struct GatewayFindings {
  std::vector<std::string> errors;    ///< the gateway would not start
  std::vector<std::string> warnings;  ///< it would, and probably not as meant
};

/// Looks at the files that the gateway reads and the folders that it writes to, as the user who asks, and changes
/// nothing. Blocks on the file system.
GatewayFindings check_gateway_files(const GatewayConfig& config);

}  // namespace hive::config
