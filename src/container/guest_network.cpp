#include "container/guest_network.h"

#include <algorithm>

#include "base/strings.h"
#include "priv/ipv4.h"

namespace hive::container {

std::string GuestNetwork::mac() const {
  // 02: locally administered, unicast (IEEE 802).
  return fmt::format("02:48:{:02x}:{:02x}:{:02x}:{:02x}", address >> 24, (address >> 16) & 255, (address >> 8) & 255,
                     address & 255);
}

std::string GuestNetwork::network_file() const {
  return fmt::format(
      "# Made at every start of the container.\n"
      "[Match]\nName=host0\n\n"
      "[Link]\nMACAddress={}\n\n"
      "[Network]\nAddress={}/{}\nGateway={}\nDNS={}\nLinkLocalAddressing=no\nIPv6AcceptRA=no\nDHCP=no\nLLDP=no\n",
      mac(), priv::format_ipv4(address), prefix_length, priv::format_ipv4(gateway), priv::format_ipv4(gateway));
}

std::string GuestNetwork::resolver_file() const {
  return fmt::format("nameserver {}\n", priv::format_ipv4(gateway));
}

Result<std::optional<GuestNetwork>> guest_network(const Conf& conf) {
  std::string_view bridge = conf.get("HOST_BRIDGE");
  std::string_view gateway = conf.get("HOST_ADDRESS");
  std::string_view local = conf.get("LOCAL_ADDRESS");
  if (bridge.empty() || (gateway.empty() && local.empty())) return std::nullopt;
  auto not_in = [&conf](std::string_view key, std::string_view text) {
    return fail(ErrorCode::invalid_argument, "{}: {}: {} is not an IPv4 address", conf.path(), key, quote(text));
  };
  if (gateway.empty() || local.empty()) {
    return fail(ErrorCode::invalid_argument, "{}: HOST_ADDRESS and LOCAL_ADDRESS go together", conf.path());
  }
  GuestNetwork network;
  network.bridge = bridge;
  auto gateway_address = priv::parse_ipv4(gateway);
  if (!gateway_address) return not_in("HOST_ADDRESS", gateway);
  const size_t slash = std::min(local.find('/'), local.size());
  auto address = priv::parse_ipv4(local.substr(0, slash));
  if (!address) return not_in("LOCAL_ADDRESS", local);
  network.gateway = *gateway_address;
  network.address = *address;
  if (slash < local.size()) {
    auto length = parse_int64(local.substr(slash + 1));
    if (!length || *length < 8 || *length > 30) {
      return fail(ErrorCode::invalid_argument, "{}: LOCAL_ADDRESS: the prefix length is a number from 8 to 30",
                  conf.path());
    }
    network.prefix_length = static_cast<int>(*length);
  }
  priv::Ipv4Network net{.address = 0, .prefix_length = network.prefix_length};
  net.address = network.gateway & net.mask();
  if (!net.holds_host(network.address) || network.address == network.gateway) {
    return fail(ErrorCode::invalid_argument, "{}: LOCAL_ADDRESS {} is no free host address in the network of {}",
                conf.path(), local, gateway);
  }
  return network;
}

}  // namespace hive::container
