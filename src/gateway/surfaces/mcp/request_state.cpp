#include "gateway/surfaces/mcp/request_state.h"

#include <algorithm>
#include <vector>

#include <boost/json/serialize.hpp>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/strings.h"
#include "crypto/random.h"
#include "crypto/sha256.h"
#include "protocol/document.h"
#include "protocol/mcp/message.h"

namespace hive::mcp_surface {

namespace {

constexpr std::string_view prefix = "hive1.";
constexpr std::size_t max_state_bytes = 512;

// Each part with its length, so that no two lists of parts are the same text.
void append_part(std::string& out, std::string_view part) {
  out += std::to_string(part.size());
  out += ':';
  out += part;
}

void sort_members(boost::json::value& value) {
  if (auto* array = value.if_array()) {
    for (boost::json::value& each : *array)
      sort_members(each);
  } else if (auto* object = value.if_object()) {
    std::vector<std::string> keys;
    for (const auto& member : *object)
      keys.emplace_back(member.key());
    std::ranges::sort(keys);
    boost::json::object sorted;
    for (const std::string& key : keys) {
      boost::json::value& member = object->at(key);
      sort_members(member);
      sorted.emplace(key, std::move(member));
    }
    *object = std::move(sorted);
  }
}

}  // namespace

std::string operation_digest(std::string_view method, std::string_view name, std::string_view raw_arguments) {
  std::string arguments(raw_arguments);
  if (auto document = json::parse(raw_arguments, mcp::message_limits)) {
    sort_members(*document);
    arguments = boost::json::serialize(*document);
  }
  std::string text;
  for (std::string_view part : {method, name, std::string_view(arguments)})
    append_part(text, part);
  return to_hex(crypto::sha256(text));
}

RequestStates::RequestStates() {
  crypto::random_bytes(key_);
}

bool RequestStates::is_ours(std::string_view state) {
  return state.starts_with(prefix);
}

std::string RequestStates::mac(std::string_view nonce, std::string_view expiry, const StateBinding& binding) const {
  std::string text;
  for (std::string_view part : {nonce, expiry, std::string_view(binding.identity), std::string_view(binding.request)})
    append_part(text, part);
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> code{};
  unsigned size = 0;
  std::span<const std::uint8_t> bytes = as_bytes(text);
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()), bytes.data(), bytes.size(), code.data(), &size);
  return to_hex(std::span(code).first(size));
}

std::string RequestStates::seal(std::string_view nonce, const StateBinding& binding, SteadyTime expires_at) const {
  std::string expiry =
      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(expires_at.time_since_epoch()).count());
  return fmt::format("{}{}.{}.{}", prefix, nonce, expiry, mac(nonce, expiry, binding));
}

std::expected<std::string, std::string> RequestStates::open(std::string_view state, const StateBinding& binding,
                                                            SteadyTime now) const {
  constexpr std::string_view broken = "requestState is not one that this gateway gave for this request";
  if (!is_ours(state) || state.size() > max_state_bytes) return std::unexpected(std::string(broken));
  std::vector<std::string_view> parts = split(state.substr(prefix.size()), '.');
  if (parts.size() != 3) return std::unexpected(std::string(broken));
  // An empty code cannot come from an HMAC that failed: the lengths differ from any that was given.
  std::string expected = mac(parts[0], parts[1], binding);
  if (expected.empty() || !constant_time_equal(expected, parts[2])) return std::unexpected(std::string(broken));
  auto expiry = parse_int64(parts[1]);
  if (!expiry || now.time_since_epoch() >= std::chrono::milliseconds(*expiry)) {
    return std::unexpected("requestState has expired; make the request again without it");
  }
  return std::string(parts[0]);
}

}  // namespace hive::mcp_surface
