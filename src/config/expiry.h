#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace hive::config {

/// A moment as RFC 3339 writes it, in UTC and whole seconds: "2027-01-31T00:00:00Z". nullopt for anything else, also
/// for days that do not exist and years outside 1970 to 2200.
std::optional<WallTime> parse_utc_time(std::string_view text);

}  // namespace hive::config
