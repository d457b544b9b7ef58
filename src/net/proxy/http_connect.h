#pragma once

#include "net/proxy/dialogue.h"

namespace hive::net::proxy {

/// CONNECT (RFC 9110 section 9.3.6) in HTTP/1.1, with Basic credentials (RFC 7617) when there are any.
Result<std::unique_ptr<Dialogue>> begin_http_connect(const config::ProxyAddress& proxy, std::string_view host,
                                                     std::uint16_t port);

}  // namespace hive::net::proxy
