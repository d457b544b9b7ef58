#include "container/guest_network.h"

#include <algorithm>

#include <arpa/inet.h>

#include "base/strings.h"

namespace hive::container {

Result<Ipv4> parse_ipv4(std::string_view text) {
  in_addr address{};
  if (::inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) {
    return fail(ErrorCode::invalid_argument, "{} is not an IPv4 address", quote(text.substr(0, 64)));
  }
  return ntohl(address.s_addr);
}

std::string to_string(Ipv4 address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 255, (address >> 8) & 255, address & 255);
}

bool is_interface_name(std::string_view name) {
  return !name.empty() && name.size() <= 15 && name != "." && name != ".." && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  });
}

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
      mac(), to_string(address), prefix_length, to_string(gateway), to_string(gateway));
}

std::string GuestNetwork::resolver_file() const {
  return fmt::format("nameserver {}\n", to_string(gateway));
}

Result<std::optional<GuestNetwork>> guest_network(const Conf& conf) {
  std::string_view bridge = conf.get("HOST_BRIDGE");
  std::string_view gateway = conf.get("HOST_ADDRESS");
  std::string_view local = conf.get("LOCAL_ADDRESS");
  if (bridge.empty() || (gateway.empty() && local.empty())) return std::nullopt;
  auto in_key = [&](std::string_view key) { return fmt::format("{}: {}", conf.path(), key); };
  if (gateway.empty() || local.empty()) {
    return fail(ErrorCode::invalid_argument, "{}: HOST_ADDRESS and LOCAL_ADDRESS go together", conf.path());
  }
  GuestNetwork network;
  network.bridge = bridge;
  network.gateway = TRY_CONTEXT(in_key("HOST_ADDRESS"), parse_ipv4(gateway));
  size_t slash = local.find('/');
  network.address = TRY_CONTEXT(in_key("LOCAL_ADDRESS"), parse_ipv4(local.substr(0, slash)));
  if (slash != std::string_view::npos) {
    auto length = parse_int64(local.substr(slash + 1));
    if (!length || *length < 8 || *length > 30) {
      return fail(ErrorCode::invalid_argument, "{}: the prefix length is a number from 8 to 30",
                  in_key("LOCAL_ADDRESS"));
    }
    network.prefix_length = static_cast<unsigned>(*length);
  }
  const Ipv4 mask = ~Ipv4{0} << (32 - network.prefix_length);
  const Ipv4 host_part = network.address & ~mask;
  if ((network.gateway & mask) != (network.address & mask) || network.gateway == network.address || host_part == 0 ||
      host_part == ~mask) {
    return fail(ErrorCode::invalid_argument, "{}: LOCAL_ADDRESS {} is no free host address in the network of {}",
                conf.path(), local, gateway);
  }
  return network;
}

}  // namespace hive::container
