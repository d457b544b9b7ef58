#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace hive::cli {

/// Standard input to its end. `what` names it in the failure that it is longer than `max_bytes`.
Result<std::string> read_standard_input(std::size_t max_bytes, std::string_view what);

}  // namespace hive::cli
