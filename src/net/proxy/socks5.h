#pragma once

#include "net/proxy/dialogue.h"

namespace hive::net::proxy {

/// SOCKS 5 (RFC 1928): CONNECT without authentication, or with user and password (RFC 1929) when there are any. The
/// same for socks5 and socks5h: who looks names up has been decided by what `host` is.
Result<std::unique_ptr<Dialogue>> begin_socks5(const config::ProxyAddress& proxy, std::string_view host,
                                               std::uint16_t port);

}  // namespace hive::net::proxy
