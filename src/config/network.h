#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::config {

/// An IP address, or a network in CIDR notation, in the one form in which it is compared: IPv4 addresses that are
/// mapped into IPv6 become IPv4. Refuses networks that hold every address, and addresses with bits behind their prefix
/// (the message says what was probably meant).
Result<std::string> normalize_network(std::string_view text);

}  // namespace hive::config
