#include "gateway/fleet/probe.h"

#include <deque>

#include <gmock/gmock.h>

#include "protocol/json.h"

namespace hive::fleet {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A channel whose other end is the test; on a worker that runs only what the test lets it run.
class AskingChannel final : public net::ssh::LineChannel {
 public:
  explicit AskingChannel(net::Worker& worker) : worker_(worker) { peer_.user = "agent-1"; }
  net::Worker& worker() override { return worker_; }
  [[nodiscard]] const net::ssh::Peer& peer() const override { return peer_; }
  void set_handler(std::shared_ptr<Handler> handler) override { handler_ = std::move(handler); }
  Result<void> send(std::string_view line) override {
    sent.emplace_back(line);
    return {};
  }
  [[nodiscard]] size_t queued_bytes() const override { return 0; }
  [[nodiscard]] net::ssh::Traffic traffic() const override { return {}; }
  void probe() override {}
  void set_reading(bool) override {}
  void close(std::string_view reason) override { closed = reason; }
  [[nodiscard]] bool is_open() const override { return closed.empty(); }

  void ask(std::string_view line) { handler_->on_line(line); }
  void end() { std::exchange(handler_, nullptr)->on_closed(Error{ErrorCode::unavailable, closed}); }

  std::deque<std::string> sent;
  std::string closed;

 private:
  net::Worker& worker_;
  net::ssh::Peer peer_;
  std::shared_ptr<Handler> handler_;
};

class ProbeTest : public testing::Test {
 protected:
  ProbeTest() { answer_probe(channel_, *fleet_, clock_); }
  ~ProbeTest() override { channel_->end(); }

  static constexpr std::string_view question = R"({"jsonrpc":"2.0","id":"7","method":"probe"})";

  ManualClock clock_;
  net::Worker worker_;
  std::unique_ptr<Fleet> fleet_ = Fleet::create(clock_, {}, {});
  std::shared_ptr<AskingChannel> channel_ = std::make_shared<AskingChannel>(worker_);
};

TEST_F(ProbeTest, AnswersWithItsTimeAndWhetherTheAgentIsOnline) {
  channel_->ask(question);
  ASSERT_EQ(channel_->sent.size(), 1U);
  EXPECT_THAT(channel_->sent[0], AllOf(HasSubstr(R"("id":"7")"), HasSubstr(R"("unix_ms":1800000000000)"),
                                       HasSubstr(R"("agent_id":"agent-1")"), HasSubstr(R"("online":false)")));
  EXPECT_TRUE(json::validate(channel_->sent[0]));
  EXPECT_TRUE(channel_->is_open());
}

TEST_F(ProbeTest, IsNotTakenForTheAgent) {
  channel_->ask(question);
  EXPECT_TRUE(fleet_->snapshot()->agents.empty());
}

TEST_F(ProbeTest, AnswersNothingElse) {
  for (std::string_view line :
       {R"({"jsonrpc":"2.0","id":"1","method":"tools/list"})", "garbage", R"({"jsonrpc":"2.0","result":{}})"}) {
    channel_->closed.clear();
    channel_->ask(line);
    EXPECT_FALSE(channel_->is_open()) << line;
  }
  EXPECT_TRUE(channel_->sent.empty());
}

TEST_F(ProbeTest, AnswersAFewQuestionsAndNoMore) {
  for (int i = 0; i < 8; ++i)
    channel_->ask(question);
  EXPECT_TRUE(channel_->is_open());
  channel_->ask(question);
  EXPECT_FALSE(channel_->is_open());
  EXPECT_EQ(channel_->sent.size(), 8U);
}

TEST_F(ProbeTest, ALongLineIsNotRead) {
  channel_->ask(R"({"jsonrpc":"2.0","id":"1","method":"probe","params":{"x":")" + std::string(2000, 'x') + "\"}}");
  EXPECT_FALSE(channel_->is_open());
  EXPECT_TRUE(channel_->sent.empty());
}

}  // namespace
}  // namespace hive::fleet
