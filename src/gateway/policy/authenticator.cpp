#include "gateway/policy/authenticator.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "crypto/ssh_key.h"
#include "gateway/policy/identity.h"
#include "gateway/policy/rule_text.h"
#include "gateway/policy/token_names.h"
#include "gateway/policy/token_store.h"

namespace hive::policy {

namespace {

using Answer = std::expected<Principal, CredentialFault>;

// What a configuration gives to everybody whom one line of it describes; shared by all of them, because the identity is
// the principal's name.
struct Share {
  Role role = Role::read_only;
  std::shared_ptr<const Grant> grant;
};

Result<Role> read_role(std::string_view field, std::string_view name) {
  if (std::optional<Role> role = role_from_string(name)) return *role;
  return fail(ErrorCode::invalid_argument, "{}: unknown role {}; use admin, operator or read-only", field, quote(name));
}

Result<Share> make_share(const RuleText& rules, const std::string& field, const std::string& role,
                         CredentialKind kind) {
  Grant grant;
  grant.kind = kind;
  grant.rule = rules.of(field, role);
  return Share{TRY(read_role(field, role)), std::make_shared<const Grant>(std::move(grant))};
}

Answer admit(std::string_view identity, const Share* share) {
  if (!check_identity(identity)) return std::unexpected(CredentialFault::bad_identity);
  if (share == nullptr) return std::unexpected(CredentialFault::no_role);
  return Principal{std::string(identity), share->role, share->grant};
}

class ConfiguredAuthenticator final : public Authenticator {
 public:
  static Result<std::shared_ptr<const Authenticator>> create(const config::GatewayConfig& config, const Clock& clock) {
    RuleText rules(config);
    TokenStore tokens = TRY(TokenStore::create(config, rules));
    std::shared_ptr<ConfiguredAuthenticator> made(new ConfiguredAuthenticator(clock, std::move(tokens)));
    TRY(made->take_certificates(config, rules));
    TRY(made->take_proxy(config, rules));
    TRY(made->take_issuer(config, rules));
    return made;
  }

  [[nodiscard]] std::optional<std::string_view> identity_token(const Credentials& credentials) const override {
    if (!issuer_is_set_ || certificate_decides(credentials) || proxy_decides(credentials)) return std::nullopt;
    auto token = bearer_token(credentials.authorization);
    return token && looks_like_identity_token(*token) ? std::optional(*token) : std::nullopt;
  }

  [[nodiscard]] Answer authenticate(const Credentials& credentials) const override {
    if (certificate_decides(credentials)) {
      return admit(*credentials.certificate_name, certificate_share(*credentials.certificate_name));
    }
    if (proxy_decides(credentials)) return admit(*credentials.proxy_identity, proxy_ ? &*proxy_ : nullptr);
    auto token = bearer_token(credentials.authorization);
    if (!token) return std::unexpected(token.error());
    // The identity provider decides about these alone; whoever asks here anyway gets nothing.
    if (issuer_is_set_ && looks_like_identity_token(*token)) return std::unexpected(CredentialFault::unknown);
    const Principal* principal = tokens_.find(*token);
    if (principal == nullptr) return std::unexpected(CredentialFault::unknown);
    if (has_expired(*principal)) return std::unexpected(CredentialFault::expired);
    return *principal;
  }

  [[nodiscard]] Answer from_claims(const IdentityClaims& claims) const override {
    if (!issuer_is_set_) return std::unexpected(CredentialFault::no_role);
    if (!check_identity(claims.subject)) return std::unexpected(CredentialFault::bad_identity);
    if (claims.expires_at && *claims.expires_at <= clock_.wall_now()) return std::unexpected(CredentialFault::expired);
    const MappedRole* best = nullptr;
    for (const std::string& group : claims.groups) {
      auto found = group_roles_.find(group);
      if (found == group_roles_.end()) continue;
      if (best == nullptr || found->second.role > best->role) best = &found->second;
    }
    if (best == nullptr) return std::unexpected(CredentialFault::no_role);
    Grant grant;
    grant.kind = CredentialKind::oidc;
    grant.identity = claims.subject;
    grant.groups = claims.groups;
    grant.rule = best->rule;
    grant.expires_at = claims.expires_at;
    return Principal{claims.subject, best->role, std::make_shared<const Grant>(std::move(grant))};
  }

  [[nodiscard]] std::optional<Principal> refresh(const Principal& earlier) const override {
    auto accepted = [](Answer answer) { return answer ? std::optional(*std::move(answer)) : std::nullopt; };
    const Grant none;
    const Grant& grant = earlier.grant == nullptr ? none : *earlier.grant;
    switch (grant.kind) {
      case CredentialKind::token:
      case CredentialKind::scoped_token: {
        const Principal* principal = tokens_.find_by_name(earlier.name);
        return principal == nullptr || has_expired(*principal) ? std::nullopt : std::optional(*principal);
      }
      case CredentialKind::certificate:
        return accept_certificates_ ? accepted(admit(earlier.name, certificate_share(earlier.name))) : std::nullopt;
      case CredentialKind::proxy:
        return proxy_secret_.empty() ? std::nullopt : accepted(admit(earlier.name, proxy_ ? &*proxy_ : nullptr));
      case CredentialKind::oidc:
        return accepted(from_claims({earlier.name, grant.groups, grant.expires_at}));
      case CredentialKind::internal:
        return earlier;
    }
    return std::nullopt;
  }

  [[nodiscard]] bool is_trusted_proxy(std::string_view address) const override {
    return !proxy_addresses_.empty() && crypto::address_matches(proxy_addresses_, address);
  }

 private:
  struct MappedRole {
    Role role = Role::read_only;
    std::string rule;
  };

  ConfiguredAuthenticator(const Clock& clock, TokenStore tokens) : clock_(clock), tokens_(std::move(tokens)) {}

  Result<void> take_certificates(const config::GatewayConfig& config, const RuleText& rules) {
    accept_certificates_ = !config.client_ca_cert_path.empty();
    for (const auto& [name, role] : config.mtls_cn_roles) {
      named_certificates_[name] = TRY(make_share(rules, "mtls_cn_roles." + name, role, CredentialKind::certificate));
    }
    if (!config.mtls_role.empty()) {
      other_certificates_ = TRY(make_share(rules, "mtls_role", config.mtls_role, CredentialKind::certificate));
    }
    return {};
  }

  Result<void> take_proxy(const config::GatewayConfig& config, const RuleText& rules) {
    proxy_secret_ = config.trusted_proxy_secret;
    proxy_addresses_ = config.trusted_proxy_addresses;
    if (!config.trusted_proxy_role.empty()) {
      proxy_ = TRY(make_share(rules, "trusted_proxy_role", config.trusted_proxy_role, CredentialKind::proxy));
    }
    return {};
  }

  Result<void> take_issuer(const config::GatewayConfig& config, const RuleText& rules) {
    issuer_is_set_ = !config.oidc_issuer.empty();
    for (const auto& [group, role] : config.oidc_role_map) {
      std::string field = "oidc_role_map." + group;
      group_roles_[group] = {TRY(read_role(field, role)), rules.of(field, role)};
    }
    return {};
  }

  // A connection that is older than a reload may hold a certificate of authorities that are not trusted any more; then
  // it counts for nothing.
  [[nodiscard]] bool certificate_decides(const Credentials& credentials) const {
    return accept_certificates_ && credentials.certificate_name.has_value();
  }

  [[nodiscard]] const Share* certificate_share(std::string_view name) const {
    if (auto found = named_certificates_.find(name); found != named_certificates_.end()) return &found->second;
    return other_certificates_ ? &*other_certificates_ : nullptr;
  }

  [[nodiscard]] bool proxy_decides(const Credentials& credentials) const {
    return !proxy_secret_.empty() && credentials.proxy_secret && credentials.proxy_identity &&
           !credentials.proxy_identity->empty() &&
           constant_time_equal(*credentials.proxy_secret, proxy_secret_.reveal()) &&
           is_trusted_proxy(credentials.peer_address);
  }

  [[nodiscard]] bool has_expired(const Principal& principal) const {
    return principal.grant->expires_at && *principal.grant->expires_at <= clock_.wall_now();
  }

  const Clock& clock_;
  const TokenStore tokens_;
  bool accept_certificates_ = false;
  std::map<std::string, Share, std::less<>> named_certificates_;
  std::optional<Share> other_certificates_;
  config::Secret proxy_secret_;
  std::vector<std::string> proxy_addresses_;
  std::optional<Share> proxy_;
  bool issuer_is_set_ = false;
  std::unordered_map<std::string, MappedRole> group_roles_;
};

// Names of schemes do not distinguish upper and lower case (RFC 9110 section 11.1).
bool is_bearer(std::string_view scheme) {
  return equal_ignoring_case(scheme, "bearer");
}

}  // namespace

std::string_view to_string(CredentialFault fault) {
  switch (fault) {
    case CredentialFault::missing:
      return "missing_credentials";
    case CredentialFault::malformed:
      return "malformed_credentials";
    case CredentialFault::unsupported:
      return "unsupported_scheme";
    case CredentialFault::unknown:
      return "unknown_token";
    case CredentialFault::expired:
      return "expired_token";
    case CredentialFault::no_role:
      return "no_role";
    case CredentialFault::bad_identity:
      return "bad_identity";
    case CredentialFault::bad_signature:
      return "bad_signature";
    case CredentialFault::bad_claims:
      return "bad_claims";
    case CredentialFault::provider_unavailable:
      return "provider_unavailable";
  }
  return "unknown_token";
}

std::expected<std::string_view, CredentialFault> bearer_token(std::optional<std::string_view> authorization) {
  if (!authorization) return std::unexpected(CredentialFault::missing);
  std::size_t blank = authorization->find(' ');
  std::string_view scheme = authorization->substr(0, blank);
  if (!is_bearer(scheme)) {
    bool is_scheme = !scheme.empty() && blank != std::string_view::npos;
    return std::unexpected(is_scheme ? CredentialFault::unsupported : CredentialFault::malformed);
  }
  if (blank == std::string_view::npos) return std::unexpected(CredentialFault::malformed);
  std::string_view token = authorization->substr(blank);
  token.remove_prefix(std::min(token.find_first_not_of(' '), token.size()));
  if (!is_bearer_text(token, max_bearer_token_bytes)) return std::unexpected(CredentialFault::malformed);
  return token;
}

Result<std::shared_ptr<const Authenticator>> Authenticator::create(const config::GatewayConfig& config,
                                                                   const Clock& clock) {
  return ConfiguredAuthenticator::create(config, clock);
}

}  // namespace hive::policy
