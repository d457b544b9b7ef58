#include "config/gateway_check.h"

#include <cerrno>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strings.h"
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
    check_tokens();
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

  void check_tokens() {
    auto is_short = [](const Secret& token) { return !token.empty() && token.reveal().size() < short_token; };
    const std::string advice = fmt::format(
        "is shorter than {} characters and may be guessed; make one with: openssl rand -hex 32", short_token);
    if (is_short(config_.auth_token)) warning("auth_token", advice);
    for (std::size_t i = 0; i < config_.tokens.size(); ++i) {
      if (is_short(config_.tokens[i].token)) warning(fmt::format("tokens[{}]", i), advice);
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
