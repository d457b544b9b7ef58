#include "cli/probe.h"

#include <algorithm>
#include <cerrno>
#include <memory>

#include <arpa/inet.h>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <netdb.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/strings.h"

namespace hive::cli {

namespace {

template <auto Free>
struct FreeWith {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
template <class T, auto Free>
using Owned = std::unique_ptr<T, FreeWith<Free>>;

using AddressList = Owned<addrinfo, ::freeaddrinfo>;

Result<AddressList> look_up(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  int code = ::getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &found);
  if (code == EAI_SYSTEM) return std::unexpected(system_error(errno, quote(endpoint.host)));
  if (code != 0) return fail(ErrorCode::not_found, "{}: {}", quote(endpoint.host), ::gai_strerror(code));
  return AddressList(found);
}

std::string address_text(const addrinfo& address) {
  char host[NI_MAXHOST] = "";
  int code = ::getnameinfo(address.ai_addr, address.ai_addrlen, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return code == 0 ? host : "?";
}

/// Waits until the descriptor is ready or the deadline passes.
Result<void> wait_for(int fd, short events, SteadyTime deadline) {
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - system_clock().steady_now());
    if (left.count() <= 0) return fail(ErrorCode::timed_out, "no answer in time");
    pollfd entry{fd, events, 0};
    int count = ::poll(&entry, 1, static_cast<int>(left.count()));
    if (count > 0) return {};
    if (count < 0 && errno != EINTR) return std::unexpected(system_error(errno, "poll"));
  }
}

Result<UniqueFd> connect_to(const addrinfo& address, SteadyTime deadline) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  std::string name = address_text(address);
  if (!fd) return std::unexpected(system_error(errno, name));
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return std::unexpected(system_error(errno, name));
  TRY_CONTEXT(name, wait_for(fd.get(), POLLOUT, deadline));
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return std::unexpected(system_error(error, name));
  return fd;
}

std::string name_text(const X509_NAME* name) {
  Owned<BIO, BIO_free_all> out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  char* data = nullptr;
  long size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string address_of(const ASN1_OCTET_STRING* octets) {
  char text[INET6_ADDRSTRLEN] = "";
  int size = ASN1_STRING_length(octets);
  if (size != 4 && size != 16) return "?";
  ::inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(octets), text, sizeof text);
  return text;
}

std::vector<std::string> alternative_names(const X509* certificate) {
  std::vector<std::string> names;
  Owned<GENERAL_NAMES, GENERAL_NAMES_free> found(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int k = 0; found && k < sk_GENERAL_NAME_num(found.get()) && k < 64; ++k) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(found.get(), k);
    if (name->type == GEN_DNS) {
      const auto* data = ASN1_STRING_get0_data(name->d.dNSName);
      names.emplace_back(reinterpret_cast<const char*>(data), static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      names.push_back(address_of(name->d.iPAddress));
    }
  }
  return names;
}

void describe_certificate(X509* certificate, TlsReport& report) {
  report.subject = name_text(X509_get_subject_name(certificate));
  report.issuer = name_text(X509_get_issuer_name(certificate));
  report.names = alternative_names(certificate);
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) == 1) {
    auto when = std::chrono::system_clock::from_time_t(::timegm(&end));
    report.not_after = format_rfc3339(when);
    report.days_left = std::chrono::floor<std::chrono::days>(when - system_clock().wall_now()).count();
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) == 1) report.sha256 = to_hex({digest, size});
}

bool is_address(const std::string& host) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 || ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

}  // namespace

Result<Endpoint> endpoint_of(const std::string& url) {
  auto parsed = boost::urls::parse_uri(url);
  if (!parsed) return fail(ErrorCode::invalid_argument, "not a URL");
  Endpoint endpoint{std::string(parsed->scheme()), parsed->host(), std::string(parsed->port())};
  if (endpoint.host.starts_with('[') && endpoint.host.ends_with(']')) {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  }
  if (endpoint.port.empty()) endpoint.port = endpoint.scheme == "https" ? "443" : "80";
  return endpoint;
}

Result<std::vector<std::string>> resolve(const Endpoint& endpoint) {
  AddressList list = TRY(look_up(endpoint));
  std::vector<std::string> addresses;
  for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
    std::string text = address_text(*address);
    if (std::ranges::find(addresses, text) == addresses.end()) addresses.push_back(std::move(text));
  }
  return addresses;
}

Result<TcpConnection> connect_tcp(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  AddressList list = TRY(look_up(endpoint));
  Error last{ErrorCode::unavailable, "no address"};
  for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
    SteadyTime begin = system_clock().steady_now();
    auto fd = connect_to(*address, begin + timeout);
    if (fd) {
      auto took = std::chrono::duration_cast<std::chrono::microseconds>(system_clock().steady_now() - begin);
      return TcpConnection{*std::move(fd), address_text(*address), took};
    }
    last = fd.error();
  }
  return std::unexpected(last);
}

Result<TlsReport> inspect_tls(const TcpConnection& connection, const Endpoint& endpoint,
                              const std::string& ca_certificate_path, std::chrono::milliseconds timeout) {
  Owned<SSL_CTX, SSL_CTX_free> context(SSL_CTX_new(TLS_client_method()));
  if (!context) return fail(ErrorCode::internal, "OpenSSL could not be started");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  // An untrusted certificate is looked at as well; the verdict is read afterwards.
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  if (ca_certificate_path.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else if (SSL_CTX_load_verify_file(context.get(), ca_certificate_path.c_str()) != 1) {
    return fail(ErrorCode::invalid_argument, "CA certificate {}: cannot be read as PEM", ca_certificate_path);
  }
  Owned<SSL, SSL_free> session(SSL_new(context.get()));
  if (!session) return fail(ErrorCode::internal, "OpenSSL could not be started");
  X509_VERIFY_PARAM* parameters = SSL_get0_param(session.get());
  if (is_address(endpoint.host)) {
    X509_VERIFY_PARAM_set1_ip_asc(parameters, endpoint.host.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(parameters, endpoint.host.c_str(), 0);
    SSL_set_tlsext_host_name(session.get(), endpoint.host.c_str());
  }
  SSL_set_fd(session.get(), connection.fd.get());
  SteadyTime deadline = system_clock().steady_now() + timeout;
  while (true) {
    int code = SSL_connect(session.get());
    if (code == 1) break;
    int error = SSL_get_error(session.get(), code);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
      TRY(wait_for(connection.fd.get(), error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline));
    } else {
      return fail(ErrorCode::unavailable, "no TLS on this port: the handshake failed");
    }
  }
  TlsReport report;
  report.protocol = SSL_get_version(session.get());
  report.cipher = SSL_get_cipher_name(session.get());
  if (X509* certificate = SSL_get0_peer_certificate(session.get())) describe_certificate(certificate, report);
  long verdict = SSL_get_verify_result(session.get());
  if (verdict != X509_V_OK) report.problem = X509_verify_cert_error_string(verdict);
  report.is_wrong_name = verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH;
  report.is_expired = verdict == X509_V_ERR_CERT_HAS_EXPIRED || verdict == X509_V_ERR_CERT_NOT_YET_VALID;
  return report;
}

}  // namespace hive::cli
