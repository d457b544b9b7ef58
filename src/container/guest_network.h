#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "container/conf.h"

namespace hive::container {

/// An IPv4 address in host byte order.
using Ipv4 = std::uint32_t;

Result<Ipv4> parse_ipv4(std::string_view text);
std::string to_string(Ipv4 address);

/// The place of a container on its bridge, from HOST_BRIDGE, HOST_ADDRESS and LOCAL_ADDRESS.
struct GuestNetwork {
  std::string bridge;
  Ipv4 gateway = 0;
  Ipv4 address = 0;
  unsigned prefix_length = 24;

  /// A locally administered MAC that follows from the address, so that the firewall can pin it before the container
  /// runs.
  [[nodiscard]] std::string mac() const;
  /// A systemd.network(5) file for the guest's end of the link.
  [[nodiscard]] std::string network_file() const;
  /// The guest's resolv.conf: the gateway is its resolver.
  [[nodiscard]] std::string resolver_file() const;
};

/// Nullopt when the file names no bridge, or no addresses for it: then the guest's own configuration rules, and the
/// firewall lets it say nothing. Failure: half of it, not an address, not one network.
Result<std::optional<GuestNetwork>> guest_network(const Conf& conf);

/// Whether this is a network interface's name: 1 to 15 characters of A-Z a-z 0-9 _ . -, not "." or "..".
bool is_interface_name(std::string_view name);

}  // namespace hive::container
