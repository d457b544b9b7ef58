#include "gateway/oidc/jwks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include <cjose/cjose.h>

#include "base/strings.h"
#include "protocol/json.h"

namespace hive::oidc {

namespace {

constexpr json::Limits set_limits = {.max_bytes = max_key_set_bytes, .max_depth = 8, .max_values = 8192};
constexpr std::size_t min_rsa_bits = 2048;
constexpr std::size_t max_rsa_bits = 8192;  // beyond it a signature costs more time than it is worth
constexpr std::size_t max_exponent_bytes = 8;

struct ReleaseKey {
  void operator()(cjose_jwk_t* key) const { cjose_jwk_release(key); }
};
struct ReleaseSignature {
  void operator()(cjose_jws_t* signature) const { cjose_jws_release(signature); }
};
using KeyPointer = std::unique_ptr<cjose_jwk_t, ReleaseKey>;

struct Key {
  std::optional<std::string> id;
  Algorithm algorithm = Algorithm::rs256;
  KeyPointer key;
};

struct Curve {
  std::string_view name;
  cjose_jwk_ec_curve id;
  std::size_t coordinate_bytes;
  Algorithm algorithm;
};

constexpr std::array<Curve, 3> curves = {{
    {"P-256", CJOSE_JWK_EC_P_256, 32, Algorithm::es256},
    {"P-384", CJOSE_JWK_EC_P_384, 48, Algorithm::es384},
    {"P-521", CJOSE_JWK_EC_P_521, 66, Algorithm::es512},
}};

bool is_rsa(Algorithm algorithm) {
  return algorithm != Algorithm::es256 && algorithm != Algorithm::es384 && algorithm != Algorithm::es512;
}

/// The members of one key; every reader says what is wrong in one line.
class KeyReader {
 public:
  explicit KeyReader(const std::vector<json::Member>& members) : members_(members) {}

  Result<Key> read() const {
    Key key;
    key.id = TRY(optional_text("kid"));
    if (key.id && key.id->size() > max_key_id_bytes) return fail(ErrorCode::invalid_argument, "kid is too long");
    TRY(check_purpose());
    for (std::string_view secret : {"d", "p", "q", "k"}) {
      if (json::find(members_, secret)) return fail(ErrorCode::invalid_argument, "it is private or symmetric");
    }
    std::optional<std::string> type = TRY(optional_text("kty"));
    if (type == "RSA") {
      TRY(read_rsa(key));
    } else if (type == "EC") {
      TRY(read_curve(key));
    } else {
      return fail(ErrorCode::invalid_argument, "kty is neither RSA nor EC");
    }
    return key;
  }

 private:
  Result<std::optional<std::string>> optional_text(std::string_view name) const {
    auto raw = json::find(members_, name);
    if (!raw) return std::nullopt;
    auto text = json::decode_string(*raw);
    if (!text) return fail(ErrorCode::invalid_argument, "{} is not text", name);
    return text;
  }

  Result<std::string> bytes(std::string_view name) const {
    std::optional<std::string> text = TRY(optional_text(name));
    if (!text || text->empty()) return fail(ErrorCode::invalid_argument, "{} is missing", name);
    return TRY_CONTEXT(name, decode_base64url(*text));
  }

  Result<void> check_purpose() const {
    std::optional<std::string> use = TRY(optional_text("use"));
    if (use && *use != "sig") return fail(ErrorCode::invalid_argument, "its use is not sig");
    auto raw = json::find(members_, "key_ops");
    if (!raw) return {};
    auto operations = TRY_CONTEXT("key_ops", json::parse_array(*raw, set_limits));
    bool verifies = std::ranges::any_of(
        operations, [](std::string_view operation) { return json::decode_string(operation) == "verify"; });
    if (!verifies) return fail(ErrorCode::invalid_argument, "its key_ops lack verify");
    return {};
  }

  /// What "alg" says, otherwise `usual`.
  Result<Algorithm> algorithm(Algorithm usual) const {
    std::optional<std::string> name = TRY(optional_text("alg"));
    if (!name) return usual;
    std::optional<Algorithm> known = algorithm_from_string(*name);
    if (!known) return fail(ErrorCode::invalid_argument, "alg {} is not accepted", quote(name->substr(0, 32)));
    return *known;
  }

  Result<void> read_rsa(Key& key) const {
    key.algorithm = TRY(algorithm(Algorithm::rs256));
    if (!is_rsa(key.algorithm)) {
      return fail(ErrorCode::invalid_argument, "alg {} is not of RSA", to_string(key.algorithm));
    }
    std::string modulus = TRY(bytes("n"));
    std::string exponent = TRY(bytes("e"));
    modulus.erase(0, modulus.find_first_not_of('\0'));
    exponent.erase(0, exponent.find_first_not_of('\0'));
    std::size_t bits =
        modulus.empty()
            ? 0
            : modulus.size() * 8 - static_cast<std::size_t>(std::countl_zero(static_cast<unsigned char>(modulus[0])));
    if (bits < min_rsa_bits || bits > max_rsa_bits) {
      return fail(ErrorCode::invalid_argument, "its RSA modulus has {} bits, not {} to {}", bits, min_rsa_bits,
                  max_rsa_bits);
    }
    bool is_sound = !exponent.empty() && exponent.size() <= max_exponent_bytes && exponent != std::string(1, 1) &&
                    (exponent.back() & 1) == 1;
    if (!is_sound) return fail(ErrorCode::invalid_argument, "its RSA exponent is unusable");
    cjose_jwk_rsa_keyspec spec{};
    spec.n = reinterpret_cast<std::uint8_t*>(modulus.data());
    spec.nlen = modulus.size();
    spec.e = reinterpret_cast<std::uint8_t*>(exponent.data());
    spec.elen = exponent.size();
    cjose_err error{};
    key.key.reset(cjose_jwk_create_RSA_spec(&spec, &error));
    if (!key.key) return fail(ErrorCode::invalid_argument, "unusable RSA key");
    return {};
  }

  Result<void> read_curve(Key& key) const {
    std::string name = TRY(optional_text("crv")).value_or("");
    const auto* curve = std::ranges::find(curves, name, &Curve::name);
    if (curve == curves.end()) return fail(ErrorCode::invalid_argument, "its curve is not P-256, P-384 or P-521");
    key.algorithm = TRY(algorithm(curve->algorithm));
    if (key.algorithm != curve->algorithm) {
      return fail(ErrorCode::invalid_argument, "alg {} is not of the curve {}", to_string(key.algorithm), name);
    }
    std::string x = TRY(bytes("x"));
    std::string y = TRY(bytes("y"));
    if (x.size() != curve->coordinate_bytes || y.size() != curve->coordinate_bytes) {
      return fail(ErrorCode::invalid_argument, "its coordinates have not {} bytes", curve->coordinate_bytes);
    }
    cjose_jwk_ec_keyspec spec{};
    spec.crv = curve->id;
    spec.x = reinterpret_cast<std::uint8_t*>(x.data());
    spec.xlen = x.size();
    spec.y = reinterpret_cast<std::uint8_t*>(y.data());
    spec.ylen = y.size();
    cjose_err error{};
    key.key.reset(cjose_jwk_create_EC_spec(&spec, &error));
    if (!key.key) return fail(ErrorCode::invalid_argument, "its point is not on the curve");
    return {};
  }

  const std::vector<json::Member>& members_;
};

bool has_good_signature(const Jwt& token, const Key& key) {
  cjose_err error{};
  std::unique_ptr<cjose_jws_t, ReleaseSignature> signature(
      cjose_jws_import(token.text.data(), token.text.size(), &error));
  return signature && cjose_jws_verify(signature.get(), key.key.get(), &error);
}

class CjoseKeySet final : public KeySet {
 public:
  CjoseKeySet(std::vector<Key> keys, std::vector<std::string> skipped)
      : keys_(std::move(keys)), skipped_(std::move(skipped)) {}

  Verdict verify(const Jwt& token) const override {
    Verdict verdict = Verdict::unknown_key;
    for (const Key& key : keys_) {
      if (token.key_id ? key.id != token.key_id : key.algorithm != token.algorithm) continue;
      if (key.algorithm != token.algorithm) {
        if (verdict == Verdict::unknown_key) verdict = Verdict::wrong_algorithm;
        continue;
      }
      if (has_good_signature(token, key)) return Verdict::good;
      verdict = Verdict::bad_signature;
    }
    // Without a key id nobody can tell a token of a newer key from a forged one.
    return !token.key_id && verdict == Verdict::bad_signature ? Verdict::unknown_key : verdict;
  }

  std::size_t size() const override { return keys_.size(); }
  const std::vector<std::string>& skipped() const override { return skipped_; }

 private:
  const std::vector<Key> keys_;
  const std::vector<std::string> skipped_;
};

}  // namespace

Result<std::shared_ptr<const KeySet>> KeySet::parse(std::string_view text) {
  auto members = TRY_CONTEXT("the key set", json::parse_object(text, set_limits));
  auto raw = json::find(members, "keys");
  if (!raw || !json::is_array(*raw)) return fail(ErrorCode::corrupt, "the key set has no list \"keys\"");
  auto elements = TRY_CONTEXT("the key set", json::parse_array(*raw, set_limits));
  if (elements.size() > max_keys) {
    return fail(ErrorCode::corrupt, "the key set has {} keys; at most {} are read", elements.size(), max_keys);
  }
  std::vector<Key> keys;
  std::vector<std::string> skipped;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    auto read = [&]() -> Result<Key> { return KeyReader(TRY(json::parse_object(elements[i], set_limits))).read(); };
    Result<Key> key = read();
    if (key) {
      keys.push_back(*std::move(key));
    } else {
      skipped.push_back(fmt::format("key {}: {}", i, key.error().message));
    }
  }
  if (keys.empty()) {
    return fail(ErrorCode::corrupt, "the key set has no usable key{}{}", skipped.empty() ? "" : "; ",
                skipped.empty() ? "" : skipped.front());
  }
  return std::make_shared<CjoseKeySet>(std::move(keys), std::move(skipped));
}

}  // namespace hive::oidc
