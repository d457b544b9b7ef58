#include "net/http/listen_address.h"

#include <cerrno>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/strings.h"

namespace hive::net::http {

namespace {

struct AddressListDeleter {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressListDeleter>;

bool is_loopback(const addrinfo& entry) {
  if (entry.ai_family == AF_INET) {
    const auto* address = reinterpret_cast<const sockaddr_in*>(entry.ai_addr);
    return (ntohl(address->sin_addr.s_addr) >> 24) == 127;
  }
  if (entry.ai_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(entry.ai_addr)->sin6_addr);
  }
  return false;
}

Result<UniqueFd> bind_and_listen(const addrinfo& entry, std::string_view address) {
  UniqueFd fd(::socket(entry.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!fd) return std::unexpected(system_error(errno, fmt::format("listen on {}", address)));
  int on = 1;
  int off = 0;
  bool prepared = ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
  if (entry.ai_family == AF_INET6) {
    bool is_any = IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(entry.ai_addr)->sin6_addr);
    prepared = prepared && ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, is_any ? &off : &on, sizeof on) == 0;
  }
  if (!prepared || ::bind(fd.get(), entry.ai_addr, entry.ai_addrlen) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    return std::unexpected(system_error(errno, fmt::format("listen on {}", address)));
  }
  return fd;
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "listen address {}: no port; write HOST:PORT, :PORT or [IPV6]:PORT",
                quote(text));
  }
  std::string_view host = text.substr(0, colon);
  std::optional<std::int64_t> port = parse_int64(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535 || text[colon + 1] == '+') {
    return fail(ErrorCode::invalid_argument, "listen address {}: the port is not a number from 0 to 65535",
                quote(text));
  }
  if (host.starts_with('[')) {
    if (!host.ends_with(']') || host.size() < 3) {
      return fail(ErrorCode::invalid_argument, "listen address {}: the bracket is not closed", quote(text));
    }
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "listen address {}: write an IPv6 address in brackets, as [::1]:PORT",
                quote(text));
  }
  return ListenAddress{std::string(host), static_cast<std::uint16_t>(*port)};
}

Result<UniqueFd> open_listener(std::string_view address, bool loopback_only) {
  ListenAddress parsed = TRY(parse_listen_address(address));
  if (loopback_only && parsed.host.empty()) {
    return fail(ErrorCode::invalid_argument,
                "listen address {}: only a loopback address may be used here, as 127.0.0.1:{}", quote(address),
                parsed.port);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  std::string port = std::to_string(parsed.port);
  const char* host = parsed.host.empty() ? "::" : parsed.host.c_str();
  addrinfo* raw = nullptr;
  if (int error = ::getaddrinfo(host, port.c_str(), &hints, &raw); error != 0) {
    return fail(ErrorCode::invalid_argument, "listen address {}: {}", quote(address), ::gai_strerror(error));
  }
  AddressList list(raw);
  if (loopback_only) {
    for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
      if (is_loopback(*entry)) continue;
      return fail(ErrorCode::invalid_argument,
                  "listen address {}: only a loopback address may be used here, as 127.0.0.1:{}", quote(address),
                  parsed.port);
    }
  }
  Result<UniqueFd> listener = bind_and_listen(*list, address);
  if (listener || !parsed.host.empty()) return listener;
  // No IPv6 on this machine.
  if (::getaddrinfo("0.0.0.0", port.c_str(), &hints, &raw) != 0) return listener;
  list.reset(raw);
  return bind_and_listen(*list, address);
}

}  // namespace hive::net::http
