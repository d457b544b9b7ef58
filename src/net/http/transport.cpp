#include "net/http/transport.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/sslerr.h>
#include <sys/socket.h>

#include "net/http/client_certificate.h"

namespace hive::net::http {

namespace {

Transport::Outcome socket_outcome(ssize_t result, Transport::Status when_blocked) {
  if (result >= 0) return {Transport::Status::ok, static_cast<std::size_t>(result)};
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {when_blocked, 0};
  return {Transport::Status::failed, 0};
}

}  // namespace

Transport::Outcome Transport::tls_outcome(int result) {
  if (result > 0) return {Status::ok, static_cast<std::size_t>(result)};
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {Status::want_read, 0};
    case SSL_ERROR_WANT_WRITE:
      return {Status::want_write, 0};
    case SSL_ERROR_ZERO_RETURN:
      return {Status::closed, 0};
    default:
      break;
  }
  tls_failed_ = true;
  unsigned long code = ERR_peek_error();
  met_plain_http_ = ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST;
  ERR_clear_error();
  return {Status::failed, 0};
}

Transport::Outcome Transport::handshake() {
  if (!ssl_) return {Status::ok, 0};
  ERR_clear_error();
  return tls_outcome(SSL_do_handshake(ssl_.get()));
}

std::shared_ptr<const ClientCertificate> Transport::client_certificate() const {
  return ssl_ ? read_client_certificate(ssl_.get()) : nullptr;
}

std::string Transport::client_certificate_problem() const {
  return ssl_ ? http::client_certificate_problem(ssl_.get()) : "";
}

bool Transport::belongs_to(const SSL_CTX* context) const {
  return ssl_ && SSL_get_SSL_CTX(ssl_.get()) == context;
}

Transport::Outcome Transport::read_some(std::span<char> buffer) {
  if (ssl_) {
    ERR_clear_error();
    int size = static_cast<int>(std::min<std::size_t>(buffer.size(), INT_MAX));
    return tls_outcome(SSL_read(ssl_.get(), buffer.data(), size));
  }
  ssize_t count = 0;
  do {
    count = ::recv(fd_, buffer.data(), buffer.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count == 0) return {Status::closed, 0};
  return socket_outcome(count, Status::want_read);
}

Transport::Outcome Transport::write_some(std::string_view data, bool more_follows) {
  if (ssl_) {
    ERR_clear_error();
    int size = static_cast<int>(std::min<std::size_t>(data.size(), INT_MAX));
    return tls_outcome(SSL_write(ssl_.get(), data.data(), size));
  }
  ssize_t count = 0;
  do {
    count = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL | (more_follows ? MSG_MORE : 0));
  } while (count < 0 && errno == EINTR);
  return socket_outcome(count, Status::want_write);
}

bool Transport::has_buffered_input() const {
  return ssl_ && SSL_has_pending(ssl_.get()) == 1;
}

void Transport::end_sending() {
  if (ssl_ && !tls_failed_ && SSL_is_init_finished(ssl_.get()) == 1) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  ::shutdown(fd_, SHUT_WR);
}

}  // namespace hive::net::http
