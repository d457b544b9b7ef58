#include "crypto/tls_pair.h"

#include <memory>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pemerr.h>
#include <openssl/x509.h>

#include "base/file.h"
#include "crypto/openssl.h"

namespace hive::crypto {

namespace {

constexpr size_t max_pem_bytes = size_t{1} << 20;

struct BioDeleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct CertificateDeleter {
  void operator()(X509* certificate) const { X509_free(certificate); }
};

using BioPtr = std::unique_ptr<BIO, BioDeleter>;
using CertificatePtr = std::unique_ptr<X509, CertificateDeleter>;

// Failures that were judged here must not show up in somebody else's OpenSSL call on this thread.
struct ErrorQueueGuard {
  ~ErrorQueueGuard() { ERR_clear_error(); }
};

struct PassphraseRequest {
  bool asked = false;
};

// Without it OpenSSL would prompt on the terminal.
int refuse_passphrase(char*, int, int, void* request) {
  static_cast<PassphraseRequest*>(request)->asked = true;
  return -1;
}

BioPtr reader_of(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

}  // namespace

Result<void> check_certificate_and_key(const std::string& cert_path, const std::string& key_path) {
  ErrorQueueGuard guard;
  std::string cert_text = TRY(read_file(cert_path, max_pem_bytes));
  std::string key_text = TRY(read_file(key_path, max_pem_bytes, FileSecrecy::owner_only));
  BioPtr cert_reader = reader_of(cert_text);
  BioPtr key_reader = reader_of(key_text);
  if (!cert_reader || !key_reader) return fail(ErrorCode::resource_exhausted, "{}: out of memory", cert_path);
  PassphraseRequest request;
  CertificatePtr certificate(PEM_read_bio_X509(cert_reader.get(), nullptr, refuse_passphrase, &request));
  if (!certificate) return fail(ErrorCode::invalid_argument, "{}: holds no certificate in PEM", cert_path);
  request.asked = false;
  OpensslPtr<EVP_PKEY> key(PEM_read_bio_PrivateKey(key_reader.get(), nullptr, refuse_passphrase, &request));
  OPENSSL_cleanse(key_text.data(), key_text.size());
  if (!key && request.asked) {
    return fail(ErrorCode::invalid_argument,
                "{}: the key is encrypted, and a service cannot ask for a passphrase; decrypt it with: openssl pkey "
                "-in {} -out NEW",
                key_path, key_path);
  }
  if (!key) return fail(ErrorCode::invalid_argument, "{}: holds no private key in PEM", key_path);
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return fail(ErrorCode::invalid_argument, "{}: is the key of another certificate than {}", key_path, cert_path);
  }
  return {};
}

Result<std::size_t> count_certificates(const std::string& path) {
  ErrorQueueGuard guard;
  std::string text = TRY(read_file(path, max_pem_bytes));
  BioPtr reader = reader_of(text);
  if (!reader) return fail(ErrorCode::resource_exhausted, "{}: out of memory", path);
  PassphraseRequest request;
  std::size_t count = 0;
  while (CertificatePtr(PEM_read_bio_X509(reader.get(), nullptr, refuse_passphrase, &request)) != nullptr) {
    ++count;
  }
  // At the end of the file OpenSSL finds no more beginning of a block; anything else is a block that is broken.
  bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (!at_end) {
    return fail(ErrorCode::invalid_argument, "{}: certificate {} cannot be read", path, count + 1);
  }
  if (count == 0) return fail(ErrorCode::invalid_argument, "{}: holds no certificate in PEM", path);
  return count;
}

}  // namespace hive::crypto
