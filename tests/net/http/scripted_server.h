#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unique_fd.h"

/// A server for tests of clients: it accepts on a free loopback port and lets a script speak on each connection, right
/// or wrong, in its own thread.
namespace hive::test {

/// A self-signed certificate and its key, as OpenSSL objects and as PEM.
struct TestCertificate {
  std::shared_ptr<X509> certificate;
  std::shared_ptr<EVP_PKEY> key;

  [[nodiscard]] std::string pem() const {
    std::unique_ptr<BIO, decltype(&BIO_free_all)> out(BIO_new(BIO_s_mem()), &BIO_free_all);
    PEM_write_bio_X509(out.get(), certificate.get());
    char* data = nullptr;
    long size = BIO_get_mem_data(out.get(), &data);
    return std::string(data, static_cast<size_t>(size));
  }
};

/// `names` as in a certificate: "DNS:localhost,IP:127.0.0.1". Valid until `days` from now (negative: expired).
inline TestCertificate make_certificate(const std::string& names, int days = 30) {
  TestCertificate made{std::shared_ptr<X509>(X509_new(), &X509_free),
                       std::shared_ptr<EVP_PKEY>(EVP_EC_gen("P-256"), &EVP_PKEY_free)};
  X509* certificate = made.certificate.get();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -86400L * 60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400L * days);
  X509_set_pubkey(certificate, made.key.get());
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test gateway"), -1, -1,
                             0);
  X509_set_issuer_name(certificate, name);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
  X509_sign(certificate, made.key.get(), EVP_sha256());
  return made;
}

/// One accepted connection.
class Peer {
 public:
  Peer(UniqueFd fd, SSL* session) : fd_(std::move(fd)), session_(session, &SSL_free) {}

  /// Head and body (by Content-Length) of the next request; empty when the client is gone.
  std::string read_request() {
    std::string request;
    while (true) {
      size_t head_end = request.find("\r\n\r\n");
      if (head_end != std::string::npos) {
        size_t at = request.find("Content-Length: ");
        size_t body = at < head_end ? std::stoul(request.substr(at + 16)) : 0;
        if (request.size() >= head_end + 4 + body) return request;
      }
      char buffer[16384];
      long count =
          session_ ? SSL_read(session_.get(), buffer, sizeof buffer) : ::recv(fd_.get(), buffer, sizeof buffer, 0);
      if (count <= 0) return "";
      request.append(buffer, static_cast<size_t>(count));
    }
  }

  /// False when the client is gone.
  bool send(std::string_view text) {
    while (!text.empty()) {
      long count = session_ ? SSL_write(session_.get(), text.data(), static_cast<int>(text.size()))
                            : ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      text.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

  /// A whole answer with Content-Length; `headers` end in CRLF each.
  bool answer(int status, std::string_view body, std::string_view headers = "Content-Type: application/json\r\n") {
    return send("HTTP/1.1 " + std::to_string(status) + " Test\r\n" + std::string(headers) +
                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
  }

  /// Waits until the client closes the connection (or the server is stopped).
  void wait_for_close() {
    char byte = 0;
    while (::recv(fd_.get(), &byte, 1, 0) > 0) {
    }
  }

  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  std::unique_ptr<SSL, decltype(&SSL_free)> session_;
};

class ScriptedServer {
 public:
  using Script = std::function<void(Peer&)>;

  explicit ScriptedServer(Script script, const TestCertificate* certificate = nullptr) : script_(std::move(script)) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to sockets that the other side may have closed
    if (certificate != nullptr) {
      tls_.reset(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
      SSL_CTX_use_certificate(tls_.get(), certificate->certificate.get());
      SSL_CTX_use_PrivateKey(tls_.get(), certificate->key.get());
    }
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_.get(), 16) != 0 ||
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~ScriptedServer() {
    stopped_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (Connection& connection : connections_) {
      ::shutdown(connection.fd, SHUT_RDWR);
      connection.thread.join();
      ::close(connection.fd);
    }
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string url(const std::string& path = "", const std::string& host = "127.0.0.1") const {
    return (tls_ ? "https://" : "http://") + host + ":" + std::to_string(port_) + path;
  }
  [[nodiscard]] int accepted() const { return accepted_; }

 private:
  struct Connection {
    int fd;  ///< a duplicate that outlives the script, to wake it up at the end
    std::thread thread;
  };

  void accept_all() {
    while (!stopped_) {
      UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd) return;
      ++accepted_;
      int keeper = ::dup(fd.get());
      connections_.push_back({keeper, std::thread([this, raw = fd.release()] { serve(UniqueFd(raw)); })});
    }
  }

  void serve(UniqueFd fd) {
    int raw = fd.get();
    SSL* session = nullptr;
    if (tls_) {
      session = SSL_new(tls_.get());
      SSL_set_fd(session, raw);
      if (SSL_accept(session) != 1) {
        SSL_free(session);
        ::shutdown(raw, SHUT_RDWR);
        return;
      }
    }
    Peer peer(std::move(fd), session);
    script_(peer);
    // The duplicate keeps the connection open, so it is ended here.
    ::shutdown(raw, SHUT_RDWR);
  }

  Script script_;
  std::shared_ptr<SSL_CTX> tls_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopped_ = false;
  std::atomic<int> accepted_ = 0;
  std::vector<Connection> connections_;
  std::thread acceptor_;
};

}  // namespace hive::test
