#include <algorithm>

#include "crypto/openssl.h"
#include "crypto/sha256.h"
#include "crypto/ssh_key.h"
#include "crypto/wire.h"

namespace hive::crypto {

namespace {

constexpr size_t max_blob_bytes = 16384;
constexpr size_t ed25519_key_bytes = 32;
constexpr size_t ed25519_signature_bytes = 64;

// RFC 4250 section 4.6.1: printable ASCII without comma, at most 64 characters.
bool is_algorithm_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 &&
         std::ranges::all_of(name, [](char c) { return c > 0x20 && c < 0x7f && c != ','; });
}

std::string_view next_field(std::string_view& rest) {
  size_t begin = std::min(rest.find_first_not_of(" \t"), rest.size());
  rest.remove_prefix(begin);
  size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  std::string_view field = rest.substr(0, end);
  rest.remove_prefix(end);
  return field;
}

}  // namespace

Result<PublicKey> PublicKey::from_blob(std::span<const std::uint8_t> blob) {
  if (blob.size() > max_blob_bytes) {
    return fail(ErrorCode::invalid_argument, "public key of {} bytes is larger than {}", blob.size(), max_blob_bytes);
  }
  WireReader reader(blob);
  auto type = reader.text();
  if (!type || !is_algorithm_name(*type)) {
    return fail(ErrorCode::invalid_argument, "public key data does not begin with the name of an algorithm");
  }
  if (*type == "ssh-ed25519") {
    auto raw = reader.string();
    if (!raw || raw->size() != ed25519_key_bytes || !reader.at_end()) {
      return fail(ErrorCode::invalid_argument, "ssh-ed25519 key data is damaged: expected exactly one key of {} bytes",
                  ed25519_key_bytes);
    }
  }
  PublicKey key;
  key.type_ = *type;
  key.blob_.assign(blob.begin(), blob.end());
  return key;
}

Result<PublicKey> PublicKey::from_line(std::string_view line) {
  std::string_view rest = trim(line);
  if (rest.starts_with("-----BEGIN")) {
    return fail(ErrorCode::invalid_argument, "expected a public key line (ssh-ed25519 AAAA... comment), got a {}",
                rest.find("PRIVATE") != std::string_view::npos ? "private key; use the .pub file" : "PEM file");
  }
  if (rest.find_first_of("\r\n") != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "expected one public key, got several lines");
  }
  std::string_view type = next_field(rest);
  std::string_view encoded = next_field(rest);
  if (type.empty() || encoded.empty()) {
    return fail(ErrorCode::invalid_argument, "expected a public key line: ssh-ed25519 AAAA... comment");
  }
  if (encoded.size() > max_blob_bytes * 4 / 3 + 4) {
    return fail(ErrorCode::invalid_argument, "public key of {} characters is too large", encoded.size());
  }
  auto blob = TRY_CONTEXT("public key data", from_base64(encoded));
  PublicKey key = TRY(from_blob(blob));
  if (key.type_ != type) {
    return fail(ErrorCode::invalid_argument, "the line says {} but the key inside is {}", quote(type),
                quote(key.type_));
  }
  key.comment_ = trim(rest);
  return key;
}

PublicKey PublicKey::from_ed25519(const std::array<std::uint8_t, 32>& raw, std::string comment) {
  PublicKey key;
  key.type_ = "ssh-ed25519";
  WireWriter writer(key.blob_);
  writer.string(key.type_);
  writer.string(raw);
  key.comment_ = std::move(comment);
  return key;
}

std::array<std::uint8_t, 32> PublicKey::ed25519() const {
  std::array<std::uint8_t, 32> raw{};
  if (is_ed25519() && blob_.size() >= raw.size()) {
    std::copy(blob_.end() - static_cast<std::ptrdiff_t>(raw.size()), blob_.end(), raw.begin());
  }
  return raw;
}

std::string PublicKey::fingerprint() const {
  std::string encoded = to_base64(sha256(blob_));
  while (encoded.ends_with('='))
    encoded.pop_back();
  return "SHA256:" + encoded;
}

std::string PublicKey::to_line() const {
  std::string line = type_ + " " + to_base64(blob_);
  if (!comment_.empty()) line += " " + comment_;
  return line;
}

bool PublicKey::verify(std::span<const std::uint8_t> message, std::span<const std::uint8_t> signature) const {
  if (!is_ed25519() || signature.size() != ed25519_signature_bytes) return false;
  auto raw = ed25519();
  OpensslPtr<EVP_PKEY> key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, raw.data(), raw.size()));
  OpensslPtr<EVP_MD_CTX> context(EVP_MD_CTX_new());
  if (!key || !context) return false;
  if (EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1) return false;
  return EVP_DigestVerify(context.get(), signature.data(), signature.size(), message.data(), message.size()) == 1;
}

}  // namespace hive::crypto
