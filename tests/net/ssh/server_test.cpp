#include "net/ssh/server.h"

#include <atomic>
#include <optional>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/file.h"
#include "base/unique_fd.h"
#include "net/ssh/ssh_fixture.h"

namespace hive::net::ssh {
namespace {

using testing::HasSubstr;

class ServerTest : public SshFixture {
 protected:
  /// A bare TCP connection to the server, from 127.0.0.1 or from another loopback address.
  UniqueFd raw_connection(const char* from = nullptr) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (from != nullptr) {
      sockaddr_in own{};
      own.sin_family = AF_INET;
      EXPECT_EQ(::inet_pton(AF_INET, from, &own.sin_addr), 1);
      EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }
  /// Waits until the server has ended the connection; what came before is dropped.
  static bool ends(int fd) {
    std::array<char, 4096> buffer{};
    while (true) {
      pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
      if (::poll(&waiting, 1, 20'000) <= 0) return false;
      if (::recv(fd, buffer.data(), buffer.size(), 0) <= 0) return true;
    }
  }
};

TEST_F(ServerTest, CarriesLinesBothWays) {
  start_server();
  Pair pair = connect_pair();
  ASSERT_TRUE(pair.client && pair.server);
  ASSERT_TRUE(send(*pair.client, "from the agent"));
  EXPECT_EQ(pair.server_handler->lines.take(), "from the agent");
  ASSERT_TRUE(send(*pair.server, "from the gateway"));
  EXPECT_EQ(pair.client_handler->lines.take(), "from the gateway");

  EXPECT_EQ(pair.server->peer().user, "agent-1");
  EXPECT_EQ(pair.server->peer().address, "127.0.0.1");
  EXPECT_EQ(pair.server->peer().kind, ChannelKind::subsystem);
  EXPECT_TRUE(pair.server->peer().key_fingerprint.starts_with("SHA256:"));
  EXPECT_EQ(pair.client->peer().key_fingerprint, host_key->fingerprint());
  EXPECT_EQ(pair.client->peer().software, "SSH-2.0-MyrmexHive");
}

TEST_F(ServerTest, NeedsAHostKeyThatOnlyItsOwnerReads) {
  const auto key = crypto::PrivateKey::generate("host");
  ASSERT_TRUE(write_file_atomically(folder.path("loose"), key->to_openssh(), 0644));
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.authenticate = [](const std::string&, const crypto::PublicKey&, const std::string&) -> Result<void> {
    return {};
  };
  options.accept = [](std::shared_ptr<LineChannel>) {};
  options.host_key_path = folder.path("loose");
  auto listening = Server::listen(runtime, options);
  ASSERT_FALSE(listening);
  EXPECT_THAT(listening.error().message, HasSubstr(folder.path("loose")));
  options.host_key_path = folder.path("absent");
  listening = Server::listen(runtime, options);
  ASSERT_FALSE(listening);
  EXPECT_THAT(listening.error().message, HasSubstr(folder.path("absent")));
  runtime.start();
}

TEST_F(ServerTest, TheDecisionIsMadeOnTheKeyAndNameThatWereProved) {
  Mailbox<std::string> asked;
  start_server([&](ServerOptions& options) {
    options.authenticate = [&, inner = options.authenticate](const std::string& user, const crypto::PublicKey& key,
                                                             const std::string& address) {
      asked.put(user + " " + key.fingerprint() + " " + address);
      return inner(user, key, address);
    };
  });
  const auto key = crypto::PrivateKey::load(folder.path("agent"));
  EXPECT_TRUE(connect_client(client_options()));
  EXPECT_EQ(asked.take(), "agent-1 " + key->public_key().fingerprint() + " 127.0.0.1");
}

TEST_F(ServerTest, TheReasonOfARefusalIsForTheLogOnly) {
  start_server();
  ClientOptions options = client_options();
  options.private_key_path = folder.path("stranger");
  const auto channel = connect_client(options);
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, ErrorCode::permission_denied);
  EXPECT_EQ(channel.error().message.find("authorised"), std::string::npos);
  const Refusal refusal = refusals->take();
  EXPECT_EQ(refusal.user, "agent-1");
  EXPECT_EQ(refusal.address, "127.0.0.1");
  EXPECT_THAT(refusal.reason, HasSubstr("is not authorised"));
}

TEST_F(ServerTest, NamesThatNoAgentCanHaveAreRefusedUnasked) {
  std::atomic<int> asked = 0;
  start_server([&](ServerOptions& options) {
    options.authenticate = [&](const std::string&, const crypto::PublicKey&, const std::string&) -> Result<void> {
      ++asked;
      return {};
    };
  });
  for (const std::string& name : {std::string("agent 1"), std::string("agent__1"), std::string("../agent"),
                                  std::string("gateway"), std::string(5000, 'a'), std::string("agent-\x1b[31m")}) {
    ClientOptions options = client_options();
    options.user = name;
    EXPECT_FALSE(connect_client(options)) << name;
    const Refusal refusal = refusals->take();
    EXPECT_THAT(refusal.reason, HasSubstr("authentication refused"));
    EXPECT_LE(refusal.user.size(), 300U);
    EXPECT_EQ(refusal.user.find('\x1b'), std::string::npos);
  }
  EXPECT_EQ(asked, 0);
}

TEST_F(ServerTest, TooManyTriesEndTheConnection) {
  start_server([](ServerOptions& options) { options.max_authentication_tries = 1; });
  ClientOptions options = client_options();
  options.private_key_path = folder.path("stranger");
  const auto channel = connect_client(options);
  ASSERT_FALSE(channel);
  // The last answer still arrives, so that the agent knows why.
  EXPECT_EQ(channel.error().code, ErrorCode::permission_denied) << channel.error().message;
  EXPECT_THAT(refusals->take().reason, HasSubstr("authentication refused"));
}

TEST_F(ServerTest, ASilentPeerIsEndedAfterTheHandshakeTime) {
  start_server([](ServerOptions& options) { options.handshake_timeout = 100ms; });
  const UniqueFd silent = raw_connection();
  EXPECT_TRUE(ends(silent.get()));
  EXPECT_THAT(refusals->take().reason, HasSubstr("no open channel within 100 ms"));
}

TEST_F(ServerTest, APeerThatSendsOneByteAtATimeIsEndedToo) {
  start_server([](ServerOptions& options) { options.handshake_timeout = 150ms; });
  const UniqueFd slow = raw_connection();
  const std::string_view greeting = "SSH-2.0-slow\r\n";
  size_t sent = 0;
  // A byte each 20 ms: the deadline is for the whole, so the bytes gain nothing.
  while (sent < greeting.size()) {
    if (::send(slow.get(), &greeting[sent], 1, MSG_NOSIGNAL) != 1) break;
    ++sent;
    pollfd waiting{.fd = slow.get(), .events = POLLRDHUP, .revents = 0};
    if (::poll(&waiting, 1, 20) > 0 && (waiting.revents & (POLLRDHUP | POLLHUP)) != 0) break;
  }
  EXPECT_LT(sent, greeting.size());
  EXPECT_TRUE(ends(slow.get()));
}

TEST_F(ServerTest, WhatIsNotSshIsEndedAtOnce) {
  start_server();
  for (const std::string& nonsense :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100'000, 'x'), std::string("SSH-1.5-old\r\n"),
        std::string("SSH-2.0-x\r\n") + std::string(64, 0), "SSH-2.0-x\r\n" + std::string(100'000, '\xff')}) {
    const UniqueFd peer = raw_connection();
    (void)::send(peer.get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
    ::shutdown(peer.get(), SHUT_WR);
    EXPECT_TRUE(ends(peer.get()));
    EXPECT_NE(refusals->take().reason, "");
  }
  EXPECT_TRUE(connect_pair().server);
}

TEST_F(ServerTest, AFullHandshakeRoomMakesOthersWaitInsteadOfLosingThem) {
  start_server([](ServerOptions& options) {
    options.max_handshakes = 2;
    options.silent_limit = 1h;
  });
  UniqueFd first = raw_connection();
  const UniqueFd second = raw_connection();
  Mailbox<Result<std::shared_ptr<LineChannel>>> outcome;
  std::unique_ptr<ConnectAttempt> attempt;
  Worker& worker = runtime.worker(0);
  Mailbox<int> waited;
  std::optional<Timer> timer;
  worker.post([&] {
    attempt = connect(runtime, worker, client_options(),
                      [&](Result<std::shared_ptr<LineChannel>> result) { outcome.put(std::move(result)); });
    timer = worker.schedule(100ms, [&] { waited.put(1); });
  });
  waited.take();
  EXPECT_EQ(outcome.size(), 0U);
  first.reset();
  auto result = outcome.take();
  EXPECT_TRUE(result) << result.error().message;
  worker.post([&] {
    attempt.reset();
    timer.reset();
    waited.put(2);
  });
  waited.take();
}

TEST_F(ServerTest, OneSourceCannotTakeEveryPlace) {
  start_server([](ServerOptions& options) {
    options.max_handshakes = 4;
    options.max_handshakes_per_source = 3;
    options.silent_limit = 1h;
  });
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 40; ++i)
    silent.push_back(raw_connection("127.0.0.2"));
  EXPECT_TRUE(connect_pair().server) << "of another address";
  EXPECT_EQ(refusals->size(), 0U) << "the others wait";
}

TEST_F(ServerTest, ThoseWhoStandStillGiveWayToThoseWhoWait) {
  start_server([](ServerOptions& options) {
    options.max_handshakes = 4;
    options.silent_limit = 50ms;
    options.idle_limit = 50ms;
    options.handshake_timeout = 1h;
  });
  // Of the honest client's own address, and more than all places.
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 20; ++i) {
    silent.push_back(raw_connection());
    // Half of them say at least who they pretend to be.
    if (i % 2 == 0) {
      EXPECT_EQ(::send(silent.back().get(), "SSH-2.0-x\r\n", 11, MSG_NOSIGNAL), 11);
    }
  }
  EXPECT_TRUE(connect_pair().server);
  const Refusal refusal = refusals->take();
  EXPECT_EQ(refusal.address, "127.0.0.1");
  EXPECT_THAT(refusal.reason, HasSubstr("stood still in its handshake while others waited"));
}

TEST_F(ServerTest, WhereNobodyWaitsNobodyGivesWay) {
  start_server([](ServerOptions& options) { options.silent_limit = 0ms; });
  const UniqueFd silent = raw_connection();
  EXPECT_TRUE(connect_pair().server);
  EXPECT_TRUE(connect_pair().server);
  EXPECT_EQ(refusals->size(), 0U);
}

TEST_F(ServerTest, WhoFloodsTheQueueLosesHisOwn) {
  start_server([](ServerOptions& options) {
    options.max_handshakes = 1;
    options.max_waiting = 10;
    options.silent_limit = 1h;
  });
  UniqueFd place = raw_connection("127.0.0.2");
  // The server speaks first, so now it has begun.
  char byte = 0;
  ASSERT_EQ(::recv(place.get(), &byte, 1, 0), 1);
  std::vector<UniqueFd> flood;
  for (int i = 0; i < 30; ++i)
    flood.push_back(raw_connection("127.0.0.2"));
  ASSERT_TRUE(refusals->wait_for_size(20));
  const Refusal refusal = refusals->take();
  EXPECT_EQ(refusal.address, "127.0.0.2");
  EXPECT_THAT(refusal.reason, HasSubstr("10 connections wait for their handshake already"));
  // One of another address is next in turn; those before it in the flood's queue are not.
  Mailbox<Result<std::shared_ptr<LineChannel>>> outcome;
  std::unique_ptr<ConnectAttempt> attempt;
  Worker& worker = runtime.worker(0);
  worker.post([&] {
    attempt = connect(runtime, worker, client_options(),
                      [&](Result<std::shared_ptr<LineChannel>> result) { outcome.put(std::move(result)); });
  });
  ASSERT_TRUE(refusals->wait_for_size(20)) << "it takes the place of one that floods";
  flood.front().reset();
  place.reset();
  auto result = outcome.take();
  EXPECT_TRUE(result) << result.error().message;
  Mailbox<int> done;
  worker.post([&] {
    attempt.reset();
    done.put(1);
  });
  done.take();
}

TEST_F(ServerTest, StopEndsHandshakesAndKeepsOpenChannels) {
  start_server();
  Pair pair = connect_pair();
  ASSERT_TRUE(pair.server);
  const UniqueFd silent = raw_connection();
  server->stop_accepting();
  EXPECT_TRUE(ends(silent.get()));
  ASSERT_TRUE(send(*pair.client, "still here"));
  EXPECT_EQ(pair.server_handler->lines.take(), "still here");
  server.reset();
  ASSERT_TRUE(send(*pair.server, "still there"));
  EXPECT_EQ(pair.client_handler->lines.take(), "still there");
}

TEST_F(ServerTest, ThreeHundredAgentsAtOnceAllGetIn) {
  start_server();
  constexpr size_t count = 300;
  Mailbox<Result<std::shared_ptr<LineChannel>>> outcomes;
  std::vector<std::unique_ptr<ConnectAttempt>> attempts;
  attempts.resize(count);
  for (size_t i = 0; i < count; ++i) {
    ClientOptions options = client_options();
    options.user = "agent-" + std::to_string(i);
    Worker& worker = runtime.next_worker();
    worker.post([&, i, options = std::move(options)]() mutable {
      attempts[i] = connect(runtime, worker, std::move(options),
                            [&](Result<std::shared_ptr<LineChannel>> result) { outcomes.put(std::move(result)); });
    });
  }
  std::vector<std::shared_ptr<LineChannel>> clients;
  std::vector<std::shared_ptr<RecordingHandler>> handlers;
  for (size_t i = 0; i < count; ++i) {
    auto outcome = outcomes.take();
    ASSERT_TRUE(outcome) << outcome.error().message;
    clients.push_back(*outcome);
    auto channel = accepted->take();
    ASSERT_TRUE(channel);
    handlers.push_back(std::make_shared<RecordingHandler>());
    // Each agent gets its own name back.
    handlers.back()->respond = [raw = channel.get()](std::string_view line) {
      EXPECT_EQ(line, raw->peer().user);
      EXPECT_TRUE(raw->send(line));
    };
    on_worker(*channel, [&] { channel->set_handler(handlers.back()); });
  }
  for (auto& client : clients) {
    handlers.push_back(std::make_shared<RecordingHandler>());
    on_worker(*client, [&] {
      client->set_handler(handlers.back());
      EXPECT_TRUE(client->send(client->peer().user));
    });
    EXPECT_EQ(handlers.back()->lines.take(), client->peer().user);
  }
  server.reset();
  runtime.stop();
}

}  // namespace
}  // namespace hive::net::ssh
