#include "config/address.h"

#include <algorithm>
#include <array>
#include <optional>

#include <arpa/inet.h>

#include "base/strings.h"
#include "config/agent_config.h"

namespace hive::config {

namespace {

struct HostPort {
  std::string_view host;
  std::optional<std::string_view> port;
  bool bracketed = false;
};

// RFC 1123 names, and "_" because names of containers have it. Other alphabets must be written in their ASCII form
// (xn--...), so that the name that is shown is the name that is looked up.
bool is_host_name(std::string_view host) {
  if (host.empty() || host.size() > 253) return false;
  for (std::string_view label : split(host.ends_with('.') ? host.substr(0, host.size() - 1) : host, '.')) {
    if (label.empty() || label.size() > 63 || label.starts_with('-') || label.ends_with('-')) return false;
    if (!std::ranges::all_of(label, [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
        })) {
      return false;
    }
  }
  return true;
}

// "fe80::1%eth0" keeps its zone: link-local addresses mean nothing without it.
bool is_ipv6_literal(std::string_view host) {
  in6_addr address{};
  std::string_view without_zone = host.substr(0, host.find('%'));
  bool zone_is_sound = without_zone.size() == host.size() ||
                       (without_zone.size() + 1 < host.size() && is_host_name(host.substr(without_zone.size() + 1)));
  return zone_is_sound && ::inet_pton(AF_INET6, std::string(without_zone).c_str(), &address) == 1;
}

bool is_ipv4_literal(std::string_view host) {
  in_addr address{};
  return ::inet_pton(AF_INET, std::string(host).c_str(), &address) == 1;
}

// A name of digits and dots alone is an IPv4 address with a mistake in it.
bool looks_like_ipv4(std::string_view host) {
  return std::ranges::all_of(host, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

std::unexpected<Error> bad_address(std::string_view text, std::string_view reason) {
  return fail(ErrorCode::invalid_argument, "{} is not an address: {}", quote(text.substr(0, 300)), reason);
}

Result<HostPort> split_host_port(std::string_view text) {
  if (text.contains("://")) return bad_address(text, "write host:port, without a scheme");
  if (text.starts_with('[')) {
    std::size_t end = text.find(']');
    if (end == std::string_view::npos) return bad_address(text, "the closing bracket is missing");
    HostPort result{.host = text.substr(1, end - 1), .port = std::nullopt, .bracketed = true};
    std::string_view rest = text.substr(end + 1);
    if (rest.empty()) return result;
    if (!rest.starts_with(':')) return bad_address(text, "after \"]\" only \":port\" may follow");
    result.port = rest.substr(1);
    return result;
  }
  std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return HostPort{.host = text, .port = std::nullopt};
  if (text.find(':') != colon) return bad_address(text, "an IPv6 address needs brackets, as in [::1]:2222");
  return HostPort{.host = text.substr(0, colon), .port = text.substr(colon + 1)};
}

Result<void> check_host(std::string_view text, const HostPort& parts) {
  if (parts.bracketed) {
    if (!is_ipv6_literal(parts.host)) return bad_address(text, "what stands in the brackets is not an IPv6 address");
    return {};
  }
  if (is_ipv4_literal(parts.host)) return {};
  if (looks_like_ipv4(parts.host)) return bad_address(text, "the host is not an IPv4 address");
  if (!is_host_name(parts.host)) return bad_address(text, "the host is not a name or an IP address");
  return {};
}

Result<std::uint16_t> parse_port(std::string_view text, std::string_view port, std::int64_t lowest) {
  std::optional<std::int64_t> number =
      port.size() <= 5 && !port.starts_with('-') && !port.starts_with('+') ? parse_int64(port) : std::nullopt;
  if (!number || *number < lowest || *number > 65535) {
    return bad_address(text, fmt::format("the port must be a number from {} to 65535", lowest));
  }
  return static_cast<std::uint16_t>(*number);
}

}  // namespace

std::string GatewayAddress::to_string() const {
  return host.contains(':') ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<GatewayAddress> parse_gateway_address(std::string_view text) {
  HostPort parts = TRY(split_host_port(text));
  if (parts.host.empty()) return bad_address(text, "the host is missing; write host:port");
  TRY(check_host(text, parts));
  GatewayAddress address;
  address.host = std::string(parts.host);
  if (parts.port) address.port = TRY(parse_port(text, *parts.port, 1));
  return address;
}

Result<ListenAddress> parse_listen_address(std::string_view text) {
  HostPort parts = TRY(split_host_port(text));
  if (!parts.port) return bad_address(text, "the port is missing; write host:port, or :port for every address");
  ListenAddress address;
  address.host = std::string(parts.host);
  if (!parts.host.empty() || parts.bracketed) TRY(check_host(text, parts));
  address.port = TRY(parse_port(text, *parts.port, 0));
  return address;
}

bool is_loopback_literal(std::string_view host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, std::string(host).c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return host == "::1";
}

}  // namespace hive::config
