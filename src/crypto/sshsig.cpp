#include "crypto/sshsig.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/log.h"
#include "base/strings.h"
#include "crypto/openssl.h"
#include "crypto/wire.h"

namespace hive::crypto {

namespace {

constexpr std::string_view magic = "SSHSIG";
constexpr std::uint32_t version = 1;
constexpr std::string_view hash_name = "sha512";
constexpr std::string_view begin_marker = "-----BEGIN SSH SIGNATURE-----";
constexpr std::string_view end_marker = "-----END SSH SIGNATURE-----";
constexpr size_t line_characters = 70;  // as ssh-keygen writes it
constexpr size_t max_text_bytes = 16384;

std::array<std::uint8_t, 64> sha512(std::string_view message) {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA512", nullptr);
  std::array<std::uint8_t, 64> digest{};
  if (algorithm == nullptr ||
      EVP_Digest(message.data(), message.size(), digest.data(), nullptr, algorithm, nullptr) != 1) {
    log::error("OpenSSL cannot compute SHA-512; stopping");
    std::abort();
  }
  return digest;
}

// What the key signs: the hash of the message, bound to its purpose.
std::vector<std::uint8_t> signed_bytes(std::string_view message, std::string_view name_space) {
  std::vector<std::uint8_t> bytes;
  WireWriter writer(bytes);
  writer.raw(magic);
  writer.string(name_space);
  writer.string("");
  writer.string(hash_name);
  writer.string(sha512(message));
  return bytes;
}

}  // namespace

std::vector<std::uint8_t> sshsig_sign(std::string_view message, std::string_view name_space, const PrivateKey& key) {
  std::vector<std::uint8_t> inner;
  WireWriter inner_writer(inner);
  inner_writer.string("ssh-ed25519");
  inner_writer.string(key.sign(signed_bytes(message, name_space)));

  std::vector<std::uint8_t> signature;
  WireWriter writer(signature);
  writer.raw(magic);
  writer.uint32(version);
  writer.string(key.public_key().blob());
  writer.string(name_space);
  writer.string("");
  writer.string(hash_name);
  writer.string(inner);
  return signature;
}

std::string sshsig_armor(std::span<const std::uint8_t> signature) {
  std::string encoded = to_base64(signature);
  std::string text(begin_marker);
  text += '\n';
  for (size_t at = 0; at < encoded.size(); at += line_characters) {
    text.append(encoded, at, line_characters).append("\n");
  }
  return text.append(end_marker).append("\n");
}

Result<std::vector<std::uint8_t>> sshsig_dearmor(std::string_view text) {
  text = trim(text);
  if (text.size() > max_text_bytes) return fail(ErrorCode::invalid_argument, "SSH signature is too large");
  if (!text.starts_with(begin_marker) || !text.ends_with(end_marker) ||
      text.size() < begin_marker.size() + end_marker.size()) {
    return fail(ErrorCode::invalid_argument, "not an SSH signature: the line \"{}\" or the END line is missing",
                begin_marker);
  }
  text.remove_prefix(begin_marker.size());
  text.remove_suffix(end_marker.size());
  std::string encoded;
  std::ranges::copy_if(text, std::back_inserter(encoded), [](char c) { return c != '\n' && c != '\r'; });
  return TRY_CONTEXT("SSH signature", from_base64(encoded));
}

Result<void> sshsig_verify(std::string_view message, std::string_view name_space,
                           std::span<const std::uint8_t> signature, const PublicKey& key) {
  WireReader reader(signature);
  if (!reader.literal(magic) || reader.uint32() != version) {
    return fail(ErrorCode::corrupt, "SSH signature: unknown version");
  }
  auto blob = reader.string();
  auto signed_name_space = reader.text();
  auto reserved = reader.string();
  auto hash = reader.text();
  auto inner = reader.string();
  if (!inner || !reader.at_end()) return fail(ErrorCode::corrupt, "SSH signature is damaged");
  if (!std::ranges::equal(*blob, key.blob())) {
    return fail(ErrorCode::permission_denied, "SSH signature is by another key than {}", key.fingerprint());
  }
  if (name_space.empty() || *signed_name_space != name_space) {
    return fail(ErrorCode::permission_denied, "SSH signature was made for {}, not for {}", quote(*signed_name_space),
                quote(name_space));
  }
  if (!reserved->empty() || *hash != hash_name) {
    return fail(ErrorCode::corrupt, "SSH signature uses {}; expected {}", quote(*hash), hash_name);
  }
  WireReader inner_reader(*inner);
  auto algorithm = inner_reader.text();
  auto raw = inner_reader.string();
  if (!raw || !inner_reader.at_end() || *algorithm != "ssh-ed25519") {
    return fail(ErrorCode::corrupt, "SSH signature is damaged");
  }
  if (!key.verify(signed_bytes(message, name_space), *raw)) {
    return fail(ErrorCode::corrupt, "SSH signature is wrong: the message was changed");
  }
  return {};
}

}  // namespace hive::crypto
