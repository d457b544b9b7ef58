#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "container/conf.h"

namespace hive::container {

/// The place of a container on its bridge, from HOST_BRIDGE, HOST_ADDRESS and LOCAL_ADDRESS.
struct GuestNetwork {
  std::string bridge;
  std::uint32_t gateway = 0;  ///< host byte order
  std::uint32_t address = 0;
  int prefix_length = 24;

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

}  // namespace hive::container
