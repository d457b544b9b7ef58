#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/secret.h"

namespace hive::config {

enum class ProxyScheme {
  http,     ///< HTTP CONNECT (RFC 9110 section 9.3.6); the proxy looks names up
  socks5,   ///< SOCKS 5 (RFC 1928); names are looked up here, the proxy sees addresses
  socks5h,  ///< SOCKS 5; the proxy looks names up
};

/// The proxy on the way out.
struct ProxyAddress {
  ProxyScheme scheme = ProxyScheme::http;
  std::string host;  ///< IPv6 without brackets
  std::uint16_t port = 0;
  std::string user;  ///< empty: no credentials
  Secret password;

  /// "http://host:port", never with credentials.
  [[nodiscard]] std::string to_string() const;
};

/// Splits and checks "http://[user[:password]@]host:port", and the same with socks5:// and socks5h://. User and
/// password may be percent-encoded; whether they can be sent is not checked, as the password may stand elsewhere. The
/// error does not show them.
Result<ProxyAddress> parse_proxy(std::string_view text);

/// Whether user and password can be sent in this scheme.
Result<void> check_proxy_credentials(const ProxyAddress& proxy);

}  // namespace hive::config
