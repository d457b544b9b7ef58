#include "net/http/curl_transfer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <openssl/x509_vfy.h>

#include "base/file.h"
#include "base/strings.h"

namespace hive::net::http {

namespace {

constexpr size_t max_header_count = 256;
constexpr size_t max_header_bytes = 65536;
constexpr size_t max_ca_file_bytes = size_t{8} << 20;

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool is_field_value(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); });
}

std::string printable_detail(const char* buffer, CURLcode code) {
  std::string_view detail(buffer);
  return escape_for_terminal(trim(detail.empty() ? std::string_view(curl_easy_strerror(code)) : detail));
}

std::string certificate_problem(CURL* easy, const char* buffer, CURLcode code) {
  std::string_view detail(buffer);
  if (detail.find("subject name") != std::string_view::npos ||
      detail.find("subjectAltName") != std::string_view::npos) {
    return "it is not made out for this host name";
  }
  long verdict = X509_V_OK;
  curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &verdict);
  // libcurl starts with "unspecified", which says less than its own text.
  if (verdict != X509_V_OK && verdict != X509_V_ERR_UNSPECIFIED) return X509_verify_cert_error_string(verdict);
  return printable_detail(buffer, code);
}

std::string timeout_text(const char* buffer, const RequestOptions& request) {
  bool is_connected = std::string_view(buffer).starts_with("SSL");  // libcurl's own text is all that tells them apart
  auto waited =
      request.timeout.count() > 0 ? std::min(request.connect_timeout, request.timeout) : request.connect_timeout;
  return fmt::format("{} within {} ms", is_connected ? "connected, but no TLS handshake" : "no connection",
                     waited.count());
}

Result<CurlHeaderList> make_header_list(const Headers& headers) {
  // libcurl would wait a second for servers that do not know "Expect: 100-continue"; a name alone removes the header.
  std::vector<std::string> lines = {"Expect:"};
  for (const auto& [name, value] : headers) {
    lines.push_back(value.empty() ? name + ";" : fmt::format("{}: {}", name, value));
  }
  CurlHeaderList list;
  for (const std::string& line : lines) {
    curl_slist* grown = curl_slist_append(list.get(), line.c_str());
    if (grown == nullptr) return fail(ErrorCode::internal, "out of memory");
    static_cast<void>(list.release());
    list.reset(grown);
  }
  return list;
}

template <class Value>
void set(CURL* easy, CURLoption option, Value value) {
  // Fails only when libcurl was built without the option; prepare() checks the two that guard anything.
  curl_easy_setopt(easy, option, value);
}

}  // namespace

std::string_view ClientResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

bool is_loopback_host(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  std::string lower = lower_case(host);
  if (lower == "localhost" || lower.ends_with(".localhost") || lower == "::1") return true;
  std::vector<std::string_view> parts = split(lower, '.');
  return parts.size() == 4 && parts[0] == "127" && std::ranges::all_of(parts, [](std::string_view part) {
           auto number = parse_int64(part);
           return number && *number >= 0 && *number <= 255;
         });
}

/// Names what is wrong without repeating the URL, which may carry a secret.
Result<Target> check_request(const RequestOptions& request) {
  auto parsed = boost::urls::parse_uri(request.url);
  if (!parsed) return fail(ErrorCode::invalid_argument, "not a URL: use the form https://HOST:PORT");
  const boost::urls::url_view& url = *parsed;
  std::string scheme = lower_case(url.scheme());
  if (scheme != "http" && scheme != "https") {
    return fail(ErrorCode::invalid_argument, "URL scheme {}: only http and https are supported", quote(scheme));
  }
  if (url.has_userinfo()) {
    return fail(ErrorCode::invalid_argument, "the URL carries a user or password, which would show in logs: remove it");
  }
  if (url.encoded_host().empty()) return fail(ErrorCode::invalid_argument, "the URL has no host");
  if (!is_token(request.method))
    return fail(ErrorCode::invalid_argument, "not an HTTP method: {}", quote(request.method));
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name)) return fail(ErrorCode::invalid_argument, "not a header name: {}", quote(name));
    if (!is_field_value(value)) {
      return fail(ErrorCode::invalid_argument,
                  "header {}: the value contains a line break or another control character", name);
    }
  }
  Target target;
  target.host = std::string(url.encoded_host());
  std::string port(url.port());
  if (port.empty()) port = scheme == "https" ? "443" : "80";
  target.authority = escape_for_terminal(target.host + ":" + port);
  return target;
}

/// A CA file that cannot be used is the caller's mistake, and libcurl would report it as a failed handshake.
Result<void> check_ca_file(const std::string& path) {
  if (path.empty()) return {};
  auto content = read_file(path, max_ca_file_bytes);
  if (!content) return fail(ErrorCode::invalid_argument, "CA certificate {}", content.error().message);
  if (content->find("-----BEGIN ") == std::string::npos) {
    return fail(ErrorCode::invalid_argument, "CA certificate {}: no PEM certificate in this file", path);
  }
  return {};
}

void initialise_curl() {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(initialised);
}

Result<void> Transfer::prepare(HeaderCallback on_header, BodyCallback on_body, void* context) {
  CURL* easy = easy_.get();
  header_list_ = TRY(make_header_list(request_.headers));
  if (curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK ||
      curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, request_.verify_tls ? 1L : 0L) != CURLE_OK) {
    return fail(ErrorCode::internal, "this libcurl is too old or has no TLS");
  }
  set(easy, CURLOPT_SSL_VERIFYHOST, request_.verify_tls ? 2L : 0L);
  set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(easy, CURLOPT_URL, request_.url.c_str());
  set(easy, CURLOPT_HTTPHEADER, header_list_.get());
  set(easy, CURLOPT_USERAGENT, "myrmex/" HIVE_VERSION);
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  set(easy, CURLOPT_TCP_NODELAY, 1L);
  set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request_.connect_timeout.count()));
  set(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request_.timeout.count()));
  set(easy, CURLOPT_ERRORBUFFER, error_buffer_.data());
  set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (!request_.ca_certificate_path.empty()) {
    // Trust this file alone, not the system's store beside it.
    set(easy, CURLOPT_CAINFO, request_.ca_certificate_path.c_str());
    set(easy, CURLOPT_CAPATH, static_cast<char*>(nullptr));
  }
  if (!request_.client_certificate_path.empty()) {
    set(easy, CURLOPT_SSLCERT, request_.client_certificate_path.c_str());
    set(easy, CURLOPT_SSLKEY, request_.client_key_path.c_str());
  }
  if (is_loopback_host(target_.host)) set(easy, CURLOPT_PROXY, "");
  if (request_.method == "HEAD") {
    set(easy, CURLOPT_NOBODY, 1L);
  } else if (request_.method != "GET" || !request_.body.empty()) {
    set(easy, CURLOPT_POSTFIELDS, request_.body.c_str());
    set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    set(easy, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }
  set(easy, CURLOPT_HEADERFUNCTION, on_header);
  set(easy, CURLOPT_HEADERDATA, context);
  set(easy, CURLOPT_WRITEFUNCTION, on_body);
  set(easy, CURLOPT_WRITEDATA, context);
  return {};
}

bool Transfer::take_header_line(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    // A new head: the one before was an interim answer (1xx) or a proxy's.
    response.headers.clear();
    header_bytes_ = 0;
    return true;
  }
  header_bytes_ += line.size();
  if (header_bytes_ > max_header_bytes || response.headers.size() >= max_header_count) {
    too_large_ = true;
    return false;
  }
  size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    response.headers.emplace_back(lower_case(trim(line.substr(0, colon))), std::string(trim(line.substr(colon + 1))));
  }
  return true;
}

bool Transfer::count_body(size_t bytes) {
  received_bytes_ += bytes;
  too_large_ = too_large_ || received_bytes_ > request_.max_response_bytes;
  return !too_large_;
}

void Transfer::read_status() {
  long status = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
  response.status = static_cast<unsigned>(status);
}

std::unexpected<Error> Transfer::describe(CURLcode code) const {
  CURL* easy = easy_.get();
  const char* buffer = error_buffer_.data();
  if (stopped) return fail(ErrorCode::cancelled, "{}: the answer was not wanted any more", target_.authority);
  if (too_large_) {
    return fail(ErrorCode::resource_exhausted, "{}: the answer is larger than {} bytes", target_.authority,
                header_bytes_ > max_header_bytes ? max_header_bytes : request_.max_response_bytes);
  }
  curl_off_t pretransfer_us = 0;
  curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &pretransfer_us);
  bool was_sent = pretransfer_us > 0;
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return fail(ErrorCode::unavailable, "{}: there is no such host name (DNS): check the URL", target_.authority);
    case CURLE_COULDNT_RESOLVE_PROXY:
      return fail(ErrorCode::unavailable,
                  "{}: the proxy's host name cannot be resolved: check http_proxy and https_proxy", target_.authority);
    case CURLE_COULDNT_CONNECT: {
      long system_errno = 0;
      curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &system_errno);
      return fail(ErrorCode::unavailable, "{}: {}", target_.authority,
                  system_errno == ECONNREFUSED ? "connection refused: nothing listens there"
                  : system_errno != 0          ? std::strerror(static_cast<int>(system_errno))
                                               : printable_detail(buffer, code).c_str());
    }
    case CURLE_OPERATION_TIMEDOUT:
      if (!was_sent) {
        return fail(ErrorCode::unavailable, "{}: {}", target_.authority, timeout_text(buffer, request_));
      }
      return fail(ErrorCode::timed_out, "{}: connected, but no complete answer within {} ms", target_.authority,
                  request_.timeout.count());
    case CURLE_PEER_FAILED_VERIFICATION:
      return fail(ErrorCode::permission_denied, "the certificate of {} is not trusted ({})", target_.authority,
                  certificate_problem(easy, buffer, code));
    case CURLE_SSL_CONNECT_ERROR:
      return fail(ErrorCode::unavailable, "{}: the TLS handshake failed ({}): is this an https port?",
                  target_.authority, printable_detail(buffer, code));
    case CURLE_SSL_CERTPROBLEM:
      return fail(ErrorCode::invalid_argument, "client certificate {} or its key {}: cannot be used ({})",
                  request_.client_certificate_path, request_.client_key_path, printable_detail(buffer, code));
    case CURLE_SSL_CACERT_BADFILE:
      return fail(ErrorCode::invalid_argument, "CA certificate {}: cannot be used ({})", request_.ca_certificate_path,
                  printable_detail(buffer, code));
    case CURLE_GOT_NOTHING:
      return fail(ErrorCode::io, "{}: the connection was closed without an answer", target_.authority);
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
      return fail(was_sent ? ErrorCode::io : ErrorCode::unavailable, "{}: the connection broke ({})", target_.authority,
                  printable_detail(buffer, code));
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return fail(ErrorCode::io, "{}: the answer is not HTTP: check the port", target_.authority);
    default:
      return fail(was_sent ? ErrorCode::io : ErrorCode::unavailable, "{}: {}", target_.authority,
                  printable_detail(buffer, code));
  }
}

}  // namespace hive::net::http
