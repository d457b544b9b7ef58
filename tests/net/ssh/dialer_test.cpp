#include "net/ssh/dialer.h"

#include <array>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "net/ssh/ssh_fixture.h"

namespace hive::net::ssh {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using namespace std::string_literals;

void write_all(int fd, std::string_view text) {
  (void)::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
}

/// What comes until `end` is in it, or the peer ends.
std::string read_until(int fd, std::string_view end) {
  std::string text;
  char byte = 0;
  while (!text.ends_with(end) && ::recv(fd, &byte, 1, 0) == 1)
    text += byte;
  return text;
}

std::string read_exactly(int fd, size_t count) {
  std::string text(count, '\0');
  return ::recv(fd, text.data(), count, MSG_WAITALL) == static_cast<ssize_t>(count) ? text : "";
}

/// Carries bytes both ways until one side ends.
void relay(int left, int right) {
  std::array<char, 16384> buffer{};
  for (;;) {
    std::array<pollfd, 2> fds = {{{left, POLLIN, 0}, {right, POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0) return;
    for (size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      const ssize_t count = ::recv(fds[i].fd, buffer.data(), buffer.size(), 0);
      if (count <= 0) return;
      write_all(fds[1 - i].fd, std::string_view(buffer.data(), static_cast<size_t>(count)));
    }
  }
}

UniqueFd connect_to(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) fd.reset();
  return fd;
}

/// A proxy that does with one connection what the test says, on a thread of its own.
class ScriptedProxy {
 public:
  explicit ScriptedProxy(std::function<void(int fd)> script) {
    auto listening = listen_on({"127.0.0.1", 0});
    EXPECT_TRUE(listening);
    port_ = listening->port;
    listener_ = std::move(listening->fd);
    EXPECT_EQ(::fcntl(listener_.get(), F_SETFL, 0), 0);
    thread_ = std::thread([this, script = std::move(script)] {
      const UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (peer) script(peer.get());
    });
  }
  ~ScriptedProxy() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  [[nodiscard]] config::ProxyAddress address(std::string_view scheme, std::string_view credentials = "") const {
    return config::parse_proxy(fmt::format("{}://{}127.0.0.1:{}", scheme, credentials, port_)).value();
  }

 private:
  std::uint16_t port_ = 0;
  UniqueFd listener_;
  std::thread thread_;
};

class DialerTest : public SshFixture {
 protected:
  void SetUp() override { start_server(); }

  ClientOptions through(const config::ProxyAddress& proxy) {
    ClientOptions options = client_options();
    options.proxy = proxy;
    return options;
  }

  std::string error_through(const config::ProxyAddress& proxy, std::chrono::milliseconds timeout = 15s) {
    ClientOptions options = through(proxy);
    options.connect_timeout = timeout;
    auto channel = connect_client(std::move(options));
    EXPECT_FALSE(channel);
    return channel ? "" : channel.error().message;
  }

  void expect_connected(const config::ProxyAddress& proxy) {
    auto channel = connect_client(through(proxy));
    ASSERT_TRUE(channel) << channel.error().message;
    auto far = accepted->take();
    auto handler = std::make_shared<RecordingHandler>();
    on_worker(*far, [&] { far->set_handler(handler); });
    ASSERT_TRUE(send(**channel, "through the proxy"));
    EXPECT_EQ(handler->lines.take(), "through the proxy");
    on_worker(**channel, [&] { (*channel)->close("done"); });
    (void)handler->closed.take();
  }
};

TEST_F(DialerTest, ATunnelThroughAnHttpProxyCarriesLines) {
  std::string request;
  {
    ScriptedProxy proxy([&](int fd) {
      request = read_until(fd, "\r\n\r\n");
      const UniqueFd far = connect_to(server->port());
      write_all(fd, "HTTP/1.1 200 OK\r\n\r\n");
      relay(fd, far.get());
    });
    expect_connected(proxy.address("http", "me:secret@"));
  }
  EXPECT_THAT(request, AllOf(HasSubstr(fmt::format("CONNECT 127.0.0.1:{} HTTP/1.1\r\n", server->port())),
                             HasSubstr("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n")));
}

TEST_F(DialerTest, WhatTheServerSaidFirstIsNotLostWhenItComesWithTheAnswer) {
  ScriptedProxy proxy([&](int fd) {
    (void)read_until(fd, "\r\n\r\n");
    const UniqueFd far = connect_to(server->port());
    const std::string banner = read_until(far.get(), "\r\n");
    write_all(fd, "HTTP/1.1 200 OK\r\nServer: x\r\n\r\n" + banner);
    relay(fd, far.get());
  });
  expect_connected(proxy.address("http"));
}

TEST_F(DialerTest, AnAnswerInSingleBytesIsUnderstood) {
  ScriptedProxy proxy([&](int fd) {
    (void)read_until(fd, "\r\n\r\n");
    const UniqueFd far = connect_to(server->port());
    for (char byte : "HTTP/1.1 200 OK\r\n\r\n"s)
      write_all(fd, std::string(1, byte));
    relay(fd, far.get());
  });
  expect_connected(proxy.address("http"));
}

TEST_F(DialerTest, ATunnelThroughASocksProxyCarriesLines) {
  std::string request;
  {
    ScriptedProxy proxy([&](int fd) {
      (void)read_exactly(fd, 4);
      write_all(fd, "\5\2"s);
      (void)read_exactly(fd, 11);
      write_all(fd, "\1\0"s);
      request = read_exactly(fd, 10);
      const UniqueFd far = connect_to(server->port());
      write_all(fd, "\5\0\0\1\x7f\0\0\1\0\0"s);
      relay(fd, far.get());
    });
    expect_connected(proxy.address("socks5", "me:secret@"));
  }
  EXPECT_TRUE(request.starts_with("\5\1\0\1\x7f\0\0\1"s));
}

TEST_F(DialerTest, ARefusalSaysWhoRefusedWhat) {
  ScriptedProxy proxy([](int fd) {
    (void)read_until(fd, "\r\n\r\n");
    write_all(fd, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n");
  });
  const config::ProxyAddress address = proxy.address("http", "me:secret@");
  EXPECT_THAT(error_through(address),
              AllOf(HasSubstr(fmt::format("cannot connect to 127.0.0.1:{}: proxy {} refused CONNECT 127.0.0.1:{}: 407 "
                                          "Proxy Authentication Required",
                                          server->port(), address.to_string(), server->port())),
                    Not(HasSubstr("secret"))));
}

TEST_F(DialerTest, AProxyThatSaysNothingIsGivenUp) {
  std::promise<void> ended;
  ScriptedProxy proxy([&](int fd) {
    (void)read_until(fd, "no such end");
    ended.set_value();
  });
  EXPECT_THAT(error_through(proxy.address("http"), 100ms), HasSubstr("does not open the tunnel to 127.0.0.1 port"));
  EXPECT_EQ(ended.get_future().wait_for(patience), std::future_status::ready) << "the connection is left open";
}

TEST_F(DialerTest, AProxyThatEndsTheConnectionIsNamed) {
  ScriptedProxy proxy([](int fd) { (void)read_until(fd, "\r\n\r\n"); });
  EXPECT_THAT(error_through(proxy.address("http")), HasSubstr("closed the connection; it has not answered CONNECT"));
}

TEST_F(DialerTest, AProxyThatNeverEndsItsAnswerIsGivenUp) {
  ScriptedProxy proxy([](int fd) {
    (void)read_until(fd, "\r\n\r\n");
    write_all(fd, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 1000; ++i)
      write_all(fd, "X: " + std::string(1000, 'x') + "\r\n");
    (void)read_until(fd, "no such end");
  });
  EXPECT_THAT(error_through(proxy.address("http")), HasSubstr("answers with more than 16384 bytes"));
}

TEST_F(DialerTest, AProxyThatIsNotThereIsNamed) {
  std::optional<ScriptedProxy> proxy(std::in_place, [](int) {});
  const config::ProxyAddress address = proxy->address("socks5h");
  proxy.reset();
  EXPECT_THAT(error_through(address),
              HasSubstr(fmt::format("proxy {} cannot be reached: 127.0.0.1: Connection refused", address.to_string())));
}

TEST_F(DialerTest, AProxyWithoutAddressIsNamed) {
  config::ProxyAddress proxy = config::parse_proxy("http://proxy:3128").value();
  proxy.host = "no host has spaces";
  EXPECT_THAT(error_through(proxy), HasSubstr("cannot look up the proxy's host \"no host has spaces\""));
}

TEST_F(DialerTest, AProxyThatOpensATunnelToNothingEndsInAnSshError) {
  ScriptedProxy proxy([](int fd) {
    (void)read_until(fd, "\r\n\r\n");
    write_all(fd, "HTTP/1.1 200 OK\r\n\r\n");
  });
  EXPECT_THAT(error_through(proxy.address("http")), HasSubstr("SSH connection to 127.0.0.1"));
}

TEST_F(DialerTest, TheStepsAreToldInTheirOrder) {
  ScriptedProxy proxy([&](int fd) {
    (void)read_until(fd, "\r\n\r\n");
    const UniqueFd far = connect_to(server->port());
    write_all(fd, "HTTP/1.1 200 OK\r\n\r\n");
    relay(fd, far.get());
  });
  ClientOptions options = through(proxy.address("http"));
  std::vector<ConnectStep> steps;
  options.on_step = [&](ConnectStep step, const std::string&) { steps.push_back(step); };
  auto channel = connect_client(std::move(options));
  ASSERT_TRUE(channel) << channel.error().message;
  EXPECT_THAT(steps, ElementsAre(ConnectStep::looked_up, ConnectStep::at_proxy, ConnectStep::connected,
                                 ConnectStep::keys_exchanged, ConnectStep::authenticated));
  // The relay ends with the channel.
  on_worker(**channel, [&] { (*channel)->close("done"); });
}

}  // namespace
}  // namespace hive::net::ssh
