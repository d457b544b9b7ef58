#include "swarm/keys.h"

#include <string_view>

#include "base/file.h"
#include "crypto/ssh_key.h"

namespace hive::swarm {

namespace {

constexpr std::string_view begin_marker = "-----BEGIN OPENSSH PRIVATE KEY-----";
/// A hundred thousand keys of about 400 bytes.
constexpr std::size_t max_file_bytes = std::size_t{64} << 20;

}  // namespace

Result<std::string> make_keys(const std::string& prefix, std::size_t count, const std::string& path) {
  std::string keys;
  std::string lines;
  for (std::size_t number = 1; number <= count; ++number) {
    const crypto::PrivateKey key = TRY(crypto::PrivateKey::generate(fmt::format("{}-{}", prefix, number)));
    keys += key.to_openssh();
    lines += key.public_key().to_line() + '\n';
  }
  TRY(write_file_atomically(path, keys, 0600));
  return lines;
}

Result<std::vector<Identity>> load_keys(const std::string& path, std::size_t limit) {
  const std::string text = TRY(read_file(path, max_file_bytes, FileSecrecy::owner_only));
  std::vector<Identity> found;
  std::size_t at = text.find(begin_marker);
  while (at != std::string::npos && (limit == 0 || found.size() < limit)) {
    const std::size_t next = text.find(begin_marker, at + begin_marker.size());
    const std::string_view block = std::string_view(text).substr(at, next == std::string::npos ? next : next - at);
    const crypto::PrivateKey key =
        TRY_CONTEXT(fmt::format("{}: key {}", path, found.size() + 1), crypto::PrivateKey::from_openssh(block));
    found.push_back({key.public_key().comment(), config::Secret(std::string(block))});
    at = next;
  }
  if (found.empty() || found.size() < limit) {
    return fail(ErrorCode::invalid_argument, "{} has {} keys; make more with: swarm keys COUNT FILE", path,
                found.size());
  }
  return found;
}

}  // namespace hive::swarm
