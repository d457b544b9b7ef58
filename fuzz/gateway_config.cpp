// The gateway's configuration: what is accepted fails closed, and no secret stands in a message.
#include "config/gateway_config.h"

#include "config/address.h"
#include "config/gateway_keys.h"
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzz::as_text(data, size);
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
  CHECK(!serves_http || !loaded->auth_token.empty() || !loaded->tokens.empty());
  if (!loaded->plaintext_http_addr.empty()) {
    CHECK(config::is_loopback_literal(config::parse_listen_address(loaded->plaintext_http_addr)->host));
  }
  for (const config::StaticToken& token : loaded->tokens) {
    CHECK(!token.token.empty() && is_role(token.role));
  }
  for (const auto& [tool, tier] : loaded->risk_tiers) {
    CHECK(!tool.empty() && is_tier(tier));
  }
  for (const std::string& tier : loaded->require_approval_tiers) {
    CHECK(is_tier(tier));
  }
  for (const std::string& note : loaded->without_effect) {
    CHECK(!note.contains("hush"));
  }
  return 0;
}
