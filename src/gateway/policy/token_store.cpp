#include "gateway/policy/token_store.h"

#include <algorithm>

#include "base/strings.h"
#include "crypto/random.h"
#include "gateway/policy/identity.h"
#include "gateway/policy/token_names.h"

namespace hive::policy {

namespace {

// Making the state of a hash costs more than hashing a token.
crypto::Sha256& hash_of_this_thread() {
  thread_local crypto::Sha256 hash;
  return hash;
}

std::string field_of(const config::StaticToken& token, std::string_view list, std::size_t index) {
  return token.field.empty() ? fmt::format("{}[{}]", list, index) : token.field;
}

}  // namespace

bool looks_like_identity_token(std::string_view token) {
  return !token.empty() && token.front() != '.' && token.back() != '.' && std::ranges::count(token, '.') == 2;
}

TokenStore::TokenStore() {
  crypto::random_bytes(salt_);
}

crypto::Digest TokenStore::key_of(const crypto::Digest& token_digest) const {
  crypto::Sha256& hash = hash_of_this_thread();
  hash.update(salt_);
  hash.update(token_digest);
  return hash.finish();
}

const Principal* TokenStore::find(std::string_view token) const {
  crypto::Sha256& hash = hash_of_this_thread();
  hash.update(token);
  auto found = entries_.find(key_of(hash.finish()));
  return found == entries_.end() ? nullptr : &found->second.principal;
}

const Principal* TokenStore::find_by_name(std::string_view principal) const {
  auto found = by_name_.find(principal);
  return found == by_name_.end() ? nullptr : &found->second->principal;
}

Result<void> TokenStore::add(const config::Secret& token, const std::string& field, std::string_view role,
                             Grant grant) {
  std::optional<crypto::Digest> digest = token_digest(token);
  if (!digest) {
    return fail(ErrorCode::invalid_argument,
                "{}: a token has 1 to {} visible ASCII characters and no blanks, or is \"sha256:\" and 64 lower-case "
                "hexadecimal digits, as `myrmex token hash` prints them; this one can never be presented",
                field, max_static_token_bytes);
  }
  if (refuses_identity_tokens_ && looks_like_identity_token(token.reveal())) {
    return fail(ErrorCode::invalid_argument,
                "{}: a token with two dots is taken for one of oidc_issuer and can never be presented; make one with: "
                "openssl rand -hex 32",
                field);
  }
  std::optional<Role> known = role_from_string(role);
  if (!known) {
    return fail(ErrorCode::invalid_argument, "{}: unknown role {}; use admin, operator or read-only", field,
                quote(role));
  }
  if (!grant.identity.empty()) TRY_CONTEXT(field + ".identity", check_identity(grant.identity));
  std::string name = token_principal_name(*digest);
  Entry entry{{name, *known, std::make_shared<const Grant>(std::move(grant))}, field};
  auto [place, is_new] = entries_.try_emplace(key_of(*digest), std::move(entry));
  if (!is_new) {
    return fail(ErrorCode::invalid_argument, "{}: is the same token as {}; give each a token of its own", field,
                place->second.field);
  }
  auto [other, is_new_name] = by_name_.try_emplace(std::move(name), &place->second);
  if (!is_new_name) {
    return fail(ErrorCode::invalid_argument, "{}: would have the same name in the audit log as {}; make another token",
                field, other->second->field);
  }
  return {};
}

Result<void> TokenStore::add_scoped(const config::ScopedToken& token, std::string field, const RuleText& rules) {
  // A scope that says nothing must not mean everything.
  if (token.tools.empty() || (token.agents.empty() && token.tags.empty())) {
    return fail(ErrorCode::invalid_argument, "{}: {} is empty; write [\"*\"] if all are meant", field,
                token.tools.empty() ? "tools" : "agents");
  }
  Grant grant;
  grant.kind = CredentialKind::scoped_token;
  grant.identity = token.credential.identity;
  grant.scope = Scope{token.agents, token.tags, token.tools, field};
  grant.rule = rules.of_either(field + ".role", field, token.credential.role);
  grant.expires_at = token.expires_at;
  return add(token.credential.token, field, token.credential.role, std::move(grant));
}

Result<TokenStore> TokenStore::create(const config::GatewayConfig& config, const RuleText& rules) {
  TokenStore store;
  store.refuses_identity_tokens_ = !config.oidc_issuer.empty();
  if (!config.auth_token.empty()) {
    Grant grant;
    grant.rule = rules.of("auth_token", "[redacted]") + " (always admin)";
    TRY(store.add(config.auth_token, "auth_token", "admin", std::move(grant)));
  }
  for (std::size_t i = 0; i < config.tokens.size(); ++i) {
    const config::StaticToken& token = config.tokens[i];
    std::string field = field_of(token, "tokens", i);
    Grant grant;
    grant.identity = token.identity;
    grant.rule = rules.of_either(field + ".role", field, token.role);
    TRY(store.add(token.token, field, token.role, std::move(grant)));
  }
  for (std::size_t i = 0; i < config.scoped_tokens.size(); ++i) {
    const config::ScopedToken& token = config.scoped_tokens[i];
    TRY(store.add_scoped(token, field_of(token.credential, "scoped_tokens", i), rules));
  }
  return store;
}

}  // namespace hive::policy
