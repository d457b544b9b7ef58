#pragma once

#include <set>
#include <span>
#include <string>

#include "config/gateway_config.h"
#include "config/key.h"

namespace hive::config {

/// A gateway configuration while it is read: the values, and what only the checks across keys need.
struct GatewayDraft : GatewayConfig {
  std::string oidc_issuer;
  std::string oidc_audience;
  bool has_oidc_role_map = false;
  bool names_tokens = false;  ///< perhaps wrongly, which has been reported then
  bool has_peers = false;
  bool has_cluster_secret = false;
  bool has_proxy_secret = false;
  std::string proxy_identity_header;
  std::string proxy_secret_header;
  std::set<std::string> upstream_names;
  Value auth_token_place;
  std::vector<Value> token_places;
};

/// The table of all keys of a gateway configuration.
std::span<const Key<GatewayDraft>> gateway_keys();

/// parse_gateway_config with the sources of secrets given; `on_disk` adds the checks of file modes.
Result<GatewayConfig> read_gateway_config(std::string_view text, const std::string& path, const SecretSources& sources,
                                          bool on_disk);

}  // namespace hive::config
