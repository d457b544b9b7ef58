#include "config/gateway_config.h"

#include "base/file.h"
#include "base/strings.h"
#include "config/address.h"
#include "config/document.h"
#include "config/file_mode.h"
#include "config/gateway_access.h"
#include "config/gateway_keys.h"
#include "config/gateway_rules.h"
#include "config/gateway_upstreams.h"

namespace hive::config {

namespace {

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

void check_later_features(Reader& reader, const GatewayDraft& draft) {
  if (draft.has_peers && !draft.has_cluster_secret) {
    reader.problem_with_file(
        "peer_gateways is set and cluster_secret is not; make one with: openssl rand -hex 32, the same on all");
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
  check_access(reader, draft);
  check_rules(reader, draft);
  check_upstreams(reader, draft);
  check_later_features(reader, draft);
  if (on_disk) check_files(reader, draft);
  if (!reader.ok()) return std::unexpected(reader.error());
  if (draft.state_dir.empty()) draft.state_dir = reader.folder();
  draft.without_effect = reader.take_without_effect();
  draft.lines = reader.take_lines();
  return static_cast<GatewayConfig&&>(std::move(draft));
}

std::string GatewayConfig::where(std::string_view field) const {
  auto line = lines.find(field);
  if (line == lines.end()) return fmt::format("{}: {} is not set", source_path, field);
  return fmt::format("{}:{}: {}", source_path, line->second, field);
}

Result<GatewayConfig> parse_gateway_config(std::string_view text, const std::string& path) {
  return parse_gateway_config(text, path, SecretSources::system());
}

Result<GatewayConfig> parse_gateway_config(std::string_view text, const std::string& path,
                                           const SecretSources& sources) {
  return read_gateway_config(text, path, sources, false);
}

Result<GatewayConfig> load_gateway_config(const std::string& path) {
  return load_gateway_config(path, SecretSources::system());
}

Result<GatewayConfig> load_gateway_config(const std::string& path, const SecretSources& sources) {
  std::string text = TRY(read_file(path, max_document_bytes));
  return read_gateway_config(text, path, sources, true);
}

}  // namespace hive::config
