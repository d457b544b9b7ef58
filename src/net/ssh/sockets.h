#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

struct sockaddr_storage;

namespace hive::net::ssh {

/// An address and port as people write them.
struct SocketAddress {
  std::string address;  ///< IPv4-mapped IPv6 written as IPv4
  std::uint16_t port = 0;
  /// What counts as one source of connections: the IPv4 address, or the /64 of an IPv6 address, which is the least that
  /// a customer gets.
  std::string source;
};
SocketAddress describe_address(const sockaddr_storage& address);

struct HostAndPort {
  std::string host;  ///< empty: every address
  std::uint16_t port = 0;
};
/// "HOST:PORT", ":PORT", "[::1]:0". The error names what is wrong with `text`.
Result<HostAndPort> parse_listen_address(std::string_view text);

/// A listening TCP socket, non-blocking and close-on-exec, and the port that it got. Without a host it takes IPv6 and
/// IPv4. Looks the host up, so it may block.
struct ListenSocket {
  UniqueFd fd;
  std::uint16_t port = 0;
};
Result<ListenSocket> listen_on(const HostAndPort& where);

/// No delay for small packets, and a dead peer is noticed by the kernel within two minutes, also when data waits.
void configure_connection(int fd);
/// Before the connection: neither side sends larger TCP segments than this (RFC 9293 section 3.7.1).
void limit_segments(int fd, int bytes);

}  // namespace hive::net::ssh
