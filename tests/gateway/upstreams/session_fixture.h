#pragma once

#include <condition_variable>
#include <csignal>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "gateway/upstreams/connection.h"
#include "net/http/async_client.h"
#include "net/runtime/runtime.h"

/// One connection to a server, with everything that it says written down, for tests of the transports and the session.
namespace hive::upstreams::test {

inline constexpr std::chrono::seconds patience(60);

/// A client that writes down what it is told, and answers what it is asked.
class FakeCaller final : public Caller {
 public:
  explicit FakeCaller(std::string capabilities = "{}", std::string key = "alice")
      : key_(std::move(key)), capabilities_(std::move(capabilities)) {}

  [[nodiscard]] const std::string& key() const override { return key_; }
  [[nodiscard]] const std::string& capabilities() const override { return capabilities_; }
  [[nodiscard]] std::optional<std::string> log_level() const override { return level; }
  [[nodiscard]] bool wants_progress() const override { return progress; }

  void notify(std::string_view method, std::string_view raw_params) override {
    std::lock_guard lock(mutex_);
    told_.emplace_back(method, raw_params);
    changed_.notify_all();
  }
  void ask(std::string method, std::string raw_params,
           std::move_only_function<void(Result<std::string>)> done) override {
    {
      std::lock_guard lock(mutex_);
      asked_.emplace_back(std::move(method), std::move(raw_params));
      changed_.notify_all();
    }
    if (answer) done(*answer);
  }

  [[nodiscard]] std::vector<std::pair<std::string, std::string>> told() {
    std::lock_guard lock(mutex_);
    return told_;
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> asked() {
    std::lock_guard lock(mutex_);
    return asked_;
  }
  [[nodiscard]] bool wait_told(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return told_.size() >= count; });
  }
  [[nodiscard]] bool wait_asked(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return asked_.size() >= count; });
  }

  std::optional<std::string> level;
  bool progress = false;
  std::optional<Result<std::string>> answer;  ///< nullopt: thinks about it for ever

 private:
  std::string key_;
  std::string capabilities_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<std::string, std::string>> told_;
  std::vector<std::pair<std::string, std::string>> asked_;
};

/// A request under way.
class Pending {
 public:
  void set(Reply reply) {
    std::lock_guard lock(mutex_);
    EXPECT_FALSE(reply_) << "a request ends once";
    reply_ = std::move(reply);
    changed_.notify_all();
  }
  [[nodiscard]] Reply wait() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [&] { return reply_.has_value(); })) {
      ADD_FAILURE() << "the request did not end";
      return {};
    }
    return *reply_;
  }
  [[nodiscard]] bool is_open() {
    std::lock_guard lock(mutex_);
    return !reply_;
  }
  std::uint64_t ticket = 0;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Reply> reply_;
};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    std::signal(SIGPIPE, SIG_IGN);
    auto client = net::http::AsyncClient::create();
    EXPECT_TRUE(client) << client.error().message;
    http_ = *std::move(client);
    runtime_.start();
  }
  ~SessionTest() override {
    connection_.reset();
    http_.reset();
    runtime_.stop();
  }

  static ConnectionOptions options_for(TransportKind transport) {
    ConnectionOptions options;
    options.name = "files";
    options.transport = transport;
    options.client_info = R"({"name":"hive-test","version":"1"})";
    options.start_timeout = std::chrono::seconds(15);
    return options;
  }
  static ConnectionOptions shell(const std::string& script) {
    ConnectionOptions options = options_for(TransportKind::stdio);
    options.command = "/bin/sh";
    options.arguments = {"-c", script};
    return options;
  }

  void open(ConnectionOptions options) {
    connection_ = Connection::create(runtime_.worker(0), runtime_, http_.get(), std::move(options),
                                     {.on_ready =
                                          [this](const ServerInfo& info) {
                                            std::lock_guard lock(mutex_);
                                            info_ = info;
                                            changed_.notify_all();
                                          },
                                      .on_closed =
                                          [this](const Error& error) {
                                            std::lock_guard lock(mutex_);
                                            EXPECT_FALSE(closed_) << "a session is closed once";
                                            closed_ = error;
                                            changed_.notify_all();
                                          },
                                      .on_notification =
                                          [this](std::string_view method, std::string_view params) {
                                            std::lock_guard lock(mutex_);
                                            notifications_.emplace_back(method, params);
                                            changed_.notify_all();
                                          }});
    connection_->start();
  }
  /// Waits until the session is ready; fails the test otherwise.
  ServerInfo open_ready(ConnectionOptions options) {
    open(std::move(options));
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return info_ || closed_; });
    EXPECT_TRUE(info_) << (closed_ ? closed_->message : "the server did not become ready");
    return info_.value_or(ServerInfo{});
  }
  Error wait_closed() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, patience, [&] { return closed_.has_value(); })) {
      ADD_FAILURE() << "the session was not closed";
      return {};
    }
    return *closed_;
  }
  [[nodiscard]] bool is_closed() {
    std::lock_guard lock(mutex_);
    return closed_.has_value();
  }
  [[nodiscard]] bool wait_notification(const std::string& method) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] {
      for (const auto& [name, params] : notifications_) {
        if (name == method) return true;
      }
      return false;
    });
  }

  std::shared_ptr<Pending> send(std::string method, std::string params, std::shared_ptr<Caller> caller = nullptr,
                                std::chrono::milliseconds timeout = patience) {
    auto pending = std::make_shared<Pending>();
    ConnectionRequest request{.method = std::move(method), .params = std::move(params), .caller = std::move(caller)};
    request.timeout = timeout;
    request.done = [pending](Reply reply) { pending->set(std::move(reply)); };
    pending->ticket = connection_->request(std::move(request));
    return pending;
  }
  Reply call(std::string method, std::string params, std::shared_ptr<Caller> caller = nullptr,
             std::chrono::milliseconds timeout = patience) {
    return send(std::move(method), std::move(params), std::move(caller), timeout)->wait();
  }
  Reply call_tool(const std::string& name, const std::string& arguments = "{}",
                  std::shared_ptr<Caller> caller = nullptr) {
    return call("tools/call", R"({"name":")" + name + R"(","arguments":)" + arguments + "}", std::move(caller));
  }

  net::Runtime runtime_{1};
  std::unique_ptr<net::http::AsyncClient> http_;
  std::unique_ptr<Connection> connection_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<ServerInfo> info_;
  std::optional<Error> closed_;
  std::vector<std::pair<std::string, std::string>> notifications_;
};

}  // namespace hive::upstreams::test
