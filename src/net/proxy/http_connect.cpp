#include "net/proxy/http_connect.h"

#include <algorithm>

#include "base/strings.h"

namespace hive::net::proxy {

namespace {

constexpr std::size_t max_status_line_bytes = 1024;
/// "100 Continue" and its like may come before the answer (RFC 9110 section 15.2), but they are no conversation.
constexpr int max_interim_answers = 4;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// RFC 9110 section 5.6.2.
bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("!#$%&'*+-.^_`|~").contains(c);
  });
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return result;
}

class HttpConnect final : public Dialogue {
 public:
  HttpConnect(const config::ProxyAddress& proxy, const std::string& target)
      : Dialogue(proxy.to_string(), target), has_credentials_(!proxy.user.empty()) {
    std::string request = fmt::format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n", target);
    if (has_credentials_) {
      request += fmt::format("Proxy-Authorization: Basic {}\r\n",
                             to_base64(as_bytes(fmt::format("{}:{}", proxy.user, proxy.password.reveal()))));
    }
    say(request + "\r\n");
  }

 private:
  Result<void> take(char byte) override {
    if (byte != '\n') {
      line_ += byte;
      if (status_line_.empty() && line_.size() > max_status_line_bytes) return not_http();
      return {};
    }
    if (!line_.ends_with('\r')) return not_http();
    line_.pop_back();
    std::string line = std::exchange(line_, {});
    if (status_line_.empty()) return take_status(line);
    if (!line.empty()) return take_field(line);
    return take_end();
  }

  Result<void> take_status(const std::string& line) {
    // "HTTP/1.1 200 Connection established"; the reason may be missing (RFC 9112 section 4).
    std::string_view text = line;
    bool sound = (text.starts_with("HTTP/1.1 ") || text.starts_with("HTTP/1.0 ")) && text.size() >= 12 &&
                 std::ranges::all_of(text.substr(9, 3), is_digit) && (text.size() == 12 || text[12] == ' ');
    if (!sound) {
      line_ = line;
      return not_http();
    }
    status_ = (text[9] - '0') * 100 + (text[10] - '0') * 10 + (text[11] - '0');
    status_line_ = trim(text.substr(9));
    return {};
  }

  Result<void> take_field(std::string_view line) {
    std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) || line.contains('\r') ||
        line.contains('\0')) {
      return failed(ErrorCode::unavailable, fmt::format("answers {} with a header line that is none: {}",
                                                        shown_status(), quote(line.substr(0, 80))));
    }
    if (lower(line.substr(0, colon)) == "proxy-authenticate") {
      std::string_view value = trim(line.substr(colon + 1));
      std::string scheme = lower(value.substr(0, value.find(' ')));
      if (is_token(scheme) && scheme.size() <= 32 && challenges_.size() < 8) challenges_.push_back(std::move(scheme));
    }
    return {};
  }

  Result<void> take_end() {
    if (status_ >= 200 && status_ < 300) {
      // Content-Length and Transfer-Encoding mean nothing here: what follows is the tunnel.
      finish();
      return {};
    }
    if (status_ >= 200) return failed(refusal_code(), fmt::format("refused CONNECT {}: {}", target(), explanation()));
    if (status_ < 100 || status_ == 101 || ++interim_answers_ > max_interim_answers) {
      return failed(ErrorCode::unavailable, fmt::format("answers CONNECT {} with {}", target(), shown_status()));
    }
    status_line_.clear();
    return {};
  }

  [[nodiscard]] ErrorCode refusal_code() const {
    return status_ == 403 || status_ == 407 ? ErrorCode::permission_denied : ErrorCode::unavailable;
  }

  [[nodiscard]] std::string explanation() const {
    if (status_ == 407) {
      bool takes_basic = challenges_.empty() || std::ranges::find(challenges_, "basic") != challenges_.end();
      if (!takes_basic) {
        return fmt::format("{}; it wants {}, and only Basic is spoken here", shown_status(), join(challenges_, ", "));
      }
      return fmt::format("{}; {}", shown_status(),
                         has_credentials_ ? "check the user in proxy, and proxy_password"
                                          : "set the user in proxy, and proxy_password");
    }
    if (status_ == 403 || status_ == 405) {
      return fmt::format("{}; allow CONNECT to this host and port in the proxy's own rules", shown_status());
    }
    return shown_status();
  }

  [[nodiscard]] std::string progress() const override {
    if (status_line_.empty()) return fmt::format("it has not answered CONNECT {}", target());
    return fmt::format("its answer to CONNECT {} begins with {}", target(), shown_status());
  }

  [[nodiscard]] std::string shown_status() const {
    return escape_for_terminal(std::string_view(status_line_).substr(0, 120));
  }

  [[nodiscard]] std::unexpected<Error> not_http() const {
    return failed(ErrorCode::unavailable, fmt::format("does not answer CONNECT {} in HTTP/1.1 but with {}", target(),
                                                      quote(std::string_view(line_).substr(0, 80))));
  }

  const bool has_credentials_;
  std::string line_;         // so far
  std::string status_line_;  // behind the version; empty: not read yet
  int status_ = 0;
  int interim_answers_ = 0;
  std::vector<std::string> challenges_;
};

}  // namespace

Result<std::unique_ptr<Dialogue>> begin_http_connect(const config::ProxyAddress& proxy, std::string_view host,
                                                     std::uint16_t port) {
  TRY_CONTEXT(fmt::format("proxy {}", proxy.to_string()), config::check_proxy_credentials(proxy));
  if (host.empty() || host.find_first_of(std::string_view("\r\n \t\0", 5)) != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "proxy {} cannot be asked for the host {}", proxy.to_string(),
                quote(host));
  }
  const bool v6 = host.contains(':');
  return std::make_unique<HttpConnect>(proxy, fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port));
}

}  // namespace hive::net::proxy
