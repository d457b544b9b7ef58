#pragma once

#include <string>

#include "base/result.h"

namespace hive::config {

/// Refuses a private key that group or others can read or change; the message holds the chmod that mends it. A missing
/// file is not refused here.
Result<void> check_private_key_mode(const std::string& path);

/// Refuses a configuration that others may change, or read although it holds secrets.
Result<void> check_configuration_mode(const std::string& path, bool holds_secrets);

}  // namespace hive::config
