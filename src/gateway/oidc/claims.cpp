#include "gateway/oidc/claims.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "gateway/oidc/jwt.h"
#include "protocol/json.h"

namespace hive::oidc {

namespace {

using policy::CredentialFault;
using Members = std::vector<json::Member>;

constexpr json::Limits payload_limits = {.max_bytes = max_token_bytes, .max_depth = 16, .max_values = 4096};
constexpr double last_second = 253402300799.0;  // of the year 9999, the last that RFC 3339 can write

std::unexpected<OidcFault> wrong(std::string detail) {
  return std::unexpected(OidcFault{CredentialFault::bad_claims, std::move(detail)});
}

/// Text of the issuer or of whoever forged it, for the audit log.
std::string shown(std::string_view text) {
  constexpr std::size_t max_shown = 120;
  return quote(text.substr(0, max_shown)) + (text.size() > max_shown ? "..." : "");
}

/// A NumericDate (RFC 7519 section 2); nullopt for what is no number, or no moment that can be written down.
std::optional<WallTime> read_moment(std::string_view raw) {
  double seconds = 0;
  auto [end, error] = std::from_chars(raw.data(), raw.data() + raw.size(), seconds);
  if (error != std::errc() || end != raw.data() + raw.size()) return std::nullopt;
  if (!std::isfinite(seconds) || seconds < 0 || seconds > last_second) return std::nullopt;
  // Whole microseconds, which a double holds exactly enough until then.
  return WallTime(std::chrono::microseconds(static_cast<long long>(std::floor(seconds * 1e6))));
}

/// The texts of a claim that is one text or a list of them; nullopt if it is something else.
std::optional<std::vector<std::string>> read_texts(std::string_view raw) {
  std::vector<std::string> texts;
  if (auto single = json::decode_string(raw)) {
    texts.push_back(*std::move(single));
    return texts;
  }
  if (!json::is_array(raw)) return std::nullopt;
  auto elements = json::parse_array(raw, payload_limits);
  if (!elements) return std::nullopt;
  for (std::string_view element : *elements) {
    auto text = json::decode_string(element);
    if (!text) return std::nullopt;
    texts.push_back(*std::move(text));
  }
  return texts;
}

std::expected<std::vector<std::string>, OidcFault> read_groups(const Members& claims, const std::string& name) {
  auto raw = json::find(claims, name);
  if (!raw) return std::vector<std::string>();
  auto groups = read_texts(*raw);
  if (!groups) return wrong(fmt::format("the claim {} is neither text nor a list of texts", shown(name)));
  if (groups->size() > max_groups) {
    return wrong(
        fmt::format("the claim {} has {} values; at most {} are read", shown(name), groups->size(), max_groups));
  }
  if (std::ranges::any_of(*groups, [](const std::string& group) { return group.size() > max_claim_bytes; })) {
    return wrong(fmt::format("the claim {} has a value of more than {} bytes", shown(name), max_claim_bytes));
  }
  return *std::move(groups);
}

std::expected<std::optional<WallTime>, OidcFault> read_optional_moment(const Members& claims, std::string_view name) {
  auto raw = json::find(claims, name);
  if (!raw) return std::nullopt;
  auto moment = read_moment(*raw);
  if (!moment) return wrong(fmt::format("{} is not a number of seconds: {}", name, shown(*raw)));
  return moment;
}

long long seconds_between(WallTime from, WallTime to) {
  return std::chrono::ceil<std::chrono::seconds>(to - from).count();
}

}  // namespace

std::expected<CheckedClaims, OidcFault> read_claims(std::string_view payload, const ClaimRules& rules) {
  Result<Members> claims = json::parse_object(payload, payload_limits);
  if (!claims) return wrong("the token's payload is not a JSON object: " + claims.error().message);

  auto issuer = json::decode_string(json::find(*claims, "iss").value_or(""));
  if (!issuer) return wrong("the token names no issuer (iss)");
  if (*issuer != rules.issuer) return wrong(fmt::format("the issuer (iss) is {}", shown(*issuer)));

  auto raw_audience = json::find(*claims, "aud");
  if (!raw_audience) return wrong("the token is for no audience (aud)");
  auto audience = read_texts(*raw_audience);
  if (!audience) return wrong("aud is neither text nor a list of texts");
  if (std::ranges::find(*audience, rules.audience) == audience->end()) {
    return wrong(fmt::format("the token is for another audience (aud): {}", shown(join(*audience, ", "))));
  }

  CheckedClaims checked;
  auto expires = read_optional_moment(*claims, "exp");
  if (!expires) return std::unexpected(expires.error());
  if (!*expires) return wrong("the token has no end (exp)");
  checked.expires_at = **expires;
  for (std::string_view name : {"nbf", "iat"}) {
    auto moment = read_optional_moment(*claims, name);
    if (!moment) return std::unexpected(moment.error());
    if (*moment) checked.not_before = std::max(checked.not_before.value_or(**moment), **moment);
  }

  auto subject = json::decode_string(json::find(*claims, "sub").value_or(""));
  if (!subject || subject->empty()) return wrong("the token names no subject (sub)");
  if (subject->size() > max_claim_bytes) {
    return wrong(fmt::format("the subject (sub) is longer than {} bytes", max_claim_bytes));
  }
  auto groups = read_groups(*claims, rules.role_claim);
  if (!groups) return std::unexpected(groups.error());
  checked.identity = {*std::move(subject), *std::move(groups), checked.expires_at};
  return checked;
}

std::optional<OidcFault> check_times(const CheckedClaims& claims, WallTime now) {
  if (now >= claims.expires_at) {
    return OidcFault{CredentialFault::expired,
                     fmt::format("the token expired {} s ago, at {}", seconds_between(claims.expires_at, now),
                                 format_rfc3339(claims.expires_at))};
  }
  if (claims.not_before && *claims.not_before > now + clock_leeway) {
    return OidcFault{CredentialFault::bad_claims,
                     fmt::format("the token begins {} s in the future (nbf or iat), at {}; compare the clocks",
                                 seconds_between(now, *claims.not_before), format_rfc3339(*claims.not_before))};
  }
  return std::nullopt;
}

}  // namespace hive::oidc
