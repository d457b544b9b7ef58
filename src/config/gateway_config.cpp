#include "config/gateway_config.h"

#include "base/file.h"
#include "base/strings.h"
#include "config/address.h"
#include "config/file_mode.h"
#include "config/gateway_keys.h"

namespace hive::config {

namespace {

constexpr std::size_t max_file_bytes = std::size_t{4} << 20;

bool same_socket(std::string_view left, std::string_view right) {
  if (left.empty() || right.empty()) return false;
  Result<ListenAddress> a = parse_listen_address(left);
  Result<ListenAddress> b = parse_listen_address(right);
  if (!a || !b || a->port == 0 || a->port != b->port) return false;
  auto any = [](const std::string& host) { return host.empty() || host == "0.0.0.0" || host == "::"; };
  return a->host == b->host || any(a->host) || any(b->host);
}

void check_listeners(Reader& reader, const GatewayDraft& draft) {
  struct Listener {
    std::string_view name;
    std::string_view address;
  };
  const Listener listeners[] = {{"listen_addr", draft.listen_addr},
                                {"http_addr", draft.http_addr},
                                {"plaintext_http_addr", draft.plaintext_http_addr}};
  for (std::size_t i = 0; i < std::size(listeners); ++i) {
    for (std::size_t k = i + 1; k < std::size(listeners); ++k) {
      if (!same_socket(listeners[i].address, listeners[k].address)) continue;
      reader.problem_with_file(fmt::format("{} and {} listen on the same port", listeners[i].name, listeners[k].name));
    }
  }
}

void check_tls_pair(Reader& reader, const GatewayDraft& draft) {
  if (draft.tls_cert_path.empty() != draft.tls_key_path.empty()) {
    auto [set, missing] = draft.tls_key_path.empty() ? std::pair("tls_cert_path", "tls_key_path")
                                                     : std::pair("tls_key_path", "tls_cert_path");
    reader.problem_with_file(fmt::format(
        "{} is set and {} is not; set both, or neither for a certificate that is made and kept", set, missing));
  }
}

void check_credentials(Reader& reader, const GatewayDraft& draft) {
  auto sound = [](const Secret& secret) { return !secret.reveal().contains(' '); };
  constexpr std::string_view blank = "a token must not contain blanks; make one with: openssl rand -hex 32";
  if (!sound(draft.auth_token)) reader.problem(draft.auth_token_place, blank);
  for (std::size_t i = 0; i < draft.tokens.size(); ++i) {
    const StaticToken& token = draft.tokens[i];
    if (!sound(token.token)) reader.problem(draft.token_places[i], blank);
    // References may resolve to one secret; which role it then has must not depend on the order.
    if (token.token == draft.auth_token && token.role != "admin") {
      reader.problem(draft.token_places[i], "is the same secret as auth_token, which has the role admin");
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (token.token != draft.tokens[k].token) continue;
      reader.problem(draft.token_places[i], fmt::format("is the same secret as {}", draft.token_places[k].field));
    }
  }
  bool serves_http = !draft.http_addr.empty() || !draft.plaintext_http_addr.empty();
  bool names_a_token = !draft.auth_token_place.raw.empty() || draft.names_tokens;
  if (serves_http && !names_a_token) {
    reader.problem_with_file(
        "nobody could call: neither auth_token nor tokens is set; make a token with: openssl rand -hex 32");
  }
}

void check_later_features(Reader& reader, const GatewayDraft& draft) {
  if (!draft.oidc_issuer.empty() && draft.oidc_audience.empty()) {
    reader.problem_with_file("oidc_issuer is set and oidc_audience is not; a token for any service would be accepted");
  }
  if (!draft.oidc_issuer.empty() && !draft.has_oidc_role_map) {
    reader.problem_with_file("oidc_issuer is set and oidc_role_map is not; nobody would have a role");
  }
  if (draft.has_peers && !draft.has_cluster_secret) {
    reader.problem_with_file(
        "peer_gateways is set and cluster_secret is not; make one with: openssl rand -hex 32, the same on all");
  }
  if (draft.has_proxy_secret && (draft.proxy_identity_header.empty() || draft.proxy_secret_header.empty())) {
    reader.problem_with_file(
        "trusted_proxy_secret needs both trusted_proxy_identity_header and trusted_proxy_secret_header");
  }
}

void check_files(Reader& reader, const GatewayDraft& draft) {
  if (Result<void> mode = check_configuration_mode(reader.file(), reader.holds_plain_secret()); !mode) {
    reader.problem_with_file(mode.error().message);
  }
  for (auto [name, path] :
       {std::pair("host_key_path", &draft.host_key_path), std::pair("tls_key_path", &draft.tls_key_path)}) {
    if (path->empty()) continue;
    if (Result<void> mode = check_private_key_mode(*path); !mode) {
      reader.problem_with_file(fmt::format("{}: {}", name, mode.error().message));
    }
  }
}

}  // namespace

Result<GatewayConfig> read_gateway_config(std::string_view text, const std::string& path, const SecretSources& sources,
                                          bool on_disk) {
  Reader reader(text, path, sources);
  std::optional<Value> document = reader.document();
  if (!document) return std::unexpected(reader.error());
  GatewayDraft draft;
  draft.source_path = path;
  read_members<GatewayDraft>(reader, *document, gateway_keys(), draft);
  check_listeners(reader, draft);
  check_tls_pair(reader, draft);
  check_credentials(reader, draft);
  check_later_features(reader, draft);
  if (on_disk) check_files(reader, draft);
  if (!reader.ok()) return std::unexpected(reader.error());
  if (draft.state_dir.empty()) draft.state_dir = reader.folder();
  draft.without_effect = reader.take_without_effect();
  return static_cast<GatewayConfig&&>(std::move(draft));
}

Result<GatewayConfig> parse_gateway_config(std::string_view text, const std::string& path) {
  return read_gateway_config(text, path, SecretSources::system(), false);
}

Result<GatewayConfig> load_gateway_config(const std::string& path) {
  std::string text = TRY(read_file(path, max_file_bytes));
  return read_gateway_config(text, path, SecretSources::system(), true);
}

}  // namespace hive::config
