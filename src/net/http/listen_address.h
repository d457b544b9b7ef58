#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace hive::net::http {

/// "HOST:PORT" taken apart: "127.0.0.1:8443", ":8443" (host empty: all addresses), "[::1]:0".
struct ListenAddress {
  std::string host;
  std::uint16_t port = 0;
};
Result<ListenAddress> parse_listen_address(std::string_view text);

/// A listening, non-blocking TCP socket. An empty host means IPv6 and IPv4 together, or IPv4 alone where there is no
/// IPv6. With `loopback_only` any other address is refused. Resolves names: may block. Errors name the address.
Result<UniqueFd> open_listener(std::string_view address, bool loopback_only);

}  // namespace hive::net::http
