#include "net/ssh/sockets.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/strings.h"

namespace hive::net::ssh {

namespace {

/// Thousands of agents may dial in the same second after an outage; they wait here instead of being dropped.
constexpr int backlog = 4096;

void set_option(int fd, int level, int name, int value) {
  // Each of these is an improvement, not a condition: a kernel without it still carries the connection.
  (void)::setsockopt(fd, level, name, &value, sizeof(value));
}

Result<ListenSocket> listen_at(const addrinfo& info, std::string_view what) {
  UniqueFd fd(::socket(info.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return std::unexpected(system_error(errno, what));
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (info.ai_family == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(fd.get(), info.ai_addr, info.ai_addrlen) != 0 || ::listen(fd.get(), backlog) != 0) {
    return std::unexpected(system_error(errno, what));
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return std::unexpected(system_error(errno, what));
  }
  return ListenSocket{std::move(fd), describe_address(bound).port};
}

}  // namespace

SocketAddress describe_address(const sockaddr_storage& address) {
  SocketAddress result;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    result.address = result.source = text.data();
    result.port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    result.port = ntohs(v6.sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      ::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text.data(), text.size());
      result.address = result.source = text.data();
    } else {
      ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
      result.address = text.data();
      in6_addr prefix = v6.sin6_addr;
      std::memset(&prefix.s6_addr[8], 0, 8);
      ::inet_ntop(AF_INET6, &prefix, text.data(), text.size());
      result.source = std::string(text.data()) + "/64";
    }
  }
  return result;
}

Result<HostAndPort> parse_listen_address(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument, "listen address {}: {}; write HOST:PORT, :PORT or [IPV6]:PORT",
                quote(text), why);
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("the port is missing");
  std::string_view host = text.substr(0, colon);
  const auto port = parse_int64(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) return wrong("the port is not a number from 0 to 65535");
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (host.empty()) return wrong("there is no address between the brackets");
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return wrong("an IPv6 address needs brackets");
  }
  if (host.find('\0') != std::string_view::npos) return wrong("it contains a zero byte");
  return HostAndPort{std::string(host), static_cast<std::uint16_t>(*port)};
}

Result<ListenSocket> listen_on(const HostAndPort& where) {
  const std::string port = std::to_string(where.port);
  const std::string what = fmt::format("listen on {}:{}", where.host.empty() ? "*" : where.host, port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(where.host.empty() ? nullptr : where.host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) return fail(ErrorCode::not_found, "{}: {}", what, ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  // Without a host the IPv6 wildcard comes first, as it takes IPv4 connections too.
  Result<ListenSocket> last = fail(ErrorCode::not_found, "{}: the host has no address", what);
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
      if (info->ai_family != family && where.host.empty()) continue;
      last = listen_at(*info, what);
      if (last) return last;
    }
  }
  return last;
}

void configure_connection(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 15);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 120'000);
}

void limit_segments(int fd, int bytes) {
  set_option(fd, IPPROTO_TCP, TCP_MAXSEG, bytes);
}

}  // namespace hive::net::ssh
