#pragma once

#include <memory>

#include <openssl/evp.h>

/// Owners for OpenSSL's handles. Only source files of this room include this header.
namespace hive::crypto {

struct OpensslDeleter {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(EVP_MD* digest) const { EVP_MD_free(digest); }
};

template <class T>
using OpensslPtr = std::unique_ptr<T, OpensslDeleter>;

}  // namespace hive::crypto
