#include "net/runtime/timer_wheel.h"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect_pipe.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/readable_pipe.hpp>
#include <boost/asio/writable_pipe.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

namespace hive::net {
namespace {

using std::chrono::milliseconds;

class TimerWheelTest : public ::testing::Test {
 protected:
  void run_for(milliseconds time) { context.run_for(time); }

  boost::asio::io_context context;
  TimerWheel wheel{context};
};

TEST_F(TimerWheelTest, RunsTasksInTheOrderInWhichTheyAreDue) {
  std::vector<int> order;
  Timer late(wheel.schedule(milliseconds(60), [&] { order.push_back(2); }));
  Timer early(wheel.schedule(milliseconds(0), [&] { order.push_back(1); }));
  context.run();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(TimerWheelTest, NeverRunsATaskBeforeItsDelay) {
  auto start = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::duration> elapsed;
  Timer timer(wheel.schedule(milliseconds(45), [&] { elapsed = std::chrono::steady_clock::now() - start; }));
  context.run();
  ASSERT_TRUE(elapsed.has_value());
  EXPECT_GE(*elapsed, milliseconds(45));
}

TEST_F(TimerWheelTest, SleepsUntilSomethingIsDue) {
  bool ran = false;
  Timer timer(wheel.schedule(milliseconds(300), [&] { ran = true; }));
  std::size_t wakeups = 0;
  while (!ran)
    wakeups += context.run_one();
  EXPECT_LE(wakeups, 3U);
}

TEST_F(TimerWheelTest, AnEarlierTaskShortensTheSleep) {
  std::vector<int> order;
  Timer late(wheel.schedule(std::chrono::hours(1), [&] { order.push_back(2); }));
  Timer early(wheel.schedule(milliseconds(20), [&] { order.push_back(1); }));
  auto start = std::chrono::steady_clock::now();
  while (order.empty())
    context.run_one();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(order, (std::vector<int>{1}));
}

TEST_F(TimerWheelTest, ATaskBeyondOneTurnOfTheWheelWaitsForItsTurn) {
  // Due in the same slot, one turn apart.
  std::vector<int> order;
  Timer first(wheel.schedule(milliseconds(20), [&] { order.push_back(1); }));
  Timer second(wheel.schedule(milliseconds(20) + 512 * TimerWheel::tick, [&] { order.push_back(2); }));
  context.run_for(milliseconds(200));
  EXPECT_EQ(order, (std::vector<int>{1}));
}

TEST_F(TimerWheelTest, DroppingATimerCancelsItAndFreesWhatItsTaskHolds) {
  auto held = std::make_shared<int>(1);
  bool ran = false;
  {
    Timer timer(wheel.schedule(milliseconds(10), [held, &ran] { ran = true; }));
    EXPECT_EQ(held.use_count(), 2);
  }
  EXPECT_EQ(held.use_count(), 1);
  context.run();
  EXPECT_FALSE(ran);
}

TEST_F(TimerWheelTest, StopsItsAsioTimerWhenNothingIsScheduled) {
  Timer timer(wheel.schedule(milliseconds(0), [] {}));
  context.run();  // returns only when nothing is pending
  SUCCEED();
}

TEST_F(TimerWheelTest, ATaskMayCancelAnotherThatIsDueInTheSameTick) {
  bool second_ran = false;
  Timer second;
  Timer first(wheel.schedule(milliseconds(0), [&] { second.cancel(); }));
  second = Timer(wheel.schedule(milliseconds(0), [&] { second_ran = true; }));
  context.run();
  EXPECT_FALSE(second_ran);
}

TEST_F(TimerWheelTest, ATaskMayDestroyItsOwnTimerAndScheduleAnother) {
  std::vector<int> order;
  std::optional<Timer> timer;
  Timer next;
  timer.emplace(wheel.schedule(milliseconds(0), [&] {
    timer.reset();
    order.push_back(1);
    next = Timer(wheel.schedule(milliseconds(0), [&] { order.push_back(2); }));
  }));
  context.run();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(TimerWheelTest, AssigningATimerCancelsTheOneItHeld) {
  int ran = 0;
  Timer timer(wheel.schedule(milliseconds(0), [&] { ran += 1; }));
  timer = Timer(wheel.schedule(milliseconds(0), [&] { ran += 10; }));
  context.run();
  EXPECT_EQ(ran, 10);
}

TEST_F(TimerWheelTest, AfterAPauseOfTheWorkerWhatCameMeanwhileGoesFirst) {
  std::vector<std::string> order;
  boost::asio::readable_pipe reader(context);
  boost::asio::writable_pipe writer(context);
  boost::asio::connect_pipe(reader, writer);
  boost::asio::write(writer, boost::asio::buffer("answer", 6));
  // What is read takes several turns of the loop.
  std::array<char, 1> byte{};
  std::function<void()> read = [&] {
    reader.async_read_some(boost::asio::buffer(byte), [&](const boost::system::error_code& error, std::size_t) {
      ASSERT_FALSE(error);
      order.emplace_back(1, byte[0]);
      if (order.size() < 6) read();
    });
  };
  Timer deadline(wheel.schedule(milliseconds(20), [&] { order.push_back("too late"); }));
  // The process stands still for longer than the deadline.
  boost::asio::post(context, [&] {
    std::this_thread::sleep_for(milliseconds(1500));
    read();
  });
  context.run();
  EXPECT_EQ(order, (std::vector<std::string>{"a", "n", "s", "w", "e", "r", "too late"}));
}

}  // namespace
}  // namespace hive::net
