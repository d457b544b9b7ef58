/// What a LineChannel promises: order, back-pressure, limits, one end.

#include <atomic>

#include <gmock/gmock.h>

#include "net/ssh/ssh_fixture.h"

namespace hive::net::ssh {
namespace {

using testing::HasSubstr;

class SessionChannelTest : public SshFixture {
 protected:
  /// Waits until the condition holds on the channel's worker.
  static bool eventually(LineChannel& channel, const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + patience;
    bool holds = false;
    while (!holds && std::chrono::steady_clock::now() < end)
      on_worker(channel, [&] { holds = condition(); });
    return holds;
  }
};

TEST_F(SessionChannelTest, ManyLinesInOneTurnArriveInOrder) {
  start_server();
  Pair pair = connect_pair();
  on_worker(*pair.client, [&] {
    for (int i = 0; i < 5000; ++i)
      ASSERT_TRUE(pair.client->send("line " + std::to_string(i)));
  });
  for (int i = 0; i < 5000; ++i)
    ASSERT_EQ(pair.server_handler->lines.take(), "line " + std::to_string(i));
}

TEST_F(SessionChannelTest, ALineAsLongAsTheLimitPasses) {
  start_server();
  Pair pair = connect_pair();
  const std::string line(size_t{4} << 20, 'x');
  ASSERT_TRUE(send(*pair.client, line));
  EXPECT_EQ(pair.server_handler->lines.take().size(), line.size());
  ASSERT_TRUE(send(*pair.server, line));
  EXPECT_EQ(pair.client_handler->lines.take().size(), line.size());
}

TEST_F(SessionChannelTest, ASixteenMegabyteLineEndsTheConnectionAndSaysWhy) {
  start_server();
  ClientOptions options = client_options();
  options.max_queued_bytes = size_t{32} << 20;
  auto client = connect_client(options);
  ASSERT_TRUE(client);
  auto channel = accepted->take();
  auto handler = std::make_shared<RecordingHandler>();
  auto client_handler = std::make_shared<RecordingHandler>();
  on_worker(*channel, [&] { channel->set_handler(handler); });
  on_worker(**client, [&] { (*client)->set_handler(client_handler); });
  ASSERT_TRUE(send(**client, std::string(size_t{16} << 20, 'x')));
  const Error reason = handler->closed.take();
  EXPECT_EQ(reason.code, ErrorCode::resource_exhausted);
  EXPECT_THAT(reason.message, HasSubstr("line longer than the limit of 4194304 bytes"));
  EXPECT_EQ(handler->lines.size(), 0U);
  client_handler->closed.take();
}

TEST_F(SessionChannelTest, AStoppedReaderHoldsThePeerBackAndTheOtherDirectionGoesOn) {
  start_server();
  Pair pair = connect_pair();
  // Opens the window as far as it goes.
  ASSERT_TRUE(send(*pair.client, std::string(200'000, 'w')));
  ASSERT_EQ(pair.server_handler->lines.take().size(), 200'000U);

  on_worker(*pair.server, [&] { pair.server->set_reading(false); });
  constexpr size_t line_bytes = 100'000;
  constexpr size_t count = 100;
  size_t queued = 0;
  on_worker(*pair.client, [&] {
    for (size_t i = 0; i < count; ++i)
      ASSERT_TRUE(pair.client->send(std::to_string(i) + ":" + std::string(line_bytes, 'x')));
    queued = pair.client->queued_bytes();
  });
  // A megabyte goes into the window, then the client has to keep the rest itself.
  EXPECT_TRUE(eventually(*pair.client, [&] { return pair.client->queued_bytes() < queued - 1'000'000; }));
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(send(*pair.server, "still talking"));
    ASSERT_EQ(pair.client_handler->lines.take(), "still talking");
  }
  on_worker(*pair.client, [&] { EXPECT_GT(pair.client->queued_bytes(), queued - 1'500'000); });
  EXPECT_EQ(pair.server_handler->lines.size(), 0U);

  on_worker(*pair.server, [&] { pair.server->set_reading(true); });
  for (size_t i = 0; i < count; ++i) {
    const std::string line = pair.server_handler->lines.take();
    ASSERT_EQ(line.size(), line_bytes + std::to_string(i).size() + 1);
    ASSERT_TRUE(line.starts_with(std::to_string(i) + ":"));
  }
}

TEST_F(SessionChannelTest, APeerThatHasSentMuchGetsAWindowThatFillsALongFatPathAndNoMore) {
  start_server();
  Pair pair = connect_pair();
  // Both directions: an agent's answers, and a gateway's requests.
  for (const auto& [sender, reader, arrived] :
       {std::tuple(pair.client, pair.server, pair.server_handler), {pair.server, pair.client, pair.client_handler}}) {
    ASSERT_TRUE(send(*sender, std::string(300'000, 'w')));
    ASSERT_EQ(arrived->lines.take().size(), 300'000U);
    // A turn of the reader's loop after the line: the window is open by then.
    on_worker(*reader, [] {});
    on_worker(*reader, [&reader] { reader->set_reading(false); });
    constexpr size_t line_bytes = 1'000'000;
    constexpr size_t count = 7;
    on_worker(*sender, [&sender] {
      for (size_t i = 0; i < count; ++i)
        ASSERT_TRUE(sender->send(std::string(line_bytes, 'x')));
    });
    // Twice what a path of 100 ms and 100 Mbit/s holds.
    EXPECT_TRUE(eventually(*sender, [&sender] { return sender->queued_bytes() < line_bytes * count - 2'500'000; }));
    on_worker(*sender, [&sender] { EXPECT_GT(sender->queued_bytes(), line_bytes * count - 5'000'000); });
    on_worker(*reader, [&reader] { reader->set_reading(true); });
    for (size_t i = 0; i < count; ++i)
      ASSERT_EQ(arrived->lines.take().size(), line_bytes);
  }
}

TEST_F(SessionChannelTest, CountsWhatMovesAndWhatThePeersMachineHas) {
  start_server();
  Pair pair = connect_pair();
  ASSERT_TRUE(send(*pair.client, std::string(100'000, 'x')));
  pair.server_handler->lines.take();
  EXPECT_TRUE(eventually(*pair.client, [&] {
    const Traffic traffic = pair.client->traffic();
    return traffic.taken == 100'001 && traffic.acked > 100'000 && traffic.queued == 0 && !traffic.is_sending;
  }));
  on_worker(*pair.server, [&] { EXPECT_GT(pair.server->traffic().received, 100'000U); });
}

TEST_F(SessionChannelTest, AProbeIsAnsweredByThePeersSsh) {
  start_server();
  Pair pair = connect_pair();
  for (LineChannel* channel : {pair.client.get(), pair.server.get()}) {
    for (int round = 0; round < 3; ++round) {
      Traffic before;
      on_worker(*channel, [&] {
        before = channel->traffic();
        channel->probe();
      });
      EXPECT_TRUE(eventually(*channel, [&] { return channel->traffic().received > before.received; })) << round;
      // Both have settled before the next one, so that its answer is told from this one's.
      EXPECT_TRUE(eventually(*channel, [&] { return !channel->traffic().is_sending; }));
    }
  }
}

TEST_F(SessionChannelTest, AReaderThatStopsAfterEachLineGetsEveryLineOnce) {
  start_server();
  Pair pair = connect_pair();
  // Stops in the middle of a batch, goes on a turn later; memory stays bounded and nothing is skipped.
  pair.server_handler->respond = [channel = pair.server.get()](std::string_view) {
    channel->set_reading(false);
    channel->worker().post([channel] { channel->set_reading(true); });
  };
  on_worker(*pair.client, [&] {
    for (int i = 0; i < 2000; ++i)
      ASSERT_TRUE(pair.client->send(std::to_string(i) + ":" + std::string(2000, 'x')));
  });
  for (int i = 0; i < 2000; ++i)
    ASSERT_TRUE(pair.server_handler->lines.take().starts_with(std::to_string(i) + ":"));
}

TEST_F(SessionChannelTest, LargeAnswersGoBothWaysAtOnce) {
  start_server();
  Pair pair = connect_pair();
  const std::string line(1 << 20, 'x');
  constexpr size_t count = 5;
  on_worker(*pair.client, [&] {
    for (size_t i = 0; i < count; ++i)
      ASSERT_TRUE(pair.client->send(line));
  });
  on_worker(*pair.server, [&] {
    for (size_t i = 0; i < count; ++i)
      ASSERT_TRUE(pair.server->send(line));
  });
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(pair.server_handler->lines.take().size(), line.size());
    EXPECT_EQ(pair.client_handler->lines.take().size(), line.size());
  }
}

TEST_F(SessionChannelTest, AFullQueueRefusesALineAndTellsWhenThereIsRoom) {
  start_server([](ServerOptions& options) { options.max_queued_bytes = 100'000; });
  Pair pair = connect_pair();
  on_worker(*pair.server, [&] {
    ASSERT_TRUE(pair.server->send(std::string(90'000, 'x')));
    const auto refused = pair.server->send(std::string(20'000, 'x'));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
    EXPECT_THAT(refused.error().message, HasSubstr("agent-1"));
    EXPECT_EQ(pair.server->queued_bytes(), 90'001U);
    ASSERT_TRUE(pair.server->send("fits"));
  });
  pair.server_handler->writable.take();
  EXPECT_EQ(pair.client_handler->lines.take().size(), 90'000U);
  EXPECT_EQ(pair.client_handler->lines.take(), "fits");
  EXPECT_EQ(pair.server_handler->writable.size(), 0U);
}

TEST_F(SessionChannelTest, CloseSendsWhatIsQueuedAndTellsThePeerWhy) {
  start_server();
  Pair pair = connect_pair();
  on_worker(*pair.server, [&] {
    ASSERT_TRUE(pair.server->send("last words"));
    pair.server->close("replaced by a newer connection");
    EXPECT_FALSE(pair.server->is_open());
    EXPECT_FALSE(pair.server->send("too late"));
    EXPECT_EQ(pair.server_handler->closed.size(), 0U) << "never from within close()";
    pair.server->close("again");
  });
  EXPECT_EQ(pair.client_handler->lines.take(), "last words");
  EXPECT_THAT(pair.client_handler->closed.take().message, HasSubstr("replaced by a newer connection"));
  EXPECT_EQ(pair.server_handler->closed.take().message, "replaced by a newer connection");
  on_worker(*pair.server, [&] { EXPECT_FALSE(pair.server->send("much too late")); });
  EXPECT_EQ(pair.server_handler->closed.size(), 0U);
}

TEST_F(SessionChannelTest, CloseFromWithinALineDeliversNoMore) {
  start_server();
  Pair pair = connect_pair();
  pair.server_handler->respond = [channel = pair.server.get()](std::string_view) { channel->close("enough"); };
  on_worker(*pair.client, [&] {
    ASSERT_TRUE(pair.client->send("one"));
    ASSERT_TRUE(pair.client->send("two"));
  });
  pair.server_handler->closed.take();
  EXPECT_EQ(pair.server_handler->lines.size(), 1U);
}

TEST_F(SessionChannelTest, LinesWaitForAHandler) {
  start_server();
  auto client = connect_client(client_options());
  ASSERT_TRUE(client);
  auto channel = accepted->take();
  ASSERT_TRUE(send(**client, "early"));
  ASSERT_TRUE(send(**client, "birds"));
  // Both have certainly arrived when a line comes back the other way.
  auto client_handler = std::make_shared<RecordingHandler>();
  on_worker(**client, [&] { (*client)->set_handler(client_handler); });
  ASSERT_TRUE(send(*channel, "hello"));
  EXPECT_EQ(client_handler->lines.take(), "hello");
  auto handler = std::make_shared<RecordingHandler>();
  on_worker(*channel, [&] { channel->set_handler(handler); });
  EXPECT_EQ(handler->lines.take(), "early");
  EXPECT_EQ(handler->lines.take(), "birds");
}

TEST_F(SessionChannelTest, AHandlerThatComesAfterTheEndIsToldOfIt) {
  start_server();
  auto client = connect_client(client_options());
  ASSERT_TRUE(client);
  auto channel = accepted->take();
  on_worker(**client, [&] { (*client)->close("gone"); });
  ASSERT_TRUE(eventually(*channel, [&] { return !channel->is_open(); }));
  auto handler = std::make_shared<RecordingHandler>();
  on_worker(*channel, [&] { channel->set_handler(handler); });
  EXPECT_THAT(handler->closed.take().message, HasSubstr("gone"));
}

TEST_F(SessionChannelTest, AHandlerThatOwnsItsChannelIsFreedAtTheEnd) {
  start_server();
  Pair pair = connect_pair();
  struct Owner : LineChannel::Handler {
    void on_line(std::string_view) override {}
    void on_closed(const Error&) override {}
    std::shared_ptr<LineChannel> channel;
  };
  auto owner = std::make_shared<Owner>();
  owner->channel = pair.server;
  const std::weak_ptr<Owner> weak = owner;
  LineChannel& channel = *pair.server;
  Worker& worker = channel.worker();
  on_worker(channel, [&] {
    channel.set_handler(std::move(owner));
    pair.server.reset();
  });
  on_worker(*pair.client, [&] { pair.client->close("bye"); });
  const auto end = std::chrono::steady_clock::now() + patience;
  bool freed = false;
  while (!freed && std::chrono::steady_clock::now() < end) {
    std::promise<void> looked;
    worker.post([&] {
      freed = weak.expired();
      looked.set_value();
    });
    looked.get_future().wait();
  }
  EXPECT_TRUE(freed);
}

TEST_F(SessionChannelTest, ReplacingTheHandlerFromItsOwnCallIsSafe) {
  start_server();
  Pair pair = connect_pair();
  auto second = std::make_shared<RecordingHandler>();
  pair.server_handler->respond = [&](std::string_view) { pair.server->set_handler(second); };
  on_worker(*pair.client, [&] {
    ASSERT_TRUE(pair.client->send("for the first"));
    ASSERT_TRUE(pair.client->send("for the second"));
  });
  EXPECT_EQ(pair.server_handler->lines.take(), "for the first");
  EXPECT_EQ(second->lines.take(), "for the second");
}

TEST_F(SessionChannelTest, ChannelsOutliveTheLoopQuietly) {
  start_server();
  Pair pair = connect_pair();
  ASSERT_TRUE(send(*pair.client, "x"));
  pair.server_handler->lines.take();
  server.reset();
  runtime.stop();
  // Freed after their loops have stopped, with waits still pending.
  pair = {};
}

}  // namespace
}  // namespace hive::net::ssh
