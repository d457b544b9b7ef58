#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hive::priv {

/// An IPv4 network such as 10.42.0.0/24, of /8 to /30.
struct Ipv4Network {
  std::uint32_t address = 0;  ///< host byte order, without bits behind the prefix
  int prefix_length = 0;

  [[nodiscard]] std::uint32_t mask() const { return ~std::uint32_t{0} << (32 - prefix_length); }
  [[nodiscard]] std::uint32_t broadcast() const { return address | ~mask(); }
  /// Whether a machine of the network can have the address: neither the network's own nor the broadcast address.
  [[nodiscard]] bool holds_host(std::uint32_t host) const {
    return (host & mask()) == address && host != address && host != broadcast();
  }
  bool operator==(const Ipv4Network&) const = default;
};

/// Dotted decimal and nothing else, in host byte order.
std::optional<std::uint32_t> parse_ipv4(std::string_view text);

/// "10.42.0.0/24"; nullopt also for bits behind the prefix.
std::optional<Ipv4Network> parse_ipv4_network(std::string_view text);

std::string format_ipv4(std::uint32_t address);

}  // namespace hive::priv
