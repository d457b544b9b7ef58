#include "agent/host_key_trust.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "crypto/known_hosts.h"

namespace hive::agent {

namespace {

constexpr size_t max_file_bytes = size_t{1} << 20;

/// The keys of lines without a host, and the file's other lines with their numbers kept.
struct SplitFile {
  std::vector<crypto::PublicKey> keys;
  std::vector<size_t> line_numbers;
  std::string other_lines;
};

/// A line that names a type of key where a host should stand can only be a key without a host.
bool begins_with_key_type(std::string_view line) {
  constexpr std::string_view types[] = {"ssh-ed25519 ", "ssh-rsa ", "ssh-dss ", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"};
  return std::ranges::any_of(types, [&](std::string_view type) { return line.starts_with(type); });
}

/// Fails on a line that is neither: half of a key, left by a crash, must not look like a file without keys.
Result<SplitFile> split_file(std::string_view text, const std::string& path) {
  SplitFile result;
  size_t number = 0;
  for (const std::string_view whole_line : split(text, '\n')) {
    const std::string_view line = trim(whole_line);
    ++number;
    if (begins_with_key_type(line)) {
      result.keys.push_back(TRY_CONTEXT(fmt::format("{}:{}", path, number), crypto::PublicKey::from_line(line)));
      result.line_numbers.push_back(number);
    } else if (line.empty() || line.starts_with('#') || line.find_first_of(" \t") != std::string_view::npos) {
      result.other_lines += line;
    } else {
      return fail(ErrorCode::corrupt, "{}:{}: neither a host and its key nor a key alone", path, number);
    }
    result.other_lines += '\n';
  }
  return result;
}

std::unexpected<Error> mismatch(const config::GatewayAddress& gateway, const crypto::PublicKey& shown,
                                std::string_view expected, std::string_view where, std::string_view remedy) {
  return fail(ErrorCode::permission_denied,
              "host key mismatch for {}: the gateway shows {}, but {} has {}; somebody may be intercepting the "
              "connection. If the gateway's key was replaced on purpose, {}",
              gateway.to_string(), shown.fingerprint(), where, expected, remedy);
}

}  // namespace

Result<HostKeyTrust> HostKeyTrust::create(const config::AgentConfig& config) {
  HostKeyTrust trust;
  trust.config_path_ = config.source_path;
  trust.path_ =
      config.known_host_key_path.empty() ? config.private_key_path + ".gateway_hostkey" : config.known_host_key_path;
  if (!config.gateway_host_key.empty()) {
    trust.pin_ = TRY_CONTEXT(fmt::format("{}: gateway_host_key", config.source_path),
                             crypto::PublicKey::from_line(config.gateway_host_key));
  }
  return trust;
}

Result<void> HostKeyTrust::verify(const config::GatewayAddress& gateway, const crypto::PublicKey& key) const {
  std::string text;
  if (TRY(judge(gateway, key, text)) != Standing::unknown) return {};
  return remember(gateway, key, std::move(text));
}

Result<HostKeyTrust::Standing> HostKeyTrust::judge(const config::GatewayAddress& gateway,
                                                   const crypto::PublicKey& key) const {
  std::string text;
  return judge(gateway, key, text);
}

Result<HostKeyTrust::Standing> HostKeyTrust::judge(const config::GatewayAddress& gateway, const crypto::PublicKey& key,
                                                   std::string& text) const {
  if (pin_ && *pin_ == key) return Standing::pinned;
  if (!pin_) return judge_by_file(gateway, key, text);
  return mismatch(gateway, key, pin_->fingerprint(), fmt::format("gateway_host_key in {}", config_path_),
                  fmt::format("set gateway_host_key to {}", quote(key.to_line())));
}

Result<HostKeyTrust::Standing> HostKeyTrust::judge_by_file(const config::GatewayAddress& gateway,
                                                           const crypto::PublicKey& key, std::string& text) const {
  if (auto content = read_file(path_, max_file_bytes)) {
    text = std::move(*content);
  } else if (content.error().code != ErrorCode::not_found) {
    return fail(
        ErrorCode::permission_denied,
        "cannot check the host key of {}: {}; make the file readable for the agent, or set gateway_host_key in {}",
        gateway.to_string(), content.error().message, config_path_);
  }
  const auto parts = split_file(text, path_);
  if (!parts) {
    return fail(ErrorCode::corrupt, "cannot check the host key of {}: {}; mend or remove that line",
                gateway.to_string(), parts.error().message);
  }
  const SplitFile& file = *parts;
  const crypto::KnownHost known = crypto::lookup_known_host(file.other_lines, gateway.host, gateway.port);
  if (!known.unreadable.empty()) {
    const crypto::RefusedLine& line = known.unreadable.front();
    return fail(ErrorCode::corrupt, "cannot check the host key of {}: {}:{}: {}; mend or remove that line",
                gateway.to_string(), path_, line.line_number, line.reason);
  }
  const std::string name = gateway.port == 22 ? gateway.host : fmt::format("[{}]:{}", gateway.host, gateway.port);
  switch (known.judge(key)) {
    case crypto::HostKeyVerdict::known:
      return Standing::known;
    case crypto::HostKeyVerdict::revoked:
      return fail(ErrorCode::permission_denied, "the host key {} of {} is marked as revoked in {}", key.fingerprint(),
                  gateway.to_string(), path_);
    case crypto::HostKeyVerdict::changed:
      return mismatch(gateway, key, known.keys.front().fingerprint(),
                      fmt::format("{}:{}", path_, known.line_numbers.front()),
                      fmt::format("run: ssh-keygen -R '{}' -f '{}'", name, path_));
    case crypto::HostKeyVerdict::unknown:
      break;
  }
  for (const crypto::PublicKey& trusted : file.keys) {
    if (trusted == key) return Standing::known;
  }
  if (!file.keys.empty()) {
    return mismatch(gateway, key, file.keys.front().fingerprint(),
                    fmt::format("{}:{} (for every address)", path_, file.line_numbers.front()),
                    fmt::format("run: sed -i {}d '{}'", file.line_numbers.front(), path_));
  }
  return Standing::unknown;
}

Result<void> HostKeyTrust::remember(const config::GatewayAddress& gateway, const crypto::PublicKey& key,
                                    std::string text) const {
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  text += TRY(crypto::format_known_host(gateway.host, gateway.port, key));
  text += '\n';
  if (const Result<void> written = write_file_atomically(path_, text, 0600); !written) {
    return fail(
        ErrorCode::permission_denied,
        "cannot remember the host key of {}: {}; make the folder writable for the agent, or set gateway_host_key "
        "in {} to {}",
        gateway.to_string(), written.error().message, config_path_, quote(key.to_line()));
  }
  log::warning("trusting the gateway's host key on first use",
               {{"gateway", gateway.to_string()}, {"key", key.fingerprint()}, {"file", path_}});
  return {};
}

}  // namespace hive::agent
