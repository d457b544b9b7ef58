#pragma once

#include <memory>
#include <string>

#include "gateway/surfaces/rest/route.h"
#include "gateway/surfaces/rest/services.h"

namespace hive::rest {

/// Finds out who is calling, and runs the route's handler if the route admits them; otherwise answers the request with
/// 401, 403 or 429, and records why. What an identity provider must decide about may take a while; then the handler
/// runs later, on the request's worker.
void admit(std::shared_ptr<Context> context, const Route& route);

/// Where a request comes from: behind trusted proxies the client's address, otherwise the connection's.
std::string client_address_of(const Context& context);

}  // namespace hive::rest
