#pragma once

#include <string_view>

#include "base/result.h"

namespace hive::crypto {

/// Checks one pattern of a from="..." list: an address, an address with wildcards, or a CIDR block, each with an
/// optional "!" in front. Host names are refused: honouring them would need DNS, which whoever connects may control.
Result<void> check_address_pattern(std::string_view pattern);

}  // namespace hive::crypto
