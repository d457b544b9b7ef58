#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::config {

/// Where a server listens: "host:port", "[v6]:port" or ":port" for every address. Port 0 lets the system choose.
struct ListenAddress {
  std::string host;  ///< without brackets; empty: every address
  std::uint16_t port = 0;
};

Result<ListenAddress> parse_listen_address(std::string_view text);

/// Whether the host is an IP literal of the loopback (127.0.0.0/8, ::1). A name is not: what it resolves to may change.
bool is_loopback_literal(std::string_view host);

}  // namespace hive::config
