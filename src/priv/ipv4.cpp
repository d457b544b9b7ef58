#include "priv/ipv4.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace hive::priv {

namespace {

// inet_pton takes leading zeros on some systems; a text with two meanings is refused.
std::optional<std::uint32_t> parse_small_number(std::string_view text, std::uint32_t largest) {
  if (text.empty() || text.size() > 3 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  if (text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  auto number = static_cast<std::uint32_t>(parse_int64(text).value_or(-1));
  if (number > largest) return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::uint32_t> parse_ipv4(std::string_view text) {
  auto parts = split(text.substr(0, 16), '.');
  if (parts.size() != 4) return std::nullopt;
  std::uint32_t address = 0;
  for (std::string_view part : parts) {
    auto number = parse_small_number(part, 255);
    if (!number) return std::nullopt;
    address = address << 8 | *number;
  }
  return address;
}

std::optional<Ipv4Network> parse_ipv4_network(std::string_view text) {
  size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  auto address = parse_ipv4(text.substr(0, slash));
  auto length = parse_small_number(text.substr(slash + 1), 30);
  if (!address || !length || *length < 8) return std::nullopt;
  Ipv4Network network{.address = *address, .prefix_length = static_cast<int>(*length)};
  if ((network.address & ~network.mask()) != 0) return std::nullopt;
  return network;
}

std::string format_ipv4(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
}

}  // namespace hive::priv
