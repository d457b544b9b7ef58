#pragma once

#include <string>
#include <string_view>

#include "gateway/surfaces/rest/services.h"

/// What OAuth clients are told about this gateway as a protected resource (RFC 9728).
namespace hive::rest {

inline constexpr std::string_view protected_resource_path = "/.well-known/oauth-protected-resource";

/// The URL by which the client reached this gateway, without a path; "" when it named no host. A proxy that ends TLS in
/// front of the gateway is known by its URL in allowed_origins. Only for requests whose Host was accepted.
std::string own_url(const Context& context);

/// Where the metadata of the MCP endpoint is; "" without an identity provider.
std::string resource_metadata_url(const Context& context);

}  // namespace hive::rest
