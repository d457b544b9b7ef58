#include "net/http/client_certificate.h"

#include <cstdlib>
#include <ctime>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace hive::net::http {

namespace {

constexpr std::size_t max_pem_bytes = std::size_t{1} << 20;
constexpr int max_chain_depth = 8;
constexpr long max_chain_bytes = 32768;  // of what an unknown client may send before it is known

struct BioDeleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct CertificateDeleter {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct OpensslTextDeleter {
  void operator()(unsigned char* text) const { OPENSSL_free(text); }
};
using CertificatePointer = std::unique_ptr<X509, CertificateDeleter>;

/// Two names would let a client choose by which it is known, depending on who looks.
std::string common_name(const X509* certificate) {
  const X509_NAME* subject = X509_get_subject_name(certificate);
  int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return "";
  unsigned char* raw = nullptr;
  int size = ASN1_STRING_to_UTF8(&raw, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) {
    ERR_clear_error();
    return "";
  }
  std::unique_ptr<unsigned char, OpensslTextDeleter> owner(raw);
  std::string name(reinterpret_cast<const char*>(raw), static_cast<std::size_t>(size));
  return name.find('\0') == std::string::npos && utf8::is_valid(name) ? name : "";
}

std::string fingerprint(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) != 1) return "";
  return to_hex({digest, size});
}

/// The epoch, which is long past, for a time that cannot be read.
WallTime end_of_life(const X509* certificate) {
  std::tm time{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) != 1) return {};
  return std::chrono::system_clock::from_time_t(::timegm(&time));
}

Result<void> add_authority(SSL_CTX* context, X509* certificate, const std::string& path) {
  char subject[256] = "";
  X509_NAME_oneline(X509_get_subject_name(certificate), subject, sizeof subject);
  // Whoever holds the key of a certificate in this file would be known by any name that it writes into another.
  if (X509_check_ca(certificate) == 0) {
    return fail(ErrorCode::invalid_argument,
                "{}: {} is not the certificate of an authority (CA:TRUE is missing); name the one that signs the "
                "clients' certificates",
                path, quote(subject));
  }
  if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) != 1 ||
      SSL_CTX_add_client_CA(context, certificate) != 1) {
    return fail(ErrorCode::invalid_argument, "{}: unusable certificate {} ({})", path, quote(subject),
                take_tls_error());
  }
  return {};
}

}  // namespace

Result<void> ask_for_client_certificate(SSL_CTX* context, const std::string& authorities_path) {
  std::string pem = TRY(read_file(authorities_path, max_pem_bytes));
  std::unique_ptr<BIO, BioDeleter> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  int count = 0;
  while (CertificatePointer certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    TRY(add_authority(context, certificate.get(), authorities_path));
    ++count;
  }
  bool reached_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (count == 0 || !reached_end) {
    return fail(ErrorCode::invalid_argument, "{}: {} ({})", authorities_path,
                count == 0 ? "no PEM certificate in it" : "a broken certificate in it", take_tls_error());
  }
  ERR_clear_error();
  // An authority in the file is an anchor, whether it signed itself or not.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_verify_depth(context, max_chain_depth);
  SSL_CTX_set_max_cert_list(context, max_chain_bytes);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  return {};
}

std::shared_ptr<const ClientCertificate> read_client_certificate(const SSL* session) {
  const X509* certificate = SSL_get0_peer_certificate(session);
  if (certificate == nullptr || (SSL_get_verify_mode(session) & SSL_VERIFY_PEER) == 0 ||
      SSL_get_verify_result(session) != X509_V_OK) {
    return nullptr;
  }
  return std::make_shared<const ClientCertificate>(
      ClientCertificate{common_name(certificate), fingerprint(certificate), end_of_life(certificate)});
}

std::string client_certificate_problem(const SSL* session) {
  long verdict = SSL_get_verify_result(session);
  return verdict == X509_V_OK ? "" : X509_verify_cert_error_string(verdict);
}

}  // namespace hive::net::http
