#include "config/gateway_check.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strings.h"
#include "config/reader.h"
#include "crypto/ssh_key.h"
#include "crypto/tls_pair.h"

namespace hive::config {

namespace {

constexpr std::size_t max_authorized_keys_bytes = std::size_t{16} << 20;
constexpr std::size_t short_token = 16;

class Checker {
 public:
  explicit Checker(const GatewayConfig& config) : config_(config) {}

  GatewayFindings run() {
    check_host_key();
    check_authorized_keys();
    check_tls();
    check_state_dir();
    check_audit_log();
    check_authorities("client_ca_cert_path", config_.client_ca_cert_path);
    check_authorities("oidc_ca_cert_path", config_.oidc_ca_cert_path);
    check_tokens();
    check_scopes();
    check_approvals();
    check_proxy();
    check_upstreams();
    return std::move(findings_);
  }

 private:
  void error(std::string_view field, std::string_view what) { findings_.errors.push_back(line(field, what)); }
  void warning(std::string_view field, std::string_view what) { findings_.warnings.push_back(line(field, what)); }
  [[nodiscard]] std::string line(std::string_view field, std::string_view what) const {
    return fmt::format("{}: {}: {}", config_.source_path, field, what);
  }

  void check_host_key() {
    const std::string& path = config_.host_key_path;
    if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
      return error("host_key_path",
                   fmt::format("{} is not there; make it with: ssh-keygen -t ed25519 -N \"\" -C myrmex-gateway -f {}",
                               path, path));
    }
    if (auto key = crypto::PrivateKey::load(path); !key) error("host_key_path", key.error().message);
  }

  void check_authorized_keys() {
    const std::string& path = config_.authorized_keys_path;
    auto text = read_file(path, max_authorized_keys_bytes);
    if (!text) return error("authorized_keys_path", text.error().message);
    crypto::AuthorizedKeys keys = crypto::parse_authorized_keys(*text);
    for (const crypto::RefusedLine& refused : keys.refused) {
      warning("authorized_keys_path",
              fmt::format("{}: line {} authorises nobody: {}", path, refused.line_number, refused.reason));
    }
    if (keys.keys.empty()) {
      warning("authorized_keys_path", fmt::format("{} holds no key that is accepted: no agent can connect", path));
    }
  }

  void check_tls() {
    if (config_.tls_cert_path.empty()) return;
    auto checked = crypto::check_certificate_and_key(config_.tls_cert_path, config_.tls_key_path);
    if (checked) return;
    // Without an HTTPS listener nobody reads the files.
    if (config_.http_addr.empty()) return warning("tls_cert_path, tls_key_path", checked.error().message);
    error("tls_cert_path, tls_key_path", checked.error().message);
  }

  void check_state_dir() {
    struct stat status{};
    if (::stat(config_.state_dir.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
      error("state_dir", fmt::format("{} is not a folder", config_.state_dir));
    }
  }

  void check_audit_log() {
    const std::string& path = config_.audit_log_path;
    if (path.empty()) {
      return warning("audit_log_path", "is not set: calls of tier write and admin will be refused");
    }
    std::string folder = std::filesystem::path(path).parent_path().string();
    if (folder.empty()) folder = ".";
    struct stat status{};
    if (::stat(folder.c_str(), &status) != 0) {
      int code = errno;
      if (code != ENOENT) return error("audit_log_path", system_error(code, folder).message);
      return error("audit_log_path",
                   fmt::format("the folder {} does not exist; make it, writable by the gateway's user "
                               "alone: install -d -m 0700 {}",
                               folder, folder));
    }
    if (!S_ISDIR(status.st_mode)) return error("audit_log_path", fmt::format("{} is not a folder", folder));
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
      return error("audit_log_path", fmt::format("{} is not a regular file", path));
    }
    // The gateway may well run as another user than whoever checks.
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
      warning("audit_log_path", fmt::format("the user who checks cannot write to the folder {}", folder));
    }
  }

  void check_authorities(std::string_view field, const std::string& path) {
    if (path.empty()) return;
    if (auto count = crypto::count_certificates(path); !count) error(field, count.error().message);
  }

  void check_tokens() {
    // How long a token is cannot be told from its hash.
    auto is_short = [](const Secret& token) {
      return !token.empty() && !token_hash(token.reveal()) && token.reveal().size() < short_token;
    };
    const std::string advice = fmt::format(
        "is shorter than {} characters and may be guessed; make one with: openssl rand -hex 32", short_token);
    if (is_short(config_.auth_token)) warning("auth_token", advice);
    for (const StaticToken& token : config_.tokens) {
      if (is_short(token.token)) warning(token.field, advice);
    }
    for (const ScopedToken& token : config_.scoped_tokens) {
      if (is_short(token.credential.token)) warning(token.credential.field, advice);
    }
  }

  void check_scopes() {
    std::set<std::string_view> known;
    for (const auto& [agent, tags] : config_.agent_tags) {
      known.insert(tags.begin(), tags.end());
    }
    for (const ScopedToken& token : config_.scoped_tokens) {
      for (const std::string& tag : token.tags) {
        if (tag.contains('*') || known.contains(tag)) continue;
        warning(token.credential.field + ".tags",
                fmt::format("no agent has the tag {}; give it to one in agent_tags", quote(tag)));
      }
    }
  }

  void check_approvals() {
    for (const auto& [tier, rule] : config_.approvals_required) {
      std::string field = "approvals_required." + tier;
      if (std::ranges::find(config_.require_approval_tiers, tier) == config_.require_approval_tiers.end()) {
        warning(field, fmt::format("changes nothing: the tier {} does not stand in require_approval_tiers", tier));
      }
      // An identity provider may know more members than the file.
      if (rule.groups.empty() || !config_.oidc_issuer.empty()) continue;
      std::set<std::string_view> people;
      for (const std::string& group : rule.groups) {
        auto members = config_.approval_groups.find(group);
        if (members != config_.approval_groups.end()) people.insert(members->second.begin(), members->second.end());
      }
      if (people.size() < rule.count) {
        warning(field, fmt::format("wants {} people and its groups have {}: nothing can be approved", rule.count,
                                   people.size()));
      }
    }
    check_requesters();
  }

  // Two tokens without identities are two people to the gateway, whoever holds them.
  void check_requesters() {
    if (config_.require_approval_tiers.empty()) return;
    std::vector<std::string> nameless;
    for (const StaticToken& token : config_.tokens) {
      if (token.identity.empty()) nameless.push_back(token.field);
    }
    for (const ScopedToken& token : config_.scoped_tokens) {
      if (token.credential.identity.empty()) nameless.push_back(token.credential.field);
    }
    if (nameless.empty()) return;
    std::size_t left_out = nameless.size() > 3 ? nameless.size() - 3 : 0;
    nameless.resize(nameless.size() - left_out);
    std::string who = join(nameless, ", ");
    if (left_out > 0) who += fmt::format(" and {} more", left_out);
    warning("require_approval_tiers",
            fmt::format("{}: no identity is set, so one person with two tokens could approve their own request; write "
                        "\"TOKEN\": {{\"role\": \"operator\", \"identity\": \"alice\"}}",
                        who));
  }

  void check_proxy() {
    if (!config_.trusted_proxy_secret.empty()) return;
    if (config_.trusted_proxy_identity_header.empty() && config_.trusted_proxy_secret_header.empty()) return;
    warning("trusted_proxy_secret", "is not set: the headers of a proxy are ignored");
  }

  // A server that cannot be reached does not keep the gateway from starting.
  void check_upstreams() {
    for (const UpstreamConfig& upstream : config_.upstreams) {
      if (config_.agent_tags.contains(upstream.name)) {
        warning(upstream.field + ".name",
                fmt::format("{} is the id of an agent in agent_tags as well: calls and scopes "
                            "that name it mean either; rename one of them",
                            quote(upstream.name)));
      }
      if (upstream.ca_certificate_path.empty()) continue;
      if (auto count = crypto::count_certificates(upstream.ca_certificate_path); !count) {
        warning(upstream.field + ".ca_cert_path", count.error().message);
      }
    }
  }

  const GatewayConfig& config_;
  GatewayFindings findings_;
};

}  // namespace

GatewayFindings check_gateway_files(const GatewayConfig& config) {
  return Checker(config).run();
}

}  // namespace hive::config
