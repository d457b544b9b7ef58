#include "net/runtime/runtime.h"

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace hive::net {
namespace {

TEST(RuntimeTest, RunsPostedTasksOnTheWorkerTheyWerePostedTo) {
  Runtime runtime(2);
  runtime.start();
  std::promise<bool> on_first;
  runtime.worker(0).post([&] { on_first.set_value(runtime.worker(0).runs_here() && !runtime.worker(1).runs_here()); });
  EXPECT_TRUE(on_first.get_future().get());
}

TEST(RuntimeTest, KeepsTheOrderOfTasksFromOneThread) {
  Runtime runtime(1);
  runtime.start();
  std::vector<int> order;
  std::promise<void> done;
  for (int i = 0; i < 1000; ++i)
    runtime.worker(0).post([&order, i] { order.push_back(i); });
  runtime.worker(0).post([&] { done.set_value(); });
  done.get_future().wait();
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(RuntimeTest, LosesNoTaskWhenManyThreadsPost) {
  Runtime runtime(2);
  runtime.start();
  std::atomic<int> count = 0;
  std::promise<void> done;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        runtime.next_worker().post([&] {
          if (++count == 20000) done.set_value();
        });
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  done.get_future().wait();
  EXPECT_EQ(count, 20000);
}

TEST(RuntimeTest, DispatchRunsAtOnceOnTheSameWorker) {
  Runtime runtime(1);
  runtime.start();
  std::promise<bool> at_once;
  runtime.worker(0).post([&] {
    bool ran = false;
    runtime.worker(0).dispatch([&] { ran = true; });
    at_once.set_value(ran);
  });
  EXPECT_TRUE(at_once.get_future().get());
}

TEST(RuntimeTest, BlockingWorkRunsElsewhere) {
  Runtime runtime(1);
  runtime.start();
  std::promise<bool> elsewhere;
  runtime.run_blocking([&] { elsewhere.set_value(!runtime.worker(0).runs_here()); });
  EXPECT_TRUE(elsewhere.get_future().get());
}

}  // namespace
}  // namespace hive::net
