#include "net/ssh/client.h"

#include <array>
#include <atomic>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/file.h"
#include "net/ssh/sockets.h"
#include "net/ssh/ssh_fixture.h"

namespace hive::net::ssh {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

class ClientTest : public SshFixture {
 protected:
  void SetUp() override { start_server(); }

  Error connect_error(ClientOptions options) {
    auto channel = connect_client(std::move(options));
    EXPECT_FALSE(channel);
    return channel ? Error{} : channel.error();
  }
};

TEST_F(ClientTest, AnUnknownHostIsNamed) {
  ClientOptions options = client_options();
  options.host = "no host has spaces";
  const Error error = connect_error(options);
  EXPECT_EQ(error.code, ErrorCode::not_found);
  EXPECT_THAT(error.message, HasSubstr("cannot look up the host \"no host has spaces\""));
}

TEST_F(ClientTest, AClosedPortIsRefused) {
  ClientOptions options = client_options();
  server.reset();
  const Error error = connect_error(options);
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_THAT(error.message, HasSubstr("cannot connect to 127.0.0.1:" + std::to_string(options.port)));
  EXPECT_THAT(error.message, HasSubstr("Connection refused"));
}

TEST_F(ClientTest, AHostThatDropsPacketsTimesOut) {
  // A listener whose queue is full drops what else comes.
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::array<UniqueFd, 4> fill;
  for (UniqueFd& fd : fill) {
    fd.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  }
  ClientOptions options = client_options();
  options.port = ntohs(address.sin_port);
  options.connect_timeout = 100ms;
  const Error error = connect_error(options);
  EXPECT_EQ(error.code, ErrorCode::timed_out);
  EXPECT_THAT(error.message, HasSubstr("cannot connect to 127.0.0.1"));
}

TEST_F(ClientTest, AServerThatSaysNothingTimesOut) {
  const auto silent = listen_on({"127.0.0.1", 0});
  ASSERT_TRUE(silent);
  ClientOptions options = client_options();
  options.port = silent->port;
  options.handshake_timeout = 100ms;
  const Error error = connect_error(options);
  EXPECT_EQ(error.code, ErrorCode::timed_out);
  EXPECT_THAT(error.message, HasSubstr("the SSH handshake took longer than 100 ms"));
}

TEST_F(ClientTest, AServerThatIsNoSshServerIsAnError) {
  const auto listener = listen_on({"127.0.0.1", 0});
  ASSERT_TRUE(listener);
  ASSERT_EQ(::fcntl(listener->fd.get(), F_SETFL, 0), 0);
  std::thread other([fd = listener->fd.get()] {
    const UniqueFd peer(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC));
    const std::string_view text = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    (void)::send(peer.get(), text.data(), text.size(), MSG_NOSIGNAL);
    std::array<char, 1024> buffer{};
    ::shutdown(peer.get(), SHUT_WR);
    while (::recv(peer.get(), buffer.data(), buffer.size(), 0) > 0) {
    }
  });
  ClientOptions options = client_options();
  options.port = listener->port;
  const Error error = connect_error(options);
  other.join();
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_THAT(error.message, HasSubstr("SSH connection to 127.0.0.1"));
}

TEST_F(ClientTest, AWrongHostKeyIsRefusedBeforeWeSayWhoWeAre) {
  server.reset();
  std::atomic<int> asked = 0;
  auto listening = Server::listen(runtime, [&] {
    ServerOptions options;
    options.listen_address = "127.0.0.1:0";
    options.host_key_path = folder.path("stranger");
    options.authenticate = [&](const std::string&, const crypto::PublicKey&, const std::string&) -> Result<void> {
      ++asked;
      return {};
    };
    options.accept = [](std::shared_ptr<LineChannel>) {};
    options.refused = [this](const std::string& address, const std::string& user, const std::string& reason) {
      refusals->put({address, user, reason});
    };
    return options;
  }());
  ASSERT_TRUE(listening);
  server = std::move(*listening);
  const Error error = connect_error(client_options());
  EXPECT_EQ(error.code, ErrorCode::permission_denied);
  EXPECT_THAT(error.message, HasSubstr("host key mismatch"));
  const Refusal refusal = refusals->take();
  EXPECT_EQ(refusal.user, "");
  EXPECT_EQ(asked, 0);
}

TEST_F(ClientTest, WithoutAVerifierNoServerIsTrusted) {
  ClientOptions options = client_options();
  options.verify_host_key = nullptr;
  EXPECT_EQ(connect_error(options).code, ErrorCode::internal);
}

TEST_F(ClientTest, AKeyThatTheServerDoesNotKnowIsNamedWithTheRemedy) {
  ClientOptions options = client_options();
  options.private_key_path = folder.path("stranger");
  const auto key = crypto::PrivateKey::load(options.private_key_path);
  const Error error = connect_error(options);
  EXPECT_EQ(error.code, ErrorCode::permission_denied);
  EXPECT_THAT(error.message, HasSubstr(key->public_key().fingerprint()));
  EXPECT_THAT(error.message, HasSubstr("authorized_keys"));
}

TEST_F(ClientTest, AKeyThatIsGivenAsTextNeedsNoFile) {
  ClientOptions options = client_options();
  options.private_key = read_file(options.private_key_path, 1 << 16).value();
  options.private_key_path.clear();
  EXPECT_TRUE(connect_client(options));
  options.private_key = read_file(folder.path("stranger"), 1 << 16).value();
  EXPECT_THAT(connect_error(options).message, HasSubstr("of the configuration"));
  options.private_key = "junk";
  EXPECT_THAT(connect_error(options).message, HasSubstr("SSH private key"));
}

TEST_F(ClientTest, AKeyFileThatOthersCanReadIsRefused) {
  ClientOptions options = client_options();
  ASSERT_EQ(::chmod(options.private_key_path.c_str(), 0640), 0);
  const Error error = connect_error(options);
  EXPECT_THAT(error.message, HasSubstr(options.private_key_path));
  EXPECT_THAT(error.message, HasSubstr("chmod 600"));
}

TEST_F(ClientTest, AnAbsentOrDamagedKeyFileIsNamed) {
  ClientOptions options = client_options();
  options.private_key_path = folder.path("absent");
  EXPECT_THAT(connect_error(options).message, HasSubstr(folder.path("absent")));
  ASSERT_TRUE(write_file_atomically(folder.path("damaged"), "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", 0600));
  options.private_key_path = folder.path("damaged");
  EXPECT_THAT(connect_error(options).message, HasSubstr(folder.path("damaged")));
}

TEST_F(ClientTest, ARefusedSubsystemIsNamed) {
  ClientOptions options = client_options();
  options.subsystem = "sftp";
  const Error error = connect_error(options);
  EXPECT_EQ(error.code, ErrorCode::permission_denied);
  EXPECT_THAT(error.message, HasSubstr("subsystem \"sftp\" refused"));
}

TEST_F(ClientTest, AnAbandonedAttemptTellsNothing) {
  const auto silent = listen_on({"127.0.0.1", 0});
  ASSERT_TRUE(silent);
  ClientOptions options = client_options();
  options.port = silent->port;
  options.handshake_timeout = 50ms;
  std::atomic<int> told = 0;
  Worker& worker = runtime.worker(0);
  Mailbox<int> later;
  std::optional<Timer> timer;
  worker.post([&] {
    auto attempt = connect(runtime, worker, options, [&](Result<std::shared_ptr<LineChannel>>) { ++told; });
    attempt.reset();
    auto other = connect(runtime, worker, options, [&](Result<std::shared_ptr<LineChannel>>) { ++told; });
    // Abandoned in the middle of the handshake.
    timer = worker.schedule(20ms, [other = std::move(other), &later]() mutable {
      other.reset();
      later.put(1);
    });
  });
  later.take();
  // The time in which it would have told.
  worker.post([&] { timer = worker.schedule(100ms, [&] { later.put(2); }); });
  later.take();
  EXPECT_EQ(told, 0);
  Mailbox<int> done;
  worker.post([&] {
    timer.reset();
    done.put(1);
  });
  done.take();
}

TEST_F(ClientTest, AnAttemptMayBeFreedFromWithinItsOwnAnswer) {
  Worker& worker = runtime.worker(0);
  std::unique_ptr<ConnectAttempt> attempt;
  Mailbox<int> done;
  worker.post([&] {
    attempt = connect(runtime, worker, client_options(), [&](Result<std::shared_ptr<LineChannel>> channel) {
      EXPECT_TRUE(channel);
      attempt.reset();
      done.put(1);
    });
  });
  done.take();
}

TEST_F(ClientTest, NeverReadsTheHomeFolder) {
  // A configuration that would break every connection if libssh looked at it.
  const std::string home = folder.path("home");
  std::filesystem::create_directories(home + "/.ssh");
  ASSERT_TRUE(write_file_atomically(home + "/.ssh/config", "Host *\n  Ciphers none\n  ProxyCommand false\n", 0600));
  const char* before = std::getenv("HOME");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("HOME", home.c_str(), 1);
  EXPECT_TRUE(connect_pair().server);
  ::setenv("HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace hive::net::ssh
