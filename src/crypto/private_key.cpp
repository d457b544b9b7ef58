#include <algorithm>
#include <cstdlib>

#include <openssl/crypto.h>

#include "base/file.h"
#include "base/log.h"
#include "crypto/openssl.h"
#include "crypto/random.h"
#include "crypto/ssh_key.h"
#include "crypto/wire.h"

// The file format is OpenSSH's PROTOCOL.key.
namespace hive::crypto {

namespace {

constexpr std::string_view begin_marker = "-----BEGIN OPENSSH PRIVATE KEY-----";
constexpr std::string_view end_marker = "-----END OPENSSH PRIVATE KEY-----";
constexpr std::string_view magic("openssh-key-v1\0", 15);
constexpr size_t max_file_bytes = 65536;
constexpr size_t padding_block_bytes = 8;  // of the cipher "none"
constexpr size_t line_characters = 70;     // as ssh-keygen writes it

// Wipes a buffer that held a secret, whichever way the scope is left.
template <class Buffer>
class Wipe {
 public:
  explicit Wipe(Buffer& buffer) : buffer_(buffer) {}
  ~Wipe() { OPENSSL_cleanse(buffer_.data(), buffer_.size()); }
  Wipe(const Wipe&) = delete;
  Wipe& operator=(const Wipe&) = delete;

 private:
  Buffer& buffer_;
};

std::unexpected<Error> damaged(std::string_view what) {
  return fail(ErrorCode::corrupt, "OpenSSH private key is damaged: {}", what);
}

Result<void> refuse_other_formats(std::string_view text) {
  if (text.starts_with(begin_marker)) return {};
  if (text.starts_with("-----BEGIN") && text.substr(0, 64).find("PRIVATE KEY") != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument,
                "a PEM private key; expected an OpenSSH Ed25519 key, make one with: ssh-keygen -t ed25519 -N ''");
  }
  if (text.starts_with("ssh-") || text.starts_with("ecdsa-") || text.starts_with("sk-")) {
    return fail(ErrorCode::invalid_argument, "this is a public key; expected the private key file");
  }
  return fail(ErrorCode::invalid_argument, "not an OpenSSH private key: the line \"{}\" is missing", begin_marker);
}

Result<std::string> encoded_body(std::string_view text) {
  text = trim(text);
  TRY(refuse_other_formats(text));
  text.remove_prefix(begin_marker.size());
  if (!text.starts_with('\n') && !text.starts_with("\r\n")) return damaged("text after the BEGIN line");
  if (!text.ends_with(end_marker)) return damaged("the END line is missing, the file may be cut");
  text.remove_suffix(end_marker.size());
  std::string encoded;
  encoded.reserve(text.size());
  std::ranges::copy_if(text, std::back_inserter(encoded), [](char c) { return c != '\n' && c != '\r'; });
  return encoded;
}

OpensslPtr<EVP_PKEY> key_of_seed(std::span<const std::uint8_t> seed) {
  return OpensslPtr<EVP_PKEY>(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
}

Result<std::array<std::uint8_t, 32>> public_of(EVP_PKEY* key) {
  std::array<std::uint8_t, 32> raw{};
  size_t size = raw.size();
  if (key == nullptr || EVP_PKEY_get_raw_public_key(key, raw.data(), &size) != 1 || size != raw.size()) {
    return fail(ErrorCode::internal, "OpenSSL cannot derive an Ed25519 public key");
  }
  return raw;
}

struct Contents {
  std::span<const std::uint8_t> seed;
  std::span<const std::uint8_t> public_raw;
  std::string comment;
};

// The part that is encrypted in a key with a passphrase.
Result<Contents> parse_private_part(std::span<const std::uint8_t> bytes) {
  if (bytes.empty() || bytes.size() % padding_block_bytes != 0) return damaged("the private part has a wrong length");
  WireReader reader(bytes);
  auto first_check = reader.uint32();
  auto second_check = reader.uint32();
  if (!first_check || !second_check || *first_check != *second_check) return damaged("its two check numbers differ");
  auto type = reader.text();
  if (!type) return damaged("the private part is cut");
  if (*type != "ssh-ed25519") {
    return fail(ErrorCode::invalid_argument, "the file holds a key of type {}; only ssh-ed25519 is supported",
                quote(*type));
  }
  auto public_raw = reader.string();
  auto secret = reader.string();
  auto comment = reader.text();
  if (!comment) return damaged("the private part is cut");
  if (public_raw->size() != 32 || secret->size() != 64) return damaged("the Ed25519 key has a wrong length");
  auto padding = reader.rest();
  for (size_t i = 0; i < padding.size(); ++i) {
    if (padding[i] != i + 1) return damaged("its padding is wrong");
  }
  if (padding.size() >= padding_block_bytes) return damaged("its padding is too long");
  if (!std::ranges::equal(secret->subspan(32), *public_raw)) return damaged("its two copies of the public key differ");
  // A line break in a comment would forge a second line wherever the public key is written.
  if (std::ranges::any_of(*comment, [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
    return damaged("its comment has control characters");
  }
  return Contents{secret->first(32), *public_raw, std::string(*comment)};
}

Result<std::span<const std::uint8_t>> parse_envelope(std::span<const std::uint8_t> bytes, PublicKey& outer_key) {
  WireReader reader(bytes);
  if (!reader.literal(magic)) return damaged("it does not begin with openssh-key-v1");
  auto cipher = reader.text();
  auto kdf = reader.text();
  auto kdf_options = reader.string();
  auto key_count = reader.uint32();
  if (!key_count) return damaged("it is cut");
  if (*cipher != "none") {
    return fail(ErrorCode::invalid_argument,
                "the key is encrypted with a passphrase (cipher {}), which a service cannot ask for; remove it with: "
                "ssh-keygen -p -N '' -f FILE",
                quote(*cipher));
  }
  if (*kdf != "none" || !kdf_options->empty()) return damaged("cipher \"none\" with a key derivation");
  if (*key_count != 1) {
    return fail(ErrorCode::invalid_argument, "the file holds {} keys; expected exactly one", *key_count);
  }
  auto public_blob = reader.string();
  auto private_part = reader.string();
  if (!private_part) return damaged("it is cut");
  if (!reader.at_end()) return damaged("data after the key");
  outer_key = TRY_CONTEXT("OpenSSH private key", PublicKey::from_blob(*public_blob));
  return *private_part;
}

}  // namespace

PrivateKey::PrivateKey() = default;

PrivateKey::PrivateKey(const PrivateKey&) = default;
PrivateKey& PrivateKey::operator=(const PrivateKey&) = default;

PrivateKey::PrivateKey(PrivateKey&& other) noexcept
    : seed_(other.seed_), public_key_(std::move(other.public_key_)), handle_(std::move(other.handle_)) {
  OPENSSL_cleanse(other.seed_.data(), other.seed_.size());
}

PrivateKey& PrivateKey::operator=(PrivateKey&& other) noexcept {
  if (this != &other) {
    seed_ = other.seed_;
    public_key_ = std::move(other.public_key_);
    handle_ = std::move(other.handle_);
    OPENSSL_cleanse(other.seed_.data(), other.seed_.size());
  }
  return *this;
}

PrivateKey::~PrivateKey() {
  OPENSSL_cleanse(seed_.data(), seed_.size());
}

Result<PrivateKey> PrivateKey::generate(std::string comment) {
  PrivateKey key;
  random_bytes(key.seed_);
  auto handle = key_of_seed(key.seed_);
  key.public_key_ = PublicKey::from_ed25519(TRY(public_of(handle.get())), std::move(comment));
  key.handle_ = std::shared_ptr<void>(std::shared_ptr<EVP_PKEY>(std::move(handle)));
  return key;
}

Result<PrivateKey> PrivateKey::from_openssh(std::string_view text) {
  if (text.size() > max_file_bytes) {
    return fail(ErrorCode::invalid_argument, "private key of {} bytes is larger than {}", text.size(), max_file_bytes);
  }
  std::string encoded = TRY(encoded_body(text));
  Wipe wipe_encoded(encoded);
  auto decoded = from_base64(encoded);
  if (!decoded) return damaged(decoded.error().message);
  Wipe wipe_decoded(*decoded);

  PublicKey outer_key = PublicKey::from_ed25519({});
  auto private_part = TRY(parse_envelope(*decoded, outer_key));
  Contents contents = TRY(parse_private_part(private_part));
  PrivateKey key;
  std::ranges::copy(contents.seed, key.seed_.begin());
  auto handle = key_of_seed(key.seed_);
  auto derived = TRY(public_of(handle.get()));
  if (!std::ranges::equal(derived, contents.public_raw)) return damaged("the public key does not belong to the secret");
  key.public_key_ = PublicKey::from_ed25519(derived, std::move(contents.comment));
  if (!(key.public_key_ == outer_key)) return damaged("its two copies of the public key differ");
  key.handle_ = std::shared_ptr<void>(std::shared_ptr<EVP_PKEY>(std::move(handle)));
  return key;
}

Result<PrivateKey> PrivateKey::load(const std::string& path) {
  std::string text = TRY(read_file(path, max_file_bytes, FileSecrecy::owner_only));
  Wipe wipe_text(text);
  return TRY_CONTEXT(path, from_openssh(text));
}

std::string PrivateKey::to_openssh() const {
  std::vector<std::uint8_t> private_part;
  private_part.reserve(512 + public_key_.comment().size());  // no reallocation, which would leave a copy behind
  Wipe wipe_private_part(private_part);
  WireWriter inner(private_part);
  std::array<std::uint8_t, 4> check{};
  random_bytes(check);
  inner.raw(check);
  inner.raw(check);
  auto public_raw = public_key_.ed25519();
  inner.string("ssh-ed25519");
  inner.string(public_raw);
  inner.uint32(64);
  inner.raw(seed_);
  inner.raw(public_raw);
  inner.string(public_key_.comment());
  for (std::uint8_t pad = 1; private_part.size() % padding_block_bytes != 0; ++pad)
    private_part.push_back(pad);

  std::vector<std::uint8_t> envelope;
  envelope.reserve(private_part.size() + 256);
  Wipe wipe_envelope(envelope);
  WireWriter outer(envelope);
  outer.raw(magic);
  outer.string("none");
  outer.string("none");
  outer.string("");
  outer.uint32(1);
  outer.string(public_key_.blob());
  outer.string(private_part);

  std::string encoded = to_base64(envelope);
  Wipe wipe_encoded(encoded);
  std::string text;
  text.reserve(encoded.size() * 2 + 128);
  text.append(begin_marker).append("\n");
  for (size_t at = 0; at < encoded.size(); at += line_characters) {
    text.append(encoded, at, line_characters).append("\n");
  }
  return text.append(end_marker).append("\n");
}

std::array<std::uint8_t, 64> PrivateKey::sign(std::span<const std::uint8_t> message) const {
  std::array<std::uint8_t, 64> signature{};
  size_t size = signature.size();
  OpensslPtr<EVP_MD_CTX> context(EVP_MD_CTX_new());
  auto* key = static_cast<EVP_PKEY*>(handle_.get());
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key) != 1 ||
      EVP_DigestSign(context.get(), signature.data(), &size, message.data(), message.size()) != 1) {
    // Only without memory or for a key that was moved away; an empty signature would pass for a real one.
    log::error("OpenSSL cannot sign; stopping");
    std::abort();
  }
  return signature;
}

}  // namespace hive::crypto
