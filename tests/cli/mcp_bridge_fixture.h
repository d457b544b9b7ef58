#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "cli/mcp_bridge.h"
#include "net/http/scripted_server.h"

namespace hive::cli::test {

/// A request as the gateway in a test sees it.
struct HttpRequest {
  std::string head;
  std::string body;

  [[nodiscard]] std::string method() const { return head.substr(0, head.find(' ')); }
  /// Empty when absent. `name` as it is sent.
  [[nodiscard]] std::string header(const std::string& name) const {
    std::size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    at += name.size() + 4;
    return head.substr(at, head.find("\r\n", at) - at);
  }
  [[nodiscard]] bool has(std::string_view text) const { return body.contains(text); }
  /// The raw id of the message.
  [[nodiscard]] std::string id() const {
    std::size_t at = body.find("\"id\":");
    return at == std::string::npos ? "" : body.substr(at + 5, body.find_first_of(",}", at) - at - 5);
  }
};

inline std::string result_for(const std::string& id, const std::string& result = "{}") {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":)" + result + "}";
}

/// Answers requests to /mcp by a script, on any number of connections, and remembers them.
class FakeMcpGateway {
 public:
  using Script = std::function<void(hive::test::Peer&, const HttpRequest&)>;

  explicit FakeMcpGateway(Script script)
      : server_([this, script = std::move(script)](hive::test::Peer& peer) {
          for (std::string text = peer.read_request(); !text.empty(); text = peer.read_request()) {
            std::size_t end = text.find("\r\n\r\n");
            HttpRequest request{text.substr(0, end + 2), text.substr(end + 4)};
            {
              std::lock_guard lock(mutex_);
              requests_.push_back(request);
              changed_.notify_all();
            }
            script(peer, request);
          }
        }) {}

  [[nodiscard]] std::string url() const { return server_.url(); }
  /// The first request for which `condition` holds; waits for it.
  HttpRequest wait_for(const std::function<bool(const HttpRequest&)>& condition) {
    std::unique_lock lock(mutex_);
    HttpRequest found;
    bool is_there = changed_.wait_for(lock, std::chrono::seconds(20), [&] {
      auto at = std::ranges::find_if(requests_, condition);
      if (at == requests_.end()) return false;
      found = *at;
      return true;
    });
    EXPECT_TRUE(is_there) << "no such request was made";
    return found;
  }
  std::size_t count(const std::function<bool(const HttpRequest&)>& condition) {
    std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::ranges::count_if(requests_, condition));
  }

  static void stream(hive::test::Peer& peer, std::string_view events) {
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + std::string(events));
  }
  static std::string event(const std::string& data, const std::string& id = "") {
    return (id.empty() ? "" : "id: " + id + "\n") + "data: " + data + "\n\n";
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<HttpRequest> requests_;  // guarded by mutex_
  hive::test::ScriptedServer server_;
};

/// The bridge with a client at its pipes.
class BridgedClient {
 public:
  explicit BridgedClient(const std::string& url, McpBridgeOptions options = {}) : options_(std::move(options)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    bridge_in_.reset(ends[0]);
    in_.reset(ends[1]);
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    out_.reset(ends[0]);
    bridge_out_.reset(ends[1]);
    options_.in_fd = bridge_in_.get();
    options_.out_fd = bridge_out_.get();
    options_.stop_fd = stop_.get();
    options_.first_pause = std::chrono::milliseconds(5);
    options_.note = [this](const std::string& note) {
      std::lock_guard lock(mutex_);
      notes_ += note + "\n";
    };
    Connection connection;
    connection.url = url;
    connection.token = "secret-token";
    thread_ = std::thread([this, connection] {
      GatewayClient gateway(connection, std::chrono::seconds(10), -1);
      result_ = run_mcp_bridge(gateway, options_);
      bridge_out_.reset();
    });
  }
  ~BridgedClient() {
    close_input();
    out_.reset();
    if (thread_.joinable()) thread_.join();
  }

  void send_text(std::string_view text) {
    while (!text.empty()) {
      ssize_t count = ::write(in_.get(), text.data(), text.size());
      if (count <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  void send(const std::string& line) { send_text(line + "\n"); }
  void close_input() { in_.reset(); }
  void stop() { ::eventfd_write(stop_.get(), 1); }

  /// "" at the end of the output.
  std::string read_line() {
    while (true) {
      std::size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      pollfd wait{out_.get(), POLLIN, 0};
      if (::poll(&wait, 1, 20'000) <= 0) {
        ADD_FAILURE() << "no line came";
        return "";
      }
      char piece[65536];
      ssize_t count = ::read(out_.get(), piece, sizeof piece);
      if (count <= 0) return "";
      buffer_.append(piece, static_cast<std::size_t>(count));
    }
  }

  /// Waits until the bridge has returned, and says how long that took.
  std::chrono::milliseconds join() {
    auto start = std::chrono::steady_clock::now();
    thread_.join();
    EXPECT_TRUE(result_.has_value());
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  }
  std::string notes() {
    std::lock_guard lock(mutex_);
    return notes_;
  }

 private:
  McpBridgeOptions options_;
  UniqueFd bridge_in_;
  UniqueFd in_;
  UniqueFd out_;
  UniqueFd bridge_out_;
  UniqueFd stop_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  std::string buffer_;
  std::mutex mutex_;
  std::string notes_;  // guarded by mutex_
  Result<void> result_;
  std::thread thread_;
};

}  // namespace hive::cli::test
