#include "config/proxy.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "config/address.h"

namespace hive::config {

namespace {

// RFC 1929 gives each one byte of length.
constexpr std::size_t max_credential_bytes = 255;

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

Result<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    std::optional<int> high = i + 2 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
    std::optional<int> low = high ? hex_digit(text[i + 2]) : std::nullopt;
    if (!low) {
      return fail(ErrorCode::invalid_argument,
                  "user and password are percent-encoded: \"%\" itself is written as \"%25\"");
    }
    decoded += static_cast<char>(*high << 4 | *low);
    i += 2;
  }
  return decoded;
}

std::string_view name_of(ProxyScheme scheme) {
  switch (scheme) {
    case ProxyScheme::http:
      return "http";
    case ProxyScheme::socks5:
      return "socks5";
    case ProxyScheme::socks5h:
      return "socks5h";
  }
  return "http";
}

// The scheme alone is shown: a text without one may be anything, a password among it.
Result<ProxyScheme> parse_scheme(std::string_view scheme) {
  for (ProxyScheme known : {ProxyScheme::http, ProxyScheme::socks5, ProxyScheme::socks5h}) {
    if (scheme == name_of(known)) return known;
  }
  if (scheme == "https") {
    return fail(
        ErrorCode::invalid_argument,
        "a proxy that is spoken to over TLS is not supported; what passes it is SSH, which is encrypted, so use "
        "the proxy's http port");
  }
  return fail(ErrorCode::invalid_argument,
              "the scheme is not one of http, socks5, socks5h; write http://host:port or socks5://host:port");
}

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

std::string ProxyAddress::to_string() const {
  bool v6 = host.contains(':');
  return fmt::format("{}://{}{}{}:{}", name_of(scheme), v6 ? "[" : "", host, v6 ? "]" : "", port);
}

Result<ProxyAddress> parse_proxy(std::string_view text) {
  std::size_t end = text.find("://");
  if (end == std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "write http://host:port, socks5://host:port or socks5h://host:port");
  }
  ProxyAddress proxy;
  proxy.scheme = TRY(parse_scheme(text.substr(0, end)));
  std::string_view authority = text.substr(end + 3);
  if (authority.ends_with('/')) authority.remove_suffix(1);
  if (std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    std::string_view credentials = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    std::size_t colon = credentials.find(':');
    proxy.user = TRY(percent_decode(credentials.substr(0, colon)));
    if (colon != std::string_view::npos) proxy.password = Secret(TRY(percent_decode(credentials.substr(colon + 1))));
    if (proxy.user.empty()) return fail(ErrorCode::invalid_argument, "the user before \"@\" is empty");
  }
  if (authority.find_first_of("/?#") != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "nothing may follow the port");
  }
  auto parsed = parse_listen_address(authority);
  if (!parsed) {
    // Not in the words of that error, which repeats the text: where the host is forgotten, it holds the password.
    return fail(ErrorCode::invalid_argument,
                "what follows the scheme and the user is not host:port (an IPv6 address needs brackets, as in "
                "http://[::1]:3128)");
  }
  ListenAddress address = *std::move(parsed);
  if (address.host.empty()) return fail(ErrorCode::invalid_argument, "the host is missing");
  if (address.port == 0) return fail(ErrorCode::invalid_argument, "the port must be a number from 1 to 65535");
  proxy.host = std::move(address.host);
  proxy.port = address.port;
  return proxy;
}

Result<void> check_proxy_credentials(const ProxyAddress& proxy) {
  const std::string& password = proxy.password.reveal();
  if (proxy.user.size() > max_credential_bytes || password.size() > max_credential_bytes) {
    return fail(ErrorCode::invalid_argument, "user and password may have at most {} bytes each", max_credential_bytes);
  }
  if (has_control_character(proxy.user) || has_control_character(password)) {
    return fail(ErrorCode::invalid_argument, "user and password must not contain control characters");
  }
  if (proxy.scheme == ProxyScheme::http && proxy.user.contains(':')) {
    return fail(ErrorCode::invalid_argument, "a user with \":\" cannot be sent to an HTTP proxy (RFC 7617)");
  }
  if (proxy.user.empty() && !password.empty()) {
    return fail(ErrorCode::invalid_argument, "there is a password and no user; write the user before the host");
  }
  if (proxy.scheme != ProxyScheme::http && !proxy.user.empty() && password.empty()) {
    return fail(ErrorCode::invalid_argument, "a SOCKS proxy wants a password with the user (RFC 1929)");
  }
  return {};
}

}  // namespace hive::config
