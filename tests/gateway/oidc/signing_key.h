#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>

#include "base/strings.h"

/// An issuer for tests: keys made by OpenSSL, and the tokens that they sign.
namespace hive::oidc::test {

inline std::string base64url(std::string_view bytes) {
  std::string text = to_base64(as_bytes(bytes));
  while (text.ends_with('='))
    text.pop_back();
  for (char& c : text)
    c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text;
}

class SigningKey {
 public:
  static SigningKey rsa(unsigned bits = 2048) { return SigningKey(EVP_RSA_gen(bits), ""); }
  /// "P-256", "P-384", "P-521"
  static SigningKey curve(const std::string& name) { return SigningKey(EVP_EC_gen(name.c_str()), name); }

  /// The public JWK; `more` are further members, each with a comma before it: R"(,"kid":"a")".
  [[nodiscard]] std::string jwk(std::string_view more = "") const {
    if (curve_.empty()) {
      return R"({"kty":"RSA","n":")" + base64url(number(OSSL_PKEY_PARAM_RSA_N, 0)) + R"(","e":")" +
             base64url(number(OSSL_PKEY_PARAM_RSA_E, 0)) + "\"" + std::string(more) + "}";
    }
    return R"({"kty":"EC","crv":")" + curve_ + R"(","x":")" +
           base64url(number(OSSL_PKEY_PARAM_EC_PUB_X, coordinate_bytes())) + R"(","y":")" +
           base64url(number(OSSL_PKEY_PARAM_EC_PUB_Y, coordinate_bytes())) + "\"" + std::string(more) + "}";
  }

  [[nodiscard]] std::string private_exponent() const { return number(OSSL_PKEY_PARAM_RSA_D, 0); }

  /// A signature of the kind that `algorithm` names ("RS256").
  [[nodiscard]] std::string sign(std::string_view text, const std::string& algorithm) const {
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
    EVP_PKEY_CTX* key_context = nullptr;
    std::string digest = "SHA" + algorithm.substr(2);
    EVP_DigestSignInit(context.get(), &key_context, EVP_get_digestbyname(digest.c_str()), nullptr, key_.get());
    if (algorithm.starts_with("PS")) {
      EVP_PKEY_CTX_set_rsa_padding(key_context, RSA_PKCS1_PSS_PADDING);
      EVP_PKEY_CTX_set_rsa_pss_saltlen(key_context, RSA_PSS_SALTLEN_DIGEST);
    }
    std::string signature(1024, '\0');
    std::size_t size = signature.size();
    EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                   reinterpret_cast<const unsigned char*>(text.data()), text.size());
    signature.resize(size);
    return curve_.empty() ? signature : raw_signature(signature);
  }

  [[nodiscard]] std::string token(const std::string& header, const std::string& payload,
                                  const std::string& algorithm) const {
    std::string text = base64url(header) + "." + base64url(payload);
    return text + "." + base64url(sign(text, algorithm));
  }

 private:
  SigningKey(EVP_PKEY* key, std::string curve) : key_(key, &EVP_PKEY_free), curve_(std::move(curve)) {}

  [[nodiscard]] int coordinate_bytes() const { return curve_ == "P-256" ? 32 : curve_ == "P-384" ? 48 : 66; }

  /// Big-endian, `size` bytes long; 0: as short as it is.
  [[nodiscard]] std::string number(const char* name, int size) const {
    BIGNUM* value = nullptr;
    EVP_PKEY_get_bn_param(key_.get(), name, &value);
    std::string bytes = big_endian(value, size);
    BN_free(value);
    return bytes;
  }

  static std::string big_endian(const BIGNUM* value, int size) {
    std::string bytes(static_cast<std::size_t>(size == 0 ? BN_num_bytes(value) : size), '\0');
    BN_bn2binpad(value, reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
    return bytes;
  }

  /// JOSE writes the two numbers beside each other (RFC 7518 section 3.4), OpenSSL as DER.
  [[nodiscard]] std::string raw_signature(const std::string& der) const {
    const auto* data = reinterpret_cast<const unsigned char*>(der.data());
    std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> pair(
        d2i_ECDSA_SIG(nullptr, &data, static_cast<long>(der.size())), &ECDSA_SIG_free);
    return big_endian(ECDSA_SIG_get0_r(pair.get()), coordinate_bytes()) +
           big_endian(ECDSA_SIG_get0_s(pair.get()), coordinate_bytes());
  }

  std::shared_ptr<EVP_PKEY> key_;
  std::string curve_;
};

inline std::string key_set(const std::vector<std::string>& keys) {
  return "{\"keys\":[" + join(keys, ",") + "]}";
}

}  // namespace hive::oidc::test
