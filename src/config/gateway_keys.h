#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/gateway_config.h"
#include "config/key.h"

namespace hive::config {

/// A gateway configuration while it is read: the values, and what only the checks across keys need.
struct GatewayDraft : GatewayConfig {
  bool names_credentials = false;  ///< any way to be known, perhaps a wrong one, which has been reported then
  bool has_peers = false;
  bool has_cluster_secret = false;
  std::vector<Value> upstream_places;  ///< of `upstreams`
  Value auth_token_place;
  std::vector<Value> token_places;         ///< of `tokens`
  std::vector<Value> scoped_token_places;  ///< of `scoped_tokens`
};

/// The table of all keys of a gateway configuration.
std::span<const Key<GatewayDraft>> gateway_keys();

/// parse_gateway_config with the sources of secrets given; `on_disk` adds the checks of file modes.
Result<GatewayConfig> read_gateway_config(std::string_view text, const std::string& path, const SecretSources& sources,
                                          bool on_disk);

}  // namespace hive::config
