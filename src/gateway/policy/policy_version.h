#pragma once

#include <string>

#include "config/gateway_config.h"

namespace hive::policy {

/// Hexadecimal SHA-256 of all that decides about calls: credentials by the names of their principals, roles, scopes,
/// tiers, approvals, rate limits, and the tiers of the built-in tools. Every field has its length before it and every
/// list its number of elements, so that no two policies share a version because text moved from one field to the next.
std::string policy_version(const config::GatewayConfig& config);

}  // namespace hive::policy
