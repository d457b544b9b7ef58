#include "net/http/tls_context.h"

#include <cerrno>
#include <cstring>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include "base/file.h"
#include "net/http/client_certificate.h"

namespace hive::net::http {

namespace {

constexpr size_t max_pem_bytes = size_t{1} << 20;

int socket_of(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  ssize_t count = ::send(socket_of(bio), data, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  ssize_t count = ::recv(socket_of(bio), data, static_cast<size_t>(size), 0);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_read(bio);
  if (count == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(count);
}

long bio_control(BIO* bio, int command, long, void*) {
  switch (command) {
    case BIO_CTRL_FLUSH:
      return 1;
    case BIO_CTRL_EOF:
      return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
    default:
      return 0;
  }
}

int bio_create(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

const BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without SIGPIPE");
    if (made != nullptr) {
      BIO_meth_set_write(made, bio_write);
      BIO_meth_set_read(made, bio_read);
      BIO_meth_set_ctrl(made, bio_control);
      BIO_meth_set_create(made, bio_create);
    }
    return made;
  }();
  return method;
}

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in, unsigned in_size,
                    void*) {
  static constexpr unsigned char ours[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, ours, sizeof ours - 1, in, in_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

struct BioDeleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct CertificateDeleter {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct KeyDeleter {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

/// A key that needs a passphrase is an error, never a prompt in a daemon.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

Result<void> use_certificate_chain(SSL_CTX* context, const std::string& path) {
  std::string pem = TRY(read_file(path, max_pem_bytes));
  std::unique_ptr<BIO, BioDeleter> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  std::unique_ptr<X509, CertificateDeleter> leaf(PEM_read_bio_X509_AUX(bio.get(), nullptr, no_passphrase, nullptr));
  if (!leaf) return fail(ErrorCode::invalid_argument, "{}: no PEM certificate in it ({})", path, take_tls_error());
  if (SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return fail(ErrorCode::invalid_argument, "{}: unusable certificate ({})", path, take_tls_error());
  }
  while (X509* issuer = PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, issuer) != 1) {
      X509_free(issuer);
      return fail(ErrorCode::invalid_argument, "{}: unusable chain certificate ({})", path, take_tls_error());
    }
  }
  ERR_clear_error();
  return {};
}

Result<void> use_private_key(SSL_CTX* context, const std::string& path, const std::string& certificate_path) {
  std::string pem = TRY(read_file(path, max_pem_bytes, FileSecrecy::owner_only));
  std::unique_ptr<BIO, BioDeleter> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  std::unique_ptr<EVP_PKEY, KeyDeleter> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  OPENSSL_cleanse(pem.data(), pem.size());
  if (!key) {
    return fail(ErrorCode::invalid_argument, "{}: no unencrypted PEM private key in it ({})", path, take_tls_error());
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return fail(ErrorCode::invalid_argument, "{}: does not belong to the certificate {} ({})", path, certificate_path,
                take_tls_error());
  }
  return {};
}

}  // namespace

void SslContextDeleter::operator()(SSL_CTX* context) const {
  SSL_CTX_free(context);
}

void SslDeleter::operator()(SSL* ssl) const {
  SSL_free(ssl);
}

std::string take_tls_error() {
  unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no further reason";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "unknown reason";
}

Result<SslContextPointer> make_server_tls_context(const std::string& certificate_path, const std::string& key_path,
                                                  const std::string& client_ca_path) {
  ERR_clear_error();
  SslContextPointer context(SSL_CTX_new(TLS_server_method()));
  if (!context) return fail(ErrorCode::internal, "cannot create a TLS context: {}", take_tls_error());
  SSL_CTX* raw = context.get();
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                               SSL_OP_PRIORITIZE_CHACHA);
  // Pieces of a record may be offered again from another address, and buffers of idle connections are given back.
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  static constexpr unsigned char session_context[] = "myrmex-hive";
  bool configured = SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION) == 1 &&
                    SSL_CTX_set_cipher_list(raw,
                                            "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
                                            "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:"
                                            "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256") == 1 &&
                    SSL_CTX_set_ciphersuites(
                        raw, "TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256") == 1 &&
                    SSL_CTX_set1_groups_list(raw, "X25519:P-256:P-384") == 1 &&
                    SSL_CTX_set_session_id_context(raw, session_context, sizeof session_context - 1) == 1;
  if (!configured) return fail(ErrorCode::internal, "cannot configure TLS: {}", take_tls_error());
  // One resumption ticket is enough; the cache of sessions on our side would only hold memory.
  SSL_CTX_set_num_tickets(raw, 1);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_timeout(raw, 3600);
  SSL_CTX_set_alpn_select_cb(raw, choose_protocol, nullptr);
  TRY(use_certificate_chain(raw, certificate_path));
  TRY(use_private_key(raw, key_path, certificate_path));
  if (!client_ca_path.empty()) TRY(ask_for_client_certificate(raw, client_ca_path));
  return context;
}

Result<SslPointer> make_server_tls_session(SSL_CTX* context, int fd) {
  ERR_clear_error();
  SslPointer ssl(SSL_new(context));
  BIO* bio = socket_method() != nullptr ? BIO_new(socket_method()) : nullptr;
  if (!ssl || bio == nullptr) {
    BIO_free(bio);
    return fail(ErrorCode::resource_exhausted, "cannot create a TLS session: {}", take_tls_error());
  }
  // A BIO's data is a pointer; ours is a number.
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));  // NOLINT(performance-no-int-to-ptr)
  SSL_set_bio(ssl.get(), bio, bio);
  SSL_set_accept_state(ssl.get());
  return ssl;
}

}  // namespace hive::net::http
