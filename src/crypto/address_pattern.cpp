#include "crypto/address_pattern.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <optional>

#include <arpa/inet.h>

#include "base/strings.h"
#include "crypto/ssh_key.h"
#include "crypto/wildcard.h"

namespace hive::crypto {

namespace {

struct Address {
  std::array<std::uint8_t, 16> bytes{};
  size_t size_bytes = 0;  // 4 or 16
};

struct Block {
  Address network;
  size_t prefix_bits = 0;
};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool is_mapped(const Address& address) {
  constexpr std::array<std::uint8_t, 12> prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return address.size_bytes == 16 && std::equal(prefix.begin(), prefix.end(), address.bytes.begin());
}

Address unmapped(const Address& address) {
  Address result;
  std::copy(address.bytes.begin() + 12, address.bytes.end(), result.bytes.begin());
  result.size_bytes = 4;
  return result;
}

std::optional<Address> parse_raw_address(std::string_view text) {
  if (text.size() > 64 || text.find('\0') != std::string_view::npos) return std::nullopt;
  std::string terminated(text);
  Address address;
  if (::inet_pton(AF_INET, terminated.c_str(), address.bytes.data()) == 1) {
    address.size_bytes = 4;
    return address;
  }
  if (::inet_pton(AF_INET6, terminated.c_str(), address.bytes.data()) == 1) {
    address.size_bytes = 16;
    return address;
  }
  return std::nullopt;
}

std::optional<Address> parse_address(std::string_view text) {
  // A zone names an interface of this machine and is no part of the address.
  auto address = parse_raw_address(text.substr(0, text.find('%')));
  if (address && is_mapped(*address)) return unmapped(*address);
  return address;
}

std::string to_text(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  ::inet_ntop(address.size_bytes == 4 ? AF_INET : AF_INET6, address.bytes.data(), buffer.data(), buffer.size());
  return buffer.data();
}

bool bit(const Address& address, size_t index) {
  return (address.bytes[index / 8] >> (7 - index % 8) & 1) != 0;
}

// nullopt also when host bits are set: nobody can tell whether the writer meant the host or the network.
std::optional<Block> parse_block(std::string_view text) {
  size_t slash = text.find('/');
  auto network = parse_raw_address(text.substr(0, slash));
  auto prefix = parse_int64(text.substr(slash + 1));
  if (!network || !prefix || *prefix < 0 || static_cast<size_t>(*prefix) > network->size_bytes * 8) return std::nullopt;
  Block block{*network, static_cast<size_t>(*prefix)};
  for (size_t i = block.prefix_bits; i < block.network.size_bytes * 8; ++i) {
    if (bit(block.network, i)) return std::nullopt;
  }
  if (is_mapped(block.network) && block.prefix_bits >= 96) {
    block.network = unmapped(block.network);
    block.prefix_bits -= 96;
  }
  return block;
}

bool contains(const Block& block, const Address& address) {
  if (block.network.size_bytes != address.size_bytes) return false;
  for (size_t i = 0; i < block.prefix_bits; ++i) {
    if (bit(block.network, i) != bit(address, i)) return false;
  }
  return true;
}

bool matches_one(std::string_view pattern, const Address& address) {
  if (pattern.find('/') != std::string_view::npos) {
    auto block = parse_block(pattern);
    return block && contains(*block, address);
  }
  if (auto exact = parse_address(pattern)) {
    return exact->size_bytes == address.size_bytes && exact->bytes == address.bytes;
  }
  return wildcard_matches(lower(pattern), to_text(address));
}

}  // namespace

Result<void> check_address_pattern(std::string_view pattern) {
  std::string_view body = pattern.starts_with('!') ? pattern.substr(1) : pattern;
  if (body.empty()) return fail(ErrorCode::invalid_argument, "from= has an empty pattern");
  if (body.find('/') != std::string_view::npos) {
    if (parse_block(body)) return {};
    return fail(ErrorCode::invalid_argument, "from= pattern {} is not a network: address/bits without host bits",
                quote(pattern));
  }
  if (parse_address(body)) return {};
  bool is_ipv6 = body.find(':') != std::string_view::npos;
  bool has_wildcard = body.find_first_of("*?") != std::string_view::npos;
  bool address_like = std::ranges::all_of(body, [&](unsigned char c) {
    return c == '.' || c == '*' || c == '?' || std::isdigit(c) != 0 || (is_ipv6 && (c == ':' || std::isxdigit(c) != 0));
  });
  if (has_wildcard && address_like) return {};
  return fail(
      ErrorCode::invalid_argument,
      "from= pattern {} is not an address, an address with wildcards or a network; host names are not looked up",
      quote(pattern));
}

bool address_matches(std::span<const std::string> patterns, std::string_view address) {
  auto parsed = parse_address(address);
  if (!parsed) return false;
  bool matched = false;
  for (std::string_view pattern : patterns) {
    // One pattern that cannot be understood makes the list match nothing: it may be the negation that matters.
    if (!check_address_pattern(pattern)) return false;
    bool negated = pattern.starts_with('!');
    if (negated) pattern.remove_prefix(1);
    if (!matches_one(pattern, *parsed)) continue;
    if (negated) return false;
    matched = true;
  }
  return matched;
}

}  // namespace hive::crypto
