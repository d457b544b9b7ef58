#include "config/network.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <arpa/inet.h>

#include "base/strings.h"

namespace hive::config {

namespace {

constexpr std::array<std::uint8_t, 12> mapped_prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

struct Address {
  std::array<std::uint8_t, 16> bytes{};
  std::size_t size = 0;  ///< 4 or 16

  [[nodiscard]] std::string to_string() const {
    char text[INET6_ADDRSTRLEN] = {};
    const char* shown = ::inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes.data(), text, sizeof text);
    return shown == nullptr ? "" : shown;
  }
};

std::optional<Address> parse_address(const std::string& text) {
  Address address;
  if (::inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) {
    address.size = 4;
    return address;
  }
  if (::inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) {
    address.size = 16;
    return address;
  }
  return std::nullopt;
}

/// The address with every bit behind the prefix cleared.
Address network_of(Address address, std::size_t prefix) {
  for (std::size_t bit = prefix; bit < address.size * 8; ++bit) {
    address.bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80U >> (bit % 8)));
  }
  return address;
}

}  // namespace

Result<std::string> normalize_network(std::string_view text) {
  std::size_t slash = text.find('/');
  std::string host(text.substr(0, slash));
  std::optional<Address> address = host.contains('\0') ? std::nullopt : parse_address(host);
  if (!address) {
    return fail(ErrorCode::invalid_argument,
                "{} is not an IP address or network, as in 10.0.0.5, 10.0.0.0/8 or fd00::/8",
                quote(text.substr(0, 64)));
  }
  std::size_t bits = address->size * 8;
  std::size_t prefix = bits;
  if (slash != std::string_view::npos) {
    std::string_view digits = text.substr(slash + 1);
    std::optional<std::int64_t> number = parse_int64(digits);
    bool is_plain = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
    if (!number || !is_plain || *number > static_cast<std::int64_t>(bits)) {
      return fail(ErrorCode::invalid_argument, "{}: after \"/\" a number from 1 to {} must follow",
                  quote(text.substr(0, 64)), bits);
    }
    prefix = static_cast<std::size_t>(*number);
  }
  bool is_mapped = address->size == 16 && prefix >= 96 &&
                   std::ranges::equal(mapped_prefix, std::span(address->bytes).first(mapped_prefix.size()));
  if (is_mapped) {
    std::ranges::copy(std::span(address->bytes).subspan(12, 4), address->bytes.begin());
    std::ranges::fill(std::span(address->bytes).subspan(4), std::uint8_t{0});
    address->size = 4;
    prefix -= 96;
    bits = 32;
  }
  if (prefix == 0) {
    return fail(ErrorCode::invalid_argument, "{} holds every address; name the addresses that are meant",
                quote(text.substr(0, 64)));
  }
  Address network = network_of(*address, prefix);
  if (network.bytes != address->bytes) {
    return fail(ErrorCode::invalid_argument, "{} has bits behind its prefix; write {}/{} or {}",
                quote(text.substr(0, 64)), network.to_string(), prefix, address->to_string());
  }
  return prefix == bits ? address->to_string() : fmt::format("{}/{}", address->to_string(), prefix);
}

}  // namespace hive::config
