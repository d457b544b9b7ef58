#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <gmock/gmock.h>

#include "agent/agent.h"
#include "exec/runner_fixture.h"
#include "net/ssh/line_channel.h"
#include "protocol/document.h"

namespace hive::agent {

using exec::eventually;
using exec::lives;
using exec::read_text;
using exec::TemporaryFolder;
using testing::HasSubstr;
using testing::StartsWith;

/// What a tools/call was answered with.
struct Answer {
  boost::json::value message;

  [[nodiscard]] bool is_error() const { return message.as_object().contains("error"); }
  [[nodiscard]] std::int64_t error_code() const { return message.at("error").at("code").as_int64(); }
  [[nodiscard]] std::string error_message() const { return std::string(message.at("error").at("message").as_string()); }
  [[nodiscard]] const boost::json::value& result() const { return message.at("result"); }
  [[nodiscard]] std::string text() const { return std::string(result().at("content").at(0).at("text").as_string()); }
  [[nodiscard]] const boost::json::value& structured() const { return result().at("structuredContent"); }
  [[nodiscard]] bool flagged() const { return result().at("isError").as_bool(); }
  [[nodiscard]] std::string outcome() const {
    const auto& where =
        is_error() ? message.at("error").at("data").at("outcome") : result().at("_meta").at("myrmex-hive/outcome");
    return std::string(where.as_string());
  }
  [[nodiscard]] std::string reason() const {
    const auto& where =
        is_error() ? message.at("error").at("data").at("reason") : result().at("_meta").at("myrmex-hive/reason");
    return std::string(where.as_string());
  }
};

/// A channel whose other end is the test. Belongs to the worker.
class GatewayEnd final : public net::ssh::LineChannel {
 public:
  explicit GatewayEnd(net::Worker& worker) : worker_(worker) { peer_.address = "192.0.2.1"; }

  net::Worker& worker() override { return worker_; }
  [[nodiscard]] const net::ssh::Peer& peer() const override { return peer_; }
  void set_handler(std::shared_ptr<Handler> handler) override { handler_ = std::move(handler); }
  Result<void> send(std::string_view line) override {
    if (!open_) return fail(ErrorCode::unavailable, "closed");
    if (full_) return fail(ErrorCode::resource_exhausted, "full");
    on_send(std::string(line));
    return {};
  }
  [[nodiscard]] size_t queued_bytes() const override { return 0; }
  [[nodiscard]] net::ssh::Traffic traffic() const override { return {}; }
  void probe() override {}
  void set_reading(bool enabled) override { reading_ = enabled; }
  void close(std::string_view reason) override {
    if (!std::exchange(open_, false)) return;
    worker_.post([this, self = shared_from_this(), text = std::string(reason)] {
      std::exchange(handler_, nullptr)->on_closed({ErrorCode::cancelled, text});
    });
  }
  [[nodiscard]] bool is_open() const override { return open_; }

  void arrive(std::string_view line) { handler_->on_line(line); }
  void break_down() {
    open_ = false;
    std::exchange(handler_, nullptr)->on_closed({ErrorCode::unavailable, "connection reset"});
  }
  void fill() { full_ = true; }
  void drain() {
    full_ = false;
    handler_->on_writable();
  }
  [[nodiscard]] bool is_reading() const { return reading_; }

  std::function<void(const std::string& line)> on_send;

 private:
  net::Worker& worker_;
  net::ssh::Peer peer_;
  std::shared_ptr<Handler> handler_;
  bool open_ = true;
  bool full_ = false;
  bool reading_ = true;
};

/// An agent with its runtime and a gateway that is the test.
class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    config_.source_path = "agent.json";
    config_.agent_id = "test-agent";
    config_.log_paths.clear();
    allow("echo", "[a-z ]+");
    allow("sleep", "[0-9.]+");
    allow("true");
    allow("false");
  }

  ~AgentTest() override {
    runtime_.stop();
    agent_.reset();
  }

  void allow(std::string name, std::string pattern = "") {
    config::AllowedCommand command;
    command.name = std::move(name);
    command.args_regex = std::move(pattern);
    config_.allowed_commands.push_back(std::move(command));
  }

  // A script as an allowlisted command without arguments.
  std::string allow_script(const std::string& name, std::string_view body,
                           std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
    std::string path = folder_.write(name, "#!/bin/sh\n" + std::string(body) + "\n", 0755);
    allow(path);
    config_.allowed_commands.back().timeout = timeout;
    return path;
  }

  void start() {
    auto agent = Agent::create(runtime_, runtime_.worker(0), config_);
    ASSERT_TRUE(agent) << agent.error().message;
    agent_ = *std::move(agent);
    runtime_.start();
    connect();
  }

  void connect() {
    channel_ = std::make_shared<GatewayEnd>(runtime_.worker(0));
    channel_->on_send = [this](const std::string& line) {
      std::lock_guard lock(mutex_);
      lines_.push_back(line);
      changed_.notify_all();
    };
    on_worker([this] { agent_->serve(channel_); });
  }

  void on_worker(std::function<void()> task) {
    std::promise<void> done;
    runtime_.worker(0).post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  void say(const std::string& line) {
    if (!agent_) start();
    on_worker([&] { channel_->arrive(line); });
  }

  // The first line that answers `id` (raw JSON); fails the test after a while.
  Answer answer_to(const std::string& id, std::chrono::milliseconds patience = std::chrono::seconds(60)) {
    std::unique_lock lock(mutex_);
    std::optional<boost::json::value> found;
    auto arrived = [&] {
      for (auto line = lines_.begin(); line != lines_.end(); ++line) {
        auto message = json::parse(*line, {.max_bytes = line->size()});
        EXPECT_TRUE(message) << *line;
        if (!message || !message->as_object().contains("id")) continue;
        if (boost::json::serialize(message->at("id")) != id) continue;
        found = *std::move(message);
        lines_.erase(line);
        return true;
      }
      return false;
    };
    bool ok = changed_.wait_for(lock, patience, arrived);
    EXPECT_TRUE(ok) << "no answer to " << id;
    return {found.value_or(nullptr)};
  }

  std::vector<std::string> lines() {
    std::lock_guard lock(mutex_);
    return lines_;
  }

  static std::string request(const std::string& id, const std::string& tool, const std::string& arguments,
                             const std::string& meta = "") {
    std::string params = "\"name\":\"" + tool + "\"";
    if (!arguments.empty()) params += ",\"arguments\":" + arguments;
    if (!meta.empty()) params += ",\"_meta\":" + meta;
    return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"tools/call","params":{)" + params + "}}";
  }

  Answer call(const std::string& tool, const std::string& arguments, const std::string& meta = "") {
    std::string id = std::to_string(++last_id_);
    say(request(id, tool, arguments, meta));
    return answer_to(id);
  }

  // run_command of a script that allow_script made.
  Answer run(const std::string& path) { return call("run_command", R"({"name":")" + path + R"("})"); }

  config::AgentConfig config_;
  TemporaryFolder folder_;
  net::Runtime runtime_{1, 2};
  std::unique_ptr<Agent> agent_;
  std::shared_ptr<GatewayEnd> channel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;  // guarded by mutex_
  int last_id_ = 100;
};

}  // namespace hive::agent
