#include "gateway/upstreams/http_requests.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/strings.h"
#include "protocol/mcp/message.h"

namespace hive::upstreams {

namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return lower;
}

/// Headers that say what the protocol says; a configured one could only contradict it.
bool is_reserved(const std::string& lower_name) {
  static constexpr std::array<std::string_view, 10> names = {
      "accept",        "connection",     "content-length",       "content-type", "host",
      "last-event-id", "mcp-session-id", "mcp-protocol-version", "mcp-method",   "mcp-name"};
  return std::ranges::find(names, lower_name) != names.end() || lower_name.starts_with("mcp-param-");
}

}  // namespace

net::http::RequestOptions make_request(const ConnectionOptions& options, std::string_view method, std::string url) {
  net::http::RequestOptions request;
  request.method = method;
  request.url = std::move(url);
  bool has_authorization = false;
  for (const auto& [name, value] : options.headers) {
    std::string lower = lower_case(name);
    if (is_reserved(lower)) continue;
    has_authorization = has_authorization || lower == "authorization";
    request.headers.emplace_back(name, value);
  }
  if (!options.auth_token.empty() && !has_authorization) {
    request.headers.emplace_back("Authorization", "Bearer " + options.auth_token);
  }
  request.connect_timeout = options.connect_timeout;
  // The session watches the time of each request; streams live as long as they are wanted, and their events and
  // bodies are bounded one by one.
  request.timeout = std::chrono::milliseconds(0);
  request.max_response_bytes = std::numeric_limits<std::size_t>::max();
  request.ca_certificate_path = options.ca_certificate_path;
  request.verify_tls = options.verify_tls;
  return request;
}

net::http::RequestOptions make_post(const ConnectionOptions& options, std::string url, std::string_view text) {
  net::http::RequestOptions request = make_request(options, "POST", std::move(url));
  request.headers.emplace_back("Content-Type", "application/json");
  request.headers.emplace_back("Accept", "application/json, text/event-stream");
  request.body = text;
  return request;
}

std::string media_type(const net::http::ClientResponse& head) {
  std::string_view value = head.header("content-type");
  return lower_case(trim(value.substr(0, value.find(';'))));
}

RequestFailure failure_of_status(unsigned status, std::string_view body) {
  RequestFailure failure{.kind = ReplyKind::lost,
                         .reason = fmt::format("upstream_http_{}", status),
                         .detail = fmt::format("the server answered with HTTP status {}", status),
                         .body = {},
                         .http_status = status,
                         .code = ErrorCode::unavailable};
  if (auto message = mcp::parse_message(body); message && message->kind == mcp::MessageKind::error_response) {
    failure.kind = ReplyKind::error;
    failure.body = message->body;
    return failure;
  }
  switch (status) {
    case 401:
    case 403:
      failure.kind = ReplyKind::not_sent;
      failure.reason = "upstream_unauthorized";
      failure.detail += ": check its auth_token and headers";
      failure.code = ErrorCode::permission_denied;
      break;
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
      failure.kind = ReplyKind::not_sent;
      failure.detail += ", a redirect, which is not followed: configure the final URL";
      failure.code = ErrorCode::invalid_argument;
      break;
    case 404:
    case 405:
    case 406:
    case 413:
    case 415:
    case 429:
      failure.kind = ReplyKind::not_sent;
      break;
    default:
      break;
  }
  return failure;
}

RequestFailure failure_of_exchange(const Error& error) {
  RequestFailure failure{
      .kind = ReplyKind::lost, .reason = "lost", .detail = error.message, .body = {}, .code = error.code};
  switch (error.code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::unavailable:
    case ErrorCode::permission_denied:
      failure.kind = ReplyKind::not_sent;
      failure.reason = "upstream_offline";
      break;
    default:
      break;
  }
  return failure;
}

}  // namespace hive::upstreams
