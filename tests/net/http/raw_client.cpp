#include "net/http/raw_client.h"

#include <cctype>
#include <cstdlib>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace hive::net::http::test {

namespace {
constexpr int patience_ms = 10'000;
}

RawClient::RawClient(std::uint16_t port, const std::string& host, const std::string& source) {
  sockaddr_storage address{};
  socklen_t size = 0;
  if (host.find(':') != std::string::npos) {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    ::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr);
    size = sizeof v6;
  } else {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    ::inet_pton(AF_INET, host.c_str(), &v4.sin_addr);
    size = sizeof v4;
  }
  fd_.reset(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!source.empty()) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    ::inet_pton(AF_INET, source.c_str(), &own.sin_addr);
    if (::bind(fd_.get(), reinterpret_cast<sockaddr*>(&own), sizeof own) != 0) fd_.reset();
  }
  if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) fd_.reset();
  int on = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void RawClient::end_sending() {
  ::shutdown(fd_.get(), SHUT_WR);
}

void RawClient::reset() {
  linger hard{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  fd_.reset();
}

void RawClient::shrink_receive_buffer() {
  int size = 4096;
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

bool RawClient::fill() {
  if (ended_ || !fd_) return false;
  pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, patience_ms) != 1) return false;
  char bytes[16384];
  ssize_t count = ::recv(fd_.get(), bytes, sizeof bytes, 0);
  if (count <= 0) {
    ended_ = true;
    return false;
  }
  buffer_.append(bytes, static_cast<size_t>(count));
  return true;
}

std::string RawClient::read_response() {
  size_t head_end = 0;
  while ((head_end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!fill()) return {};
  }
  head_end += 4;
  std::string length = header_of(std::string_view(buffer_).substr(0, head_end), "Content-Length");
  size_t total = head_end + std::strtoul(length.c_str(), nullptr, 10);
  while (buffer_.size() < total) {
    if (!fill()) return {};
  }
  std::string response = buffer_.substr(0, total);
  buffer_.erase(0, total);
  return response;
}

std::string RawClient::read_until(std::string_view text) {
  size_t at = 0;
  while ((at = buffer_.find(text)) == std::string::npos) {
    if (!fill()) return std::exchange(buffer_, {});
  }
  std::string got = buffer_.substr(0, at + text.size());
  buffer_.erase(0, at + text.size());
  return got;
}

std::string RawClient::read_all() {
  while (fill()) {
  }
  return std::exchange(buffer_, {});
}

bool RawClient::stays_silent(std::chrono::milliseconds time) {
  if (!buffer_.empty()) return false;
  pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, static_cast<int>(time.count())) == 0;
}

unsigned status_of(std::string_view response) {
  if (!response.starts_with("HTTP/1.1 ") || response.size() < 12) return 0;
  return static_cast<unsigned>(std::strtoul(std::string(response.substr(9, 3)).c_str(), nullptr, 10));
}

std::string_view body_of(std::string_view response) {
  size_t end = response.find("\r\n\r\n");
  return end == std::string_view::npos ? std::string_view() : response.substr(end + 4);
}

std::string header_of(std::string_view response, std::string_view name) {
  size_t at = response.find("\r\n");
  while (at != std::string_view::npos) {
    std::string_view line = response.substr(at + 2);
    size_t end = line.find("\r\n");
    line = line.substr(0, end);
    if (line.empty()) break;
    size_t colon = line.find(": ");
    if (colon == name.size() && std::equal(name.begin(), name.end(), line.begin(), [](char a, char b) {
          return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
        })) {
      return std::string(line.substr(colon + 2));
    }
    at = response.find("\r\n", at + 2);
  }
  return {};
}

}  // namespace hive::net::http::test
