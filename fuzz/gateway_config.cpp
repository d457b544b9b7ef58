// The gateway's configuration: what is accepted fails closed, and no secret stands in a message.
#include "config/gateway_config.h"

#include <algorithm>

#include "config/address.h"
#include "config/gateway_keys.h"
#include "config/redaction.h"
#include "fuzz_target.h"

namespace {

using namespace hive;

// Nothing of this machine: the environment and the files are made up.
const config::SecretSources& sources() {
  static const config::SecretSources made_up{
      .environment = [](const std::string& name) -> std::optional<std::string> {
        if (name == "A") return "hush-environment";
        return std::nullopt;
      },
      .file = [](const std::string& path) -> Result<std::string> {
        if (path.size() % 2 == 0) return "hush-file\n";
        return fail(ErrorCode::not_found, "{}: No such file or directory", path);
      },
  };
  return made_up;
}

bool is_role(std::string_view name) {
  return name == "admin" || name == "operator" || name == "read-only";
}

bool is_tier(std::string_view name) {
  return name == "read" || name == "write" || name == "admin";
}

// What is hidden comes back, byte for byte, whatever the text says; and looking at it changes no field.
void check_redaction(std::string_view text) {
  Result<std::string> shown = config::redact(text);
  Result<std::string> as_written = config::restore(text, text);
  if (!shown) {
    CHECK(!as_written);
    return;
  }
  // A text that itself holds placeholders is refused where they stand for nothing.
  if (text.contains("redacted") || text.contains("\\u")) return;
  Result<std::string> restored = config::restore(*shown, text);
  CHECK(as_written.has_value() && restored.has_value());
  CHECK(*restored == *as_written);
  CHECK(config::changed_fields(text, *restored)->empty());
}

bool shows(std::string_view text, const config::Secret& secret) {
  // Short ones may well stand elsewhere, and what is a reference is meant to be seen.
  return secret.reveal().size() >= 12 && secret.reveal().starts_with("hush-literal") && text.contains(secret.reveal());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzz::as_text(data, size);
  check_redaction(text);
  Result<config::GatewayConfig> loaded = config::read_gateway_config(text, "/etc/g.json", sources(), false);
  if (!loaded) {
    CHECK(loaded.error().message.starts_with("/etc/g.json"));
    if (!text.contains("hush")) CHECK(!loaded.error().message.contains("hush"));
    return 0;
  }
  CHECK(config::parse_listen_address(loaded->listen_addr).has_value());
  CHECK(!loaded->authorized_keys_path.empty());
  CHECK(loaded->tls_cert_path.empty() == loaded->tls_key_path.empty());
  CHECK(loaded->audit_log_path.empty() || !loaded->host_key_path.empty());
  bool serves_http = !loaded->http_addr.empty() || !loaded->plaintext_http_addr.empty();
  CHECK(!serves_http || !loaded->auth_token.empty() || !loaded->tokens.empty() || !loaded->scoped_tokens.empty() ||
        !loaded->client_ca_cert_path.empty() || !loaded->trusted_proxy_secret.empty() || !loaded->oidc_issuer.empty());
  if (!loaded->plaintext_http_addr.empty()) {
    CHECK(config::is_loopback_literal(config::parse_listen_address(loaded->plaintext_http_addr)->host));
  }
  for (const config::StaticToken& token : loaded->tokens) {
    CHECK(!token.token.empty() && is_role(token.role));
  }
  for (const config::ScopedToken& token : loaded->scoped_tokens) {
    CHECK(!token.credential.token.empty() && is_role(token.credential.role));
    CHECK(!token.agents.empty() || !token.tags.empty());
    CHECK(!token.tools.empty());
  }
  for (const auto* roles : {&loaded->mtls_cn_roles, &loaded->oidc_role_map}) {
    for (const auto& [name, role] : *roles) {
      CHECK(is_role(role));
    }
  }
  CHECK(loaded->client_ca_cert_path.empty() || !loaded->mtls_role.empty() || !loaded->mtls_cn_roles.empty());
  CHECK(loaded->trusted_proxy_secret.empty() || !loaded->trusted_proxy_addresses.empty());
  CHECK(loaded->oidc_issuer.empty() || (!loaded->oidc_audience.empty() && !loaded->oidc_role_map.empty()));
  for (const auto& [tier, rule] : loaded->approvals_required) {
    CHECK(is_tier(tier) && rule.count >= 1 && rule.count <= 10);
  }
  for (const auto& [tool, tier] : loaded->risk_tiers) {
    CHECK(!tool.empty() && is_tier(tier));
  }
  for (const std::string& tier : loaded->require_approval_tiers) {
    CHECK(is_tier(tier));
  }
  std::string shown = config::redact(text).value();
  CHECK(!shows(shown, loaded->auth_token) && !shows(shown, loaded->trusted_proxy_secret));
  for (const config::StaticToken& token : loaded->tokens) {
    CHECK(!shows(shown, token.token));
  }
  for (const auto& [field, line] : loaded->lines) {
    CHECK(line >= 1 && line <= 1 + static_cast<std::size_t>(std::ranges::count(text, '\n')));
  }
  for (const std::string& note : loaded->without_effect) {
    CHECK(!note.contains("hush"));
  }
  return 0;
}
