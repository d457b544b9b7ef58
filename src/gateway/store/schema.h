#pragma once

#include "base/result.h"

namespace hive::store {

class Connection;

/// Brings the tables of a database up to the version that this program knows, one step after another, each in a
/// transaction. Refuses a database of a newer version.
Result<void> migrate(Connection& connection);

}  // namespace hive::store
