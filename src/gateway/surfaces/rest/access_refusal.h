#pragma once

#include <string>
#include <string_view>

#include "gateway/surfaces/rest/route.h"
#include "gateway/surfaces/rest/services.h"

namespace hive::rest {

/// Answers 403 with `reason` as its code, and records that the caller was refused `what`; many such records of one
/// caller are summed up.
void refuse_access(const Context& context, std::string_view reason, std::string what, std::string message);

/// Whether the reach of the caller's credential admits it to a route, once its role does; answers the request itself if
/// not.
bool check_reach(const Context& context, const Route& route);

}  // namespace hive::rest
