#include "crypto/sha256.h"

#include <cstdlib>

#include "base/log.h"
#include "base/strings.h"
#include "crypto/openssl.h"

namespace hive::crypto {

namespace {

// Fails only without memory or without a provider, and there is nothing sensible to do without a hash.
void must(bool succeeded) {
  if (succeeded) return;
  log::error("OpenSSL cannot compute SHA-256; stopping");
  std::abort();
}

// Looking an algorithm up by name costs more than hashing a short line, so it is done once.
const EVP_MD* algorithm() {
  static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  must(fetched != nullptr);
  return fetched;
}

}  // namespace

struct Sha256::State {
  OpensslPtr<EVP_MD_CTX> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  must(state_->context != nullptr && EVP_DigestInit_ex2(state_->context.get(), algorithm(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::uint8_t> bytes) {
  must(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1);
}

void Sha256::update(std::string_view text) {
  update(as_bytes(text));
}

Digest Sha256::finish() {
  Digest digest{};
  must(EVP_DigestFinal_ex(state_->context.get(), digest.data(), nullptr) == 1);
  must(EVP_DigestInit_ex2(state_->context.get(), nullptr, nullptr) == 1);
  return digest;
}

Digest sha256(std::span<const std::uint8_t> bytes) {
  thread_local Sha256 hasher;
  hasher.update(bytes);
  return hasher.finish();
}

Digest sha256(std::string_view text) {
  return sha256(as_bytes(text));
}

}  // namespace hive::crypto
