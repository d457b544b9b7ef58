#pragma once

#include <string_view>

#include "gateway/calls/call.h"
#include "gateway/surfaces/rest/services.h"

namespace hive::rest {

/// Fills in who is to answer a call to the tool `name`: the agent in front of "__", or the upstream server that offers
/// a tool under this name. An agent that is known keeps its name.
void address_call(const Context& context, std::string_view name, calls::Call& call);

}  // namespace hive::rest
