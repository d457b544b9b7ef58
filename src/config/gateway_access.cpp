#include "config/gateway_access.h"

#include <algorithm>
#include <unordered_map>

#include "base/strings.h"
#include "config/address.h"
#include "config/names.h"
#include "config/network.h"
#include "crypto/sha256.h"

namespace hive::config {

namespace {

constexpr std::size_t max_header_bytes = 64;
constexpr std::size_t max_claim_bytes = 256;

template <auto Member>
void store_optional_role(Reader& reader, const Value& value, GatewayDraft& draft) {
  if (!says_something(value.raw)) return;
  if (auto role = read_role(reader, value)) draft.*Member = *std::move(role);
}

bool is_header_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || std::string_view("!#$%&'*+-.^_`|~").contains(c);
}

// Headers that mean something of their own to the gateway or to HTTP could carry a value that nobody meant as proof.
bool is_taken_header(std::string_view name) {
  static constexpr std::string_view taken[] = {"accept",
                                               "authorization",
                                               "connection",
                                               "content-length",
                                               "content-type",
                                               "cookie",
                                               "expect",
                                               "forwarded",
                                               "host",
                                               "last-event-id",
                                               "mcp-session-id",
                                               "origin",
                                               "proxy-authorization",
                                               "te",
                                               "trailer",
                                               "upgrade",
                                               "x-forwarded-for",
                                               "x-forwarded-host",
                                               "x-forwarded-proto",
                                               "transfer-encoding",
                                               "user-agent",
                                               "mcp-protocol-version"};
  return std::ranges::find(taken, name) != std::end(taken);
}

template <auto Member>
void store_header_name(Reader& reader, const Value& value, GatewayDraft& draft) {
  std::optional<std::string> name = reader.string(value);
  if (!name || name->empty()) return;
  std::ranges::transform(*name, name->begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  if (name->size() > max_header_bytes || !std::ranges::all_of(*name, is_header_character)) {
    reader.problem(value, "is not the name of a header (RFC 9110), as in X-Forwarded-User");
  } else if (is_taken_header(*name)) {
    reader.problem(value, fmt::format("the header {} has a meaning of its own; use another, as in X-Forwarded-User",
                                      quote(*name)));
  } else {
    draft.*Member = *std::move(name);
  }
}

/// Finds one secret that stands for two credentials. Which role and scope it had would depend on their order.
class TokenCensus {
 public:
  explicit TokenCensus(Reader& reader) : reader_(reader) {}

  void add(const Secret& token, const Value& place) {
    if (token.empty()) return;
    auto [entry, is_new] = fields_.try_emplace(digest_of(token.reveal()), place.field);
    if (is_new) return;
    reader_.problem(place, fmt::format("is the same secret as {}; remove one of them", entry->second));
  }

 private:
  // A token and its hash are the same token.
  static std::string digest_of(const std::string& token) {
    std::optional<std::string_view> hash = token_hash(token);
    return hash ? std::string(*hash) : to_hex(crypto::sha256(token));
  }

  Reader& reader_;
  std::unordered_map<std::string, std::string> fields_;
};

void check_tokens(Reader& reader, const GatewayDraft& draft) {
  TokenCensus census(reader);
  census.add(draft.auth_token, draft.auth_token_place);
  for (std::size_t i = 0; i < draft.tokens.size(); ++i) {
    census.add(draft.tokens[i].token, draft.token_places[i]);
  }
  for (std::size_t i = 0; i < draft.scoped_tokens.size(); ++i) {
    census.add(draft.scoped_tokens[i].credential.token, draft.scoped_token_places[i]);
  }
}

void check_certificates(Reader& reader, const GatewayDraft& draft) {
  if (draft.client_ca_cert_path.empty()) return;
  if (draft.http_addr.empty()) {
    reader.problem_with_file("client_ca_cert_path is set and http_addr is not; only HTTPS can ask for a certificate");
  }
  if (draft.mtls_role.empty() && draft.mtls_cn_roles.empty()) {
    reader.problem_with_file(
        "client_ca_cert_path is set and neither mtls_cn_roles nor mtls_role is; nobody would have a role");
  }
}

void check_proxy(Reader& reader, const GatewayDraft& draft) {
  const std::string& identity = draft.trusted_proxy_identity_header;
  const std::string& secret = draft.trusted_proxy_secret_header;
  if (!identity.empty() && identity == secret) {
    reader.problem_with_file("trusted_proxy_identity_header and trusted_proxy_secret_header name one header");
  }
  if (draft.trusted_proxy_secret.empty()) return;
  if (identity.empty() || secret.empty()) {
    reader.problem_with_file(
        "trusted_proxy_secret needs both trusted_proxy_identity_header and trusted_proxy_secret_header");
  }
  if (draft.trusted_proxy_addresses.empty()) {
    reader.problem_with_file(
        "trusted_proxy_secret needs trusted_proxy_addresses, the addresses that the proxy connects from, as in "
        "\"trusted_proxy_addresses\": [\"10.0.0.5\"]; without them whoever learns the secret could be anybody");
  }
}

void check_identity_provider(Reader& reader, const GatewayDraft& draft) {
  if (draft.oidc_issuer.empty()) return;
  if (draft.oidc_audience.empty()) {
    reader.problem_with_file("oidc_issuer is set and oidc_audience is not; a token for any service would be accepted");
  }
  if (draft.oidc_role_map.empty()) {
    reader.problem_with_file("oidc_issuer is set and oidc_role_map is not; nobody would have a role");
  }
}

}  // namespace

void read_client_ca(Reader& reader, const Value& value, GatewayDraft& draft) {
  draft.names_credentials = draft.names_credentials || says_something(value.raw);
  if (auto path = reader.path(value)) draft.client_ca_cert_path = *std::move(path);
}

void read_mtls_role(Reader& reader, const Value& value, GatewayDraft& draft) {
  store_optional_role<&GatewayDraft::mtls_role>(reader, value, draft);
}

void read_mtls_cn_roles(Reader& reader, const Value& value, GatewayDraft& draft) {
  for (const auto& [name, element] : reader.members(value)) {
    if (Result<void> checked = check_identity(name); !checked) {
      reader.problem(element, checked.error().message);
      continue;
    }
    if (auto role = read_role(reader, element)) draft.mtls_cn_roles[name] = *std::move(role);
  }
}

void read_proxy_identity_header(Reader& reader, const Value& value, GatewayDraft& draft) {
  store_header_name<&GatewayDraft::trusted_proxy_identity_header>(reader, value, draft);
}

void read_proxy_secret_header(Reader& reader, const Value& value, GatewayDraft& draft) {
  store_header_name<&GatewayDraft::trusted_proxy_secret_header>(reader, value, draft);
}

void read_proxy_secret(Reader& reader, const Value& value, GatewayDraft& draft) {
  if (!says_something(value.raw)) return;
  draft.names_credentials = true;
  if (auto secret = reader.secret(value)) draft.trusted_proxy_secret = *std::move(secret);
}

void read_proxy_role(Reader& reader, const Value& value, GatewayDraft& draft) {
  store_optional_role<&GatewayDraft::trusted_proxy_role>(reader, value, draft);
}

void read_stdio_role(Reader& reader, const Value& value, GatewayDraft& draft) {
  store_optional_role<&GatewayDraft::stdio_role>(reader, value, draft);
}

void read_proxy_addresses(Reader& reader, const Value& value, GatewayDraft& draft) {
  for (const Value& element : reader.elements(value)) {
    std::optional<std::string> text = reader.non_empty_string(element);
    if (!text) continue;
    Result<std::string> network = normalize_network(*text);
    if (network) {
      draft.trusted_proxy_addresses.push_back(*std::move(network));
    } else {
      reader.problem(element, network.error().message);
    }
  }
}

// OpenID Connect Discovery 1.0, section 3: an issuer is an https URL without query and fragment, and it is compared
// byte for byte. Plain http stays on the machine.
void read_oidc_issuer(Reader& reader, const Value& value, GatewayDraft& draft) {
  std::optional<std::string> issuer = reader.string(value);
  if (!issuer || issuer->empty()) return;
  draft.names_credentials = true;
  bool is_https = issuer->starts_with("https://");
  if (!is_https && !issuer->starts_with("http://")) {
    reader.problem(value, "is not a URL with https:// and a host");
    return;
  }
  std::string_view rest = std::string_view(*issuer).substr(is_https ? 8 : 7);
  std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  bool is_visible = std::ranges::all_of(*issuer, [](char c) { return c > 0x20 && c < 0x7f; });
  std::string_view host = authority.starts_with('[') ? authority.substr(1, authority.find(']') - 1)
                                                     : authority.substr(0, authority.find(':'));
  if (host.empty() || !is_visible) {
    reader.problem(value, "is not a URL with https:// and a host");
  } else if (rest.find_first_of("?#@") != std::string_view::npos) {
    reader.problem(value, "an issuer has no user name, no query and no fragment");
  } else if (!is_https && !is_loopback_literal(host)) {
    reader.problem(value, "must begin with https://; over plain http anybody on the way could hand out roles");
  } else {
    draft.oidc_issuer = *std::move(issuer);
  }
}

void read_oidc_role_claim(Reader& reader, const Value& value, GatewayDraft& draft) {
  std::optional<std::string> claim = reader.string(value);
  if (!claim || claim->empty()) return;
  if (claim->size() > max_claim_bytes) {
    reader.problem(value, fmt::format("is longer than {} bytes", max_claim_bytes));
    return;
  }
  draft.oidc_role_claim = *std::move(claim);
}

void read_oidc_role_map(Reader& reader, const Value& value, GatewayDraft& draft) {
  for (const auto& [claim, element] : reader.members(value)) {
    if (claim.empty() || claim.size() > max_claim_bytes) {
      reader.problem(element, fmt::format("a value of the claim has 1 to {} bytes", max_claim_bytes));
      continue;
    }
    if (auto role = read_role(reader, element)) draft.oidc_role_map[claim] = *std::move(role);
  }
}

void check_access(Reader& reader, const GatewayDraft& draft) {
  check_tokens(reader, draft);
  check_certificates(reader, draft);
  check_proxy(reader, draft);
  check_identity_provider(reader, draft);
  bool serves_http = !draft.http_addr.empty() || !draft.plaintext_http_addr.empty();
  if (serves_http && !draft.names_credentials) {
    reader.problem_with_file(
        "nobody could call: neither auth_token nor tokens is set; make a token with: openssl rand -hex 32");
  }
}

}  // namespace hive::config
