#include <algorithm>
#include <array>
#include <optional>

#include <arpa/inet.h>

#include "base/strings.h"
#include "gateway/policy/authenticator.h"

namespace hive::policy {

namespace {

constexpr std::size_t max_addresses = 32;
constexpr std::size_t max_address_bytes = 64;

// The address without what some proxies put around it: "192.0.2.1:4711", "[2001:db8::1]", "[2001:db8::1]:4711".
std::string_view without_port(std::string_view text) {
  if (text.starts_with('[')) {
    std::size_t end = text.find(']');
    if (end == std::string_view::npos) return {};
    std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && (rest.front() != ':' || !parse_int64(rest.substr(1)))) return {};
    return text.substr(1, end - 1);
  }
  std::size_t colon = text.find(':');
  bool has_port = colon != std::string_view::npos && colon == text.rfind(':');
  if (!has_port) return text;
  return parse_int64(text.substr(colon + 1)) ? text.substr(0, colon) : std::string_view();
}

// One spelling for one address, so that it counts as one source; nullopt if it is none.
std::optional<std::string> canonical_address(std::string_view text) {
  std::string_view address = without_port(text);
  if (address.empty() || address.size() > max_address_bytes || address.contains('\0')) return std::nullopt;
  std::string terminated(address);
  std::array<std::uint8_t, 16> bytes{};
  std::array<char, INET6_ADDRSTRLEN> written{};
  if (::inet_pton(AF_INET, terminated.c_str(), bytes.data()) == 1) {
    return ::inet_ntop(AF_INET, bytes.data(), written.data(), written.size());
  }
  if (::inet_pton(AF_INET6, terminated.c_str(), bytes.data()) != 1) return std::nullopt;
  constexpr std::array<std::uint8_t, 12> mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::equal(mapped.begin(), mapped.end(), bytes.begin())) {
    return ::inet_ntop(AF_INET, bytes.data() + mapped.size(), written.data(), written.size());
  }
  return ::inet_ntop(AF_INET6, bytes.data(), written.data(), written.size());
}

}  // namespace

std::string client_address(std::string_view peer_address, std::optional<std::string_view> forwarded_for,
                           const Authenticator& authenticator) {
  std::string peer(peer_address);
  if (!forwarded_for || !authenticator.is_trusted_proxy(peer_address)) return peer;
  // From the end: each proxy appends whom it heard from, and what stands before is only the word of that one.
  std::string_view rest = *forwarded_for;
  for (std::size_t looked_at = 0; looked_at < max_addresses; ++looked_at) {
    std::size_t comma = rest.rfind(',');
    std::string_view last = comma == std::string_view::npos ? rest : rest.substr(comma + 1);
    std::optional<std::string> address = canonical_address(trim(last));
    if (!address) return peer;
    if (!authenticator.is_trusted_proxy(*address)) return *std::move(address);
    if (comma == std::string_view::npos) return peer;
    rest = rest.substr(0, comma);
  }
  return peer;
}

}  // namespace hive::policy
