#pragma once

#include <vector>

#include "config/gateway_keys.h"
#include "config/key_info.h"

namespace hive::config {

/// The MCP servers behind the gateway: readers of the two keys that name them.
void read_upstream_servers(Reader& reader, const Value& value, GatewayDraft& draft);
void read_external_mcp_servers(Reader& reader, const Value& value, GatewayDraft& draft);

/// What must hold across all of them: names and prefixes tell servers apart.
void check_upstreams(Reader& reader, const GatewayDraft& draft);

/// Appends the rows of their tables.
void append_upstream_keys(std::vector<PlacedKey>& keys);

}  // namespace hive::config
