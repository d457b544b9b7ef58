#include "net/proxy/socks5.h"

#include <array>

#include <arpa/inet.h>

#include "base/strings.h"

namespace hive::net::proxy {

namespace {

constexpr char version = 5;
constexpr char credentials_version = 1;
constexpr char method_none = 0;
constexpr char method_credentials = 2;
constexpr unsigned char no_method = 0xff;
constexpr char command_connect = 1;
constexpr char type_ipv4 = 1;
constexpr char type_name = 3;
constexpr char type_ipv6 = 4;

// RFC 1928 section 6.
std::string_view meaning_of(unsigned reply) {
  constexpr std::array<std::string_view, 9> meanings = {"succeeded",
                                                        "general failure",
                                                        "not allowed by its rules",
                                                        "network unreachable",
                                                        "host unreachable",
                                                        "connection refused",
                                                        "time to live expired",
                                                        "command not supported",
                                                        "address type not supported"};
  return reply < meanings.size() ? meanings[reply] : std::string_view("a reply that RFC 1928 does not know");
}

std::string text_of(const void* address, std::size_t size) {
  return std::string(static_cast<const char*>(address), size);
}

/// Type and address as the request carries them; empty for a name that is too long.
std::string encode_host(std::string_view host) {
  std::string copy(host);
  in_addr v4{};
  if (::inet_pton(AF_INET, copy.c_str(), &v4) == 1) return type_ipv4 + text_of(&v4, sizeof(v4));
  in6_addr v6{};
  if (::inet_pton(AF_INET6, copy.c_str(), &v6) == 1) return type_ipv6 + text_of(&v6, sizeof(v6));
  if (host.empty() || host.size() > 255) return {};
  return std::string{type_name, static_cast<char>(host.size())} + copy;
}

class Socks5 final : public Dialogue {
 public:
  Socks5(const config::ProxyAddress& proxy, const std::string& target, const std::string& host, std::uint16_t port)
      : Dialogue(proxy.to_string(), target), user_(proxy.user), password_(proxy.password) {
    request_ =
        std::string{version, command_connect, 0} + host + static_cast<char>(port >> 8) + static_cast<char>(port & 0xff);
    say(user_.empty() ? std::string{version, 1, method_none}
                      : std::string{version, 2, method_none, method_credentials});
  }

 private:
  enum class Stage { method, credentials, reply };

  Result<void> take(char byte) override {
    answer_ += byte;
    if (answer_.size() < wanted()) return {};
    switch (stage_) {
      case Stage::method:
        return take_method();
      case Stage::credentials:
        return take_verdict();
      case Stage::reply:
        return take_reply();
    }
    return {};
  }

  [[nodiscard]] std::size_t wanted() const {
    if (stage_ != Stage::reply) return 2;
    if (answer_.size() < 5) return answer_.size() >= 2 && refused() ? 2 : 5;
    switch (answer_[3]) {
      case type_ipv4:
        return 4 + 4 + 2;
      case type_ipv6:
        return 4 + 16 + 2;
      case type_name:
        return std::size_t{4 + 1 + 2} + static_cast<unsigned char>(answer_[4]);
      default:
        return 5;
    }
  }

  // Proxies that refuse do not always send the rest of the reply, and it says nothing.
  [[nodiscard]] bool refused() const { return answer_[0] != version || answer_[1] != 0; }

  Result<void> take_method() {
    const std::string answer = std::exchange(answer_, {});
    if (answer[0] != version) return not_socks(answer);
    const auto method = static_cast<unsigned char>(answer[1]);
    if (method == no_method) {
      return failed(ErrorCode::permission_denied,
                    user_.empty() ? "wants a user and a password; set the user in proxy, and proxy_password"
                                  : "accepts neither no authentication nor user and password");
    }
    if (method == method_none) return ask();
    if (method != method_credentials || user_.empty()) {
      return failed(ErrorCode::unavailable, fmt::format("chose the method {}, which was not offered", method));
    }
    stage_ = Stage::credentials;
    const std::string& password = password_.reveal();
    say(std::string{credentials_version, static_cast<char>(user_.size())} + user_ + static_cast<char>(password.size()) +
        password);
    return {};
  }

  Result<void> take_verdict() {
    const std::string answer = std::exchange(answer_, {});
    if (answer[0] != credentials_version) return not_socks(answer);
    if (answer[1] != 0) {
      return failed(ErrorCode::permission_denied,
                    fmt::format("refused user and password (status {}); check the user in proxy, and proxy_password",
                                static_cast<unsigned char>(answer[1])));
    }
    return ask();
  }

  Result<void> ask() {
    stage_ = Stage::reply;
    say(request_);
    return {};
  }

  Result<void> take_reply() {
    if (answer_[0] != version) return not_socks(answer_);
    const auto reply = static_cast<unsigned char>(answer_[1]);
    if (reply != 0) {
      return failed(reply == 2 ? ErrorCode::permission_denied : ErrorCode::unavailable,
                    fmt::format("refused to connect to {}: {} (reply {})", target(), meaning_of(reply), reply));
    }
    if (answer_[2] != 0 || (answer_[3] != type_ipv4 && answer_[3] != type_ipv6 && answer_[3] != type_name)) {
      return not_socks(answer_);
    }
    finish();
    return {};
  }

  [[nodiscard]] std::string progress() const override {
    switch (stage_) {
      case Stage::method:
        return "it has not answered the SOCKS greeting";
      case Stage::credentials:
        return "it has not answered to user and password";
      case Stage::reply:
        return fmt::format("it has not answered whether it connects to {}", target());
    }
    return {};
  }

  [[nodiscard]] std::unexpected<Error> not_socks(std::string_view answer) const {
    return failed(ErrorCode::unavailable,
                  fmt::format("does not speak SOCKS 5: it answers {}", quote(answer.substr(0, 16))));
  }

  const std::string user_;
  const config::Secret password_;
  std::string request_;
  std::string answer_;  // to the last question, so far
  Stage stage_ = Stage::method;
};

}  // namespace

Result<std::unique_ptr<Dialogue>> begin_socks5(const config::ProxyAddress& proxy, std::string_view host,
                                               std::uint16_t port) {
  TRY_CONTEXT(fmt::format("proxy {}", proxy.to_string()), config::check_proxy_credentials(proxy));
  std::string encoded = encode_host(host);
  if (encoded.empty() || host.contains('\0')) {
    return fail(ErrorCode::invalid_argument, "proxy {} cannot be asked for the host {}: 1 to 255 bytes are possible",
                proxy.to_string(), quote(host.substr(0, 300)));
  }
  const bool v6 = host.contains(':');
  return std::make_unique<Socks5>(proxy, fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port), encoded,
                                  port);
}

}  // namespace hive::net::proxy
