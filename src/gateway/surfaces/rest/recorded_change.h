#pragma once

#include <string>

#include "gateway/surfaces/rest/services.h"

namespace hive::rest {

/// What cannot be recorded is not changed, as for calls of tier admin. False when the audit log cannot take the entry;
/// then the request has been answered.
bool can_be_recorded(const Context& context);

/// The entry of a change that the caller made, as a success.
audit::Record change_entry(const Context& context, std::string action, std::string agent);

}  // namespace hive::rest
