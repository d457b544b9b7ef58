#include "net/http/response_writer.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include <boost/beast/http/status.hpp>

#include "net/http/ascii.h"
#include "protocol/json.h"

namespace hive::net::http {

namespace {

void append_number(std::string& out, std::size_t number, int base = 10) {
  char digits[24];
  auto end = std::to_chars(digits, digits + sizeof digits, number, base).ptr;
  out.append(digits, end);
}

void append_field(std::string& out, std::string_view name, std::string_view value) {
  std::size_t begin = out.size();
  out += name;
  out += ": ";
  out += value;
  std::replace_if(
      out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  out += "\r\n";
}

/// The Date field, formatted once a second and thread.
std::string_view date_field() {
  thread_local std::time_t second = 0;
  thread_local char text[48];
  thread_local std::size_t size = 0;
  std::time_t now = std::time(nullptr);
  if (now != second || size == 0) {
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    size = std::strftime(text, sizeof text, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
    second = now;
  }
  return {text, size};
}

}  // namespace

bool has_no_body(unsigned status) {
  return status < 200 || status == 204 || status == 304;
}

std::string_view reason_phrase(unsigned status) {
  auto text = boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
  if (text == "<unknown-status>") return "Status";
  return {text.data(), text.size()};
}

void append_head(std::string& out, const Response& response, const Headers& defaults, const HeadOptions& options) {
  out += "HTTP/1.1 ";
  append_number(out, response.status);
  out += ' ';
  out += reason_phrase(response.status);
  out += "\r\n";
  out += date_field();
  if (!response.content_type.empty() && !has_no_body(response.status)) {
    append_field(out, "Content-Type", response.content_type);
  }
  for (const auto& [name, value] : defaults) {
    bool replaced = std::ranges::any_of(response.headers,
                                        [&](const auto& header) { return equal_ignoring_case(header.first, name); });
    if (!replaced) append_field(out, name, value);
  }
  for (const auto& [name, value] : response.headers)
    append_field(out, name, value);
  if (!has_no_body(response.status)) {
    if (options.framing == BodyFraming::content_length) {
      out += "Content-Length: ";
      append_number(out, options.content_length);
      out += "\r\n";
    } else if (options.framing == BodyFraming::chunked) {
      out += "Transfer-Encoding: chunked\r\n";
    }
  }
  if (!options.keep_alive) {
    out += "Connection: close\r\n";
  } else if (options.say_keep_alive) {
    out += "Connection: keep-alive\r\n";
  }
  out += "\r\n";
}

void append_chunk(std::string& out, std::string_view piece) {
  append_number(out, piece.size(), 16);
  out += "\r\n";
  out += piece;
  out += "\r\n";
}

Response problem_response(const Refusal& refusal, std::string_view request_id) {
  Response response;
  response.status = refusal.status;
  response.content_type = "application/problem+json";
  response.body = R"({"type":"about:blank","title":)";
  json::append_string(response.body, reason_phrase(refusal.status));
  response.body += R"(,"status":)";
  append_number(response.body, refusal.status);
  response.body += R"(,"code":)";
  json::append_string(response.body, refusal.code);
  response.body += R"(,"detail":)";
  json::append_string(response.body, refusal.detail);
  if (!request_id.empty()) {
    response.body += R"(,"request_id":)";
    json::append_string(response.body, request_id);
  }
  response.body += "}\n";
  return response;
}

}  // namespace hive::net::http
