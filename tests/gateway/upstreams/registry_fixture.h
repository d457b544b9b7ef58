#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crypto/scratch_folder.h"
#include "gateway/calls/funnel_access.h"
#include "gateway/upstreams/fake_servers.h"
#include "gateway/upstreams/registry.h"

namespace hive::upstreams::test {

/// A request and, later, its reply.
struct Sent {
  std::uint64_t ticket = 0;
  struct Box {
    std::mutex mutex;
    std::condition_variable has_come;
    std::optional<Reply> reply;
    std::size_t replies = 0;
  };
  std::shared_ptr<Box> box = std::make_shared<Box>();

  [[nodiscard]] bool is_answered() const {
    std::lock_guard lock(box->mutex);
    return box->reply.has_value();
  }
  /// Waits for it.
  [[nodiscard]] Reply reply() const {
    std::unique_lock lock(box->mutex);
    bool has_come = box->has_come.wait_for(lock, std::chrono::seconds(60), [&] { return box->reply.has_value(); });
    EXPECT_TRUE(has_come) << "no reply";
    EXPECT_LE(box->replies, 1U);
    return box->reply.value_or(Reply());
  }
};

/// The registry above servers that the test plays.
class RegistryTest : public testing::Test {
 protected:
  RegistryTest() {
    tuning.backoff_base = std::chrono::milliseconds(20);
    tuning.backoff_cap = std::chrono::milliseconds(160);
    tuning.gather = std::chrono::milliseconds(20);
    tuning.refresh_pause = std::chrono::milliseconds(40);
    tuning.refresh_retry = std::chrono::milliseconds(40);
    tuning.announce = std::chrono::milliseconds(20);
    config.upstreams = {upstream("git")};
    runtime.start();
  }
  ~RegistryTest() override {
    if (registry) registry->close();
    runtime.stop();
    registry.reset();
  }

  static config::UpstreamConfig upstream(std::string name, std::string transport = "http") {
    config::UpstreamConfig made;
    made.name = name;
    made.prefix = name;
    made.transport = std::move(transport);
    made.url = "http://127.0.0.1:1/mcp?key=hush";
    return made;
  }

  void start() {
    if (!database) {
      auto opened = store::Database::open(folder.path("state.db"));
      ASSERT_TRUE(opened) << opened.error().message;
      database = *std::move(opened);
    }
    Upstreams::Dependencies dependencies{
        .runtime = runtime,
        .clock = system_clock(),
        .database = *database,
        .event = [this](const std::string& name, const std::string& action, const std::string& detail) {
          std::lock_guard lock(events_mutex);
          events.push_back(name + " " + action + " " + detail);
        }};
    registry = std::make_unique<Registry>(dependencies, servers.factory(), tuning, [this] { return share.load(); });
    listening = registry->listen([this](const Change& change) {
      std::lock_guard lock(events_mutex);
      changes.push_back(change);
    });
    registry->apply(config);
  }
  /// A gateway that was ended and starts anew with the same database.
  void restart() {
    registry->close();
    registry.reset();
    start();
  }

  template <class Condition>
  static bool eventually(Condition condition) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  UpstreamStatus status(std::string_view name = "git") {
    for (UpstreamStatus& each : registry->statuses()) {
      if (each.name == name) return each;
    }
    return {};
  }
  bool becomes(const std::string& state, std::string_view name = "git") {
    return eventually([&] { return status(name).state == state; });
  }
  std::vector<std::string> tools() {
    std::vector<std::string> names;
    for (const Item& item : registry->listing()->tools)
      names.push_back(item.public_name);
    return names;
  }
  bool offers(const std::vector<std::string>& names) {
    return eventually([&] { return tools() == names; });
  }

  Sent send(std::shared_ptr<Caller> caller = nullptr, std::string_view name = "git",
            std::chrono::milliseconds timeout = {}, std::string method = "tools/call",
            std::string params = R"({"name":"t"})") {
    Sent sent;
    Request request;
    request.method = std::move(method);
    request.params = std::move(params);
    request.caller = std::move(caller);
    request.timeout = timeout;
    request.done = [box = sent.box](Reply reply) {
      std::lock_guard lock(box->mutex);
      ++box->replies;
      box->reply = std::move(reply);
      box->has_come.notify_all();
    };
    sent.ticket = calls::FunnelAccess::send(*registry, name, std::move(request));
    return sent;
  }
  Result<void> accept(std::string tool, std::string sha256, std::string name = "git") {
    std::mutex mutex;
    std::condition_variable has_come;
    std::optional<Result<void>> result;
    registry->accept(std::move(name), std::move(tool), std::move(sha256), [&](Result<void> given) {
      std::lock_guard lock(mutex);
      result = std::move(given);
      has_come.notify_all();
    });
    std::unique_lock lock(mutex);
    EXPECT_TRUE(has_come.wait_for(lock, std::chrono::seconds(60), [&] { return result.has_value(); }));
    return result.value_or(fail(ErrorCode::internal, "no answer"));
  }

  std::size_t count_events(std::string_view start) {
    std::lock_guard lock(events_mutex);
    return static_cast<std::size_t>(
        std::ranges::count_if(events, [&](const std::string& event) { return event.starts_with(start); }));
  }
  std::vector<std::string> all_events() {
    std::lock_guard lock(events_mutex);
    return events;
  }

  hive::test::ScratchFolder folder;
  FakeServers servers;
  Tuning tuning;
  std::atomic<double> share = 0;  ///< of the backoff's ceiling that is waited
  config::GatewayConfig config;
  net::Runtime runtime{2};
  std::mutex events_mutex;
  std::vector<std::string> events;
  std::vector<Change> changes;
  std::unique_ptr<store::Database> database;
  std::shared_ptr<void> listening;
  std::unique_ptr<Registry> registry;
};

}  // namespace hive::upstreams::test
