#pragma once

#include <chrono>
#include <concepts>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "crypto/ssh_key.h"
#include "net/runtime/runtime.h"
#include "net/ssh/client.h"
#include "net/ssh/server.h"

namespace hive::net::ssh {

using namespace std::chrono_literals;

/// Generous: only reached when something is broken.
inline constexpr auto patience = 20s;

/// A queue that one thread fills and the test waits on.
template <class T>
class Mailbox {
 public:
  void put(T value) {
    std::lock_guard lock(mutex_);
    items_.push_back(std::move(value));
    changed_.notify_all();
  }
  /// The next value; fails the test when none comes.
  T take()
    requires std::default_initializable<T>
  {
    T value{};
    (void)take_into(value);
    return value;
  }
  bool take_into(T& value) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [this] { return !items_.empty(); })) {
      ADD_FAILURE() << "nothing arrived in time";
      return false;
    }
    value = std::move(items_.front());
    items_.pop_front();
    return true;
  }
  [[nodiscard]] size_t size() {
    std::lock_guard lock(mutex_);
    return items_.size();
  }
  bool wait_for_size(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return items_.size() >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
};

/// A temporary folder that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  [[nodiscard]] std::string path(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// A handler whose lines and end go to mailboxes.
struct RecordingHandler : LineChannel::Handler {
  void on_line(std::string_view line) override {
    if (respond) respond(line);
    if (keep_lines) lines.put(std::string(line));
  }
  void on_writable() override { writable.put(1); }
  void on_closed(const Error& reason) override { closed.put(reason); }

  std::function<void(std::string_view)> respond;  ///< on the worker
  bool keep_lines = true;
  Mailbox<std::string> lines;
  Mailbox<int> writable;
  Mailbox<Error> closed;
};

/// A server on a free loopback port whose agents are the keys in `agents`, and everything to connect to it.
class SshFixture : public testing::Test {
 protected:
  explicit SshFixture(size_t workers = 2) : runtime(workers) {}
  void TearDown() override;

  /// Writes keys and starts the server. `change` may alter the options first.
  void start_server(const std::function<void(ServerOptions&)>& change = {});
  /// Options of a client that is agent-1 and trusts the server's key.
  [[nodiscard]] ClientOptions client_options() const;
  /// Connects and waits for the outcome.
  Result<std::shared_ptr<LineChannel>> connect_client(ClientOptions options);
  /// Connects and returns both ends with handlers set. The test fails when that fails.
  struct Pair {
    std::shared_ptr<LineChannel> client, server;
    std::shared_ptr<RecordingHandler> client_handler, server_handler;
  };
  Pair connect_pair();
  /// Runs `task` on the channel's worker and waits for it.
  static void on_worker(LineChannel& channel, const std::function<void()>& task);
  static Result<void> send(LineChannel& channel, std::string_view line);

  struct Refusal {
    std::string address, user, reason;
  };

  TemporaryFolder folder;
  Runtime runtime;
  std::unique_ptr<Server> server;
  std::shared_ptr<crypto::PublicKey> host_key;
  std::shared_ptr<Mailbox<std::shared_ptr<LineChannel>>> accepted =
      std::make_shared<Mailbox<std::shared_ptr<LineChannel>>>();
  std::shared_ptr<Mailbox<Refusal>> refusals = std::make_shared<Mailbox<Refusal>>();
};

}  // namespace hive::net::ssh
