#include "agent/read_pool.h"

#include <latch>

#include "agent/tool.h"
#include "agent/tools/metrics_sampler.h"
#include "agent_fixture.h"

namespace hive::agent {
namespace {

TEST(ReadPool, CountsAReadUntilItHasReallyReturned) {
  std::latch hang(1);
  std::atomic<int> ran = 0;
  ReadPool pool(1, 2);
  EXPECT_TRUE(pool.run([&] { hang.wait(); }));
  EXPECT_TRUE(pool.run([&] { ++ran; }));
  EXPECT_FALSE(pool.run([&] { ran += 100; }));
  EXPECT_EQ(pool.pending(), 2U);
  hang.count_down();
  EXPECT_TRUE(eventually([&] { return pool.pending() == 0; }));
  EXPECT_TRUE(pool.run([&] { ++ran; }));
  pool.finish();
  EXPECT_EQ(ran, 2);
}

/// Tools whose reads hang until the test lets them go.
class HungReadsTest : public exec::RunnerTest {
 protected:
  HungReadsTest() {
    make_runner();
    auto metrics = MetricsSampler::create();
    EXPECT_TRUE(metrics);
    metrics_ = *std::move(metrics);
  }
  ~HungReadsTest() override {
    if (!released_) release();
    reads_.finish();
  }

  void release() {
    released_ = true;
    hang_.count_down();
  }

  std::future<ToolReply> read(std::move_only_function<ToolReply()> work,
                              std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
    auto promise = std::make_shared<std::promise<ToolReply>>();
    ToolCall call;
    call.timeout = timeout;
    call.reply = [promise](ToolReply reply) { promise->set_value(std::move(reply)); };
    on_worker([&] {
      ToolServices services{.runtime = runtime_,
                            .worker = runtime_.worker(0),
                            .config = config_,
                            .allowlist = allowlist_,
                            .runner = *runner_,
                            .metrics = *metrics_,
                            .reads = reads_};
      cancel_ = run_in_pool(services, std::move(call), std::move(work));
    });
    return promise->get_future();
  }

  std::move_only_function<ToolReply()> hung() {
    return [this] {
      hang_.wait();
      return ToolReply{};
    };
  }

  config::AgentConfig config_;
  exec::Allowlist allowlist_ = *exec::Allowlist::compile({});
  std::unique_ptr<MetricsSampler> metrics_;
  ReadPool reads_{2, 3};
  std::latch hang_{1};
  bool released_ = false;
  CancelHook cancel_;
};

TEST_F(HungReadsTest, DoNotKeepCommandsFromStarting) {
  auto first = read(hung());
  auto second = read(hung());
  EXPECT_EQ(run(shell("echo here")).output.head, "here\n");
  release();
  EXPECT_EQ(first.get().outcome, protocol::Outcome::success);
  EXPECT_EQ(second.get().outcome, protocol::Outcome::success);
}

TEST_F(HungReadsTest, AreAnsweredAtTheirDeadlineAndThenRefusedAsBusy) {
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(read(hung(), std::chrono::milliseconds(40)).get().reason, "timed_out");
  ToolReply refused = read(hung()).get();
  EXPECT_EQ(refused.outcome, protocol::Outcome::denied);
  EXPECT_EQ(refused.reason, "busy");
}

TEST_F(HungReadsTest, AReadThatWasGivenUpBeforeItBeganIsDropped) {
  auto first = read(hung());
  auto second = read(hung());
  bool began = false;
  auto third = read([&began] {
    began = true;
    return ToolReply{};
  });
  on_worker([this] { cancel_(); });
  EXPECT_EQ(third.get().outcome, protocol::Outcome::cancelled);
  release();
  reads_.finish();
  EXPECT_FALSE(began);
}

}  // namespace
}  // namespace hive::agent
