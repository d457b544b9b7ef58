#include "net/http/client.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <curl/curl.h>
#include <openssl/x509_vfy.h>
#include <poll.h>

#include "base/file.h"
#include "base/strings.h"

namespace hive::net::http {

namespace {

constexpr size_t max_header_count = 256;
constexpr size_t max_header_bytes = 65536;
constexpr size_t max_ca_file_bytes = size_t{8} << 20;

struct CloseMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct CloseEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

/// The handles of one thread: their pool of connections and TLS sessions makes the next request to the same host cheap.
struct ThreadHandles {
  std::unique_ptr<CURLM, CloseMulti> multi{curl_multi_init()};
  std::unique_ptr<CURL, CloseEasy> easy{curl_easy_init()};
};

ThreadHandles& thread_handles() {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(initialised);
  thread_local ThreadHandles handles;
  return handles;
}

/// What the callbacks work on during one exchange.
struct Exchange {
  explicit Exchange(const ClientRequest& sent) : request(sent) {}

  const ClientRequest& request;
  ClientResponse response;
  size_t received_bytes = 0;
  size_t header_bytes = 0;
  bool head_is_delivered = false;
  bool streams = false;
  bool too_large = false;
  bool stopped = false;
};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

size_t on_header(char* data, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) {
    // A new head: the one before was an interim answer (1xx) or a proxy's.
    exchange.response.headers.clear();
    exchange.header_bytes = 0;
    return line.size();
  }
  exchange.header_bytes += line.size();
  if (exchange.header_bytes > max_header_bytes || exchange.response.headers.size() >= max_header_count) {
    exchange.too_large = true;
    return 0;
  }
  size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    exchange.response.headers.emplace_back(lower_case(trim(line.substr(0, colon))),
                                           std::string(trim(line.substr(colon + 1))));
  }
  return line.size();
}

size_t on_body(char* data, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  std::string_view piece(data, size * count);
  exchange.received_bytes += piece.size();
  if (exchange.received_bytes > exchange.request.max_response_bytes) {
    exchange.too_large = true;
    return 0;
  }
  if (!exchange.head_is_delivered) {
    exchange.head_is_delivered = true;
    long status = 0;
    curl_easy_getinfo(thread_handles().easy.get(), CURLINFO_RESPONSE_CODE, &status);
    exchange.response.status = static_cast<unsigned>(status);
    exchange.streams = exchange.request.on_data != nullptr &&
                       (exchange.request.on_head == nullptr || exchange.request.on_head(exchange.response));
  }
  if (!exchange.streams) {
    exchange.response.body.append(piece);
  } else if (!exchange.request.on_data(piece)) {
    exchange.stopped = true;
    return 0;
  }
  return piece.size();
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

/// Where a request goes, for messages and decisions.
struct Target {
  std::string host;       ///< as written, IPv6 in brackets
  std::string authority;  ///< host:port
};

/// Names what is wrong without repeating the URL, which may carry a secret.
Result<Target> check_request(const ClientRequest& request) {
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

/// Whether the caller gave the request up before it began; what is not sent need not be undone.
bool is_cancelled(int cancel_fd) {
  pollfd entry{cancel_fd, POLLIN, 0};
  return cancel_fd >= 0 && ::poll(&entry, 1, 0) > 0;
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

std::string timeout_text(const char* buffer, const ClientRequest& request) {
  bool is_connected = std::string_view(buffer).starts_with("SSL");  // libcurl's own text is all that tells them apart
  auto waited =
      request.timeout.count() > 0 ? std::min(request.connect_timeout, request.timeout) : request.connect_timeout;
  return fmt::format("{} within {} ms", is_connected ? "connected, but no TLS handshake" : "no connection",
                     waited.count());
}

std::unexpected<Error> describe(CURLcode code, CURL* easy, const char* buffer, const Target& target,
                                const Exchange& exchange) {
  const ClientRequest& request = exchange.request;
  if (exchange.stopped) return fail(ErrorCode::cancelled, "{}: the answer was not wanted any more", target.authority);
  if (exchange.too_large) {
    return fail(ErrorCode::resource_exhausted, "{}: the answer is larger than {} bytes", target.authority,
                exchange.header_bytes > max_header_bytes ? max_header_bytes : request.max_response_bytes);
  }
  curl_off_t pretransfer_us = 0;
  curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &pretransfer_us);
  bool was_sent = pretransfer_us > 0;
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return fail(ErrorCode::unavailable, "{}: there is no such host name (DNS): check the URL", target.authority);
    case CURLE_COULDNT_RESOLVE_PROXY:
      return fail(ErrorCode::unavailable,
                  "{}: the proxy's host name cannot be resolved: check http_proxy and https_proxy", target.authority);
    case CURLE_COULDNT_CONNECT: {
      long system_errno = 0;
      curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &system_errno);
      return fail(ErrorCode::unavailable, "{}: {}", target.authority,
                  system_errno == ECONNREFUSED ? "connection refused: nothing listens there"
                  : system_errno != 0          ? std::strerror(static_cast<int>(system_errno))
                                               : printable_detail(buffer, code).c_str());
    }
    case CURLE_OPERATION_TIMEDOUT:
      if (!was_sent) {
        return fail(ErrorCode::unavailable, "{}: {}", target.authority, timeout_text(buffer, request));
      }
      return fail(ErrorCode::timed_out, "{}: connected, but no complete answer within {} ms", target.authority,
                  request.timeout.count());
    case CURLE_PEER_FAILED_VERIFICATION:
      return fail(ErrorCode::permission_denied, "the certificate of {} is not trusted ({})", target.authority,
                  certificate_problem(easy, buffer, code));
    case CURLE_SSL_CONNECT_ERROR:
      return fail(ErrorCode::unavailable, "{}: the TLS handshake failed ({}): is this an https port?", target.authority,
                  printable_detail(buffer, code));
    case CURLE_SSL_CERTPROBLEM:
      return fail(ErrorCode::invalid_argument, "client certificate {} or its key {}: cannot be used ({})",
                  request.client_certificate_path, request.client_key_path, printable_detail(buffer, code));
    case CURLE_SSL_CACERT_BADFILE:
      return fail(ErrorCode::invalid_argument, "CA certificate {}: cannot be used ({})", request.ca_certificate_path,
                  printable_detail(buffer, code));
    case CURLE_GOT_NOTHING:
      return fail(ErrorCode::io, "{}: the connection was closed without an answer", target.authority);
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
      return fail(was_sent ? ErrorCode::io : ErrorCode::unavailable, "{}: the connection broke ({})", target.authority,
                  printable_detail(buffer, code));
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return fail(ErrorCode::io, "{}: the answer is not HTTP: check the port", target.authority);
    default:
      return fail(was_sent ? ErrorCode::io : ErrorCode::unavailable, "{}: {}", target.authority,
                  printable_detail(buffer, code));
  }
}

/// Drives the transfer until it ends or the caller gives it up.
Result<CURLcode> drive(CURLM* multi, CURL* easy, int cancel_fd, const Target& target) {
  while (true) {
    int running = 0;
    if (CURLMcode code = curl_multi_perform(multi, &running); code != CURLM_OK) {
      return fail(ErrorCode::internal, "{}: {}", target.authority, curl_multi_strerror(code));
    }
    int queued = 0;
    while (CURLMsg* message = curl_multi_info_read(multi, &queued)) {
      if (message->msg == CURLMSG_DONE && message->easy_handle == easy) return message->data.result;
    }
    curl_waitfd cancel{cancel_fd, CURL_WAIT_POLLIN, 0};
    if (CURLMcode code = curl_multi_poll(multi, &cancel, cancel_fd >= 0 ? 1 : 0, 1000, nullptr); code != CURLM_OK) {
      return fail(ErrorCode::internal, "{}: {}", target.authority, curl_multi_strerror(code));
    }
    if (cancel.revents != 0) return fail(ErrorCode::cancelled, "{}: the request was cancelled", target.authority);
  }
}

using HeaderList = std::unique_ptr<curl_slist, FreeList>;

Result<HeaderList> header_list(const Headers& headers) {
  // libcurl would wait a second for servers that do not know "Expect: 100-continue"; a name alone removes the header.
  std::vector<std::string> lines = {"Expect:"};
  for (const auto& [name, value] : headers) {
    lines.push_back(value.empty() ? name + ";" : fmt::format("{}: {}", name, value));
  }
  HeaderList list;
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
  // Fails only when libcurl was built without the option; perform() checks the two that guard anything.
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

Result<ClientResponse> perform(const ClientRequest& request) {
  Target target = TRY(check_request(request));
  if (request.verify_tls) TRY(check_ca_file(request.ca_certificate_path));
  if (is_cancelled(request.cancel_fd)) {
    return fail(ErrorCode::cancelled, "{}: cancelled before it was sent", target.authority);
  }
  ThreadHandles& handles = thread_handles();
  CURL* easy = handles.easy.get();
  CURLM* multi = handles.multi.get();
  if (easy == nullptr || multi == nullptr) return fail(ErrorCode::internal, "libcurl could not be started");

  curl_easy_reset(easy);
  Exchange exchange(request);
  char error_buffer[CURL_ERROR_SIZE] = "";
  HeaderList headers = TRY(header_list(request.headers));

  if (curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") != CURLE_OK ||
      curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, request.verify_tls ? 1L : 0L) != CURLE_OK) {
    return fail(ErrorCode::internal, "this libcurl is too old or has no TLS");
  }
  set(easy, CURLOPT_SSL_VERIFYHOST, request.verify_tls ? 2L : 0L);
  set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(easy, CURLOPT_URL, request.url.c_str());
  set(easy, CURLOPT_HTTPHEADER, headers.get());
  set(easy, CURLOPT_USERAGENT, "myrmex/" HIVE_VERSION);
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  set(easy, CURLOPT_TCP_NODELAY, 1L);
  set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout.count()));
  set(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
  set(easy, CURLOPT_ERRORBUFFER, static_cast<char*>(error_buffer));
  set(easy, CURLOPT_HEADERFUNCTION, &on_header);
  set(easy, CURLOPT_HEADERDATA, static_cast<void*>(&exchange));
  set(easy, CURLOPT_WRITEFUNCTION, &on_body);
  set(easy, CURLOPT_WRITEDATA, static_cast<void*>(&exchange));
  set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (!request.ca_certificate_path.empty()) {
    // Trust this file alone, not the system's store beside it.
    set(easy, CURLOPT_CAINFO, request.ca_certificate_path.c_str());
    set(easy, CURLOPT_CAPATH, static_cast<char*>(nullptr));
  }
  if (!request.client_certificate_path.empty()) {
    set(easy, CURLOPT_SSLCERT, request.client_certificate_path.c_str());
    set(easy, CURLOPT_SSLKEY, request.client_key_path.c_str());
  }
  if (is_loopback_host(target.host)) set(easy, CURLOPT_PROXY, "");
  if (request.method == "HEAD") {
    set(easy, CURLOPT_NOBODY, 1L);
  } else if (request.method != "GET" || !request.body.empty()) {
    set(easy, CURLOPT_POSTFIELDS, request.body.c_str());
    set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }

  if (CURLMcode code = curl_multi_add_handle(multi, easy); code != CURLM_OK) {
    return fail(ErrorCode::internal, "{}: {}", target.authority, curl_multi_strerror(code));
  }
  Result<CURLcode> ended = drive(multi, easy, request.cancel_fd, target);
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  exchange.response.status = static_cast<unsigned>(status);
  // Before the handle leaves the pool, because the reasons are read from it. An unfinished transfer's connection is
  // closed by the removal, which is how the other side learns of a cancelled request.
  Result<ClientResponse> result = [&]() -> Result<ClientResponse> {
    if (!ended) return std::unexpected(ended.error());
    if (*ended != CURLE_OK) return describe(*ended, easy, error_buffer, target, exchange);
    return std::move(exchange.response);
  }();
  curl_multi_remove_handle(multi, easy);
  return result;
}

}  // namespace hive::net::http
