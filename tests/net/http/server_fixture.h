#pragma once

#include <memory>
#include <mutex>
#include <string>

#include <gtest/gtest.h>

#include "net/http/raw_client.h"
#include "net/http/server.h"

namespace hive::net::http::test {

/// A server on a free loopback port. Without another handler it answers "METHOD PATH BODY".
class ServerTest : public testing::Test {
 protected:
  static void echo(const std::shared_ptr<Request>& request, const std::shared_ptr<Responder>& responder) {
    responder->respond({.content_type = "text/plain",
                        .headers = {},
                        .body = request->method + " " + request->path + " " + request->body});
  }

  void start(ServerOptions options = {}, Handler handler = echo) {
    if (options.listen_address.empty()) options.listen_address = "127.0.0.1:0";
    auto made = Server::listen(runtime, std::move(options), std::move(handler));
    ASSERT_TRUE(made) << made.error().message;
    server = *std::move(made);
    runtime.start();
  }

  ~ServerTest() override {
    runtime.stop();
    server.reset();
  }

  /// Sends the bytes on a new connection and returns all that comes back until the server closes.
  std::string exchange(std::string_view bytes) {
    RawClient client(server->port());
    client.send(bytes);
    return client.read_all();
  }

  Runtime runtime{2};
  std::unique_ptr<Server> server;
};

/// Waits until a condition holds that another thread makes true; false after ten seconds.
template <class Condition>
bool eventually(Condition condition) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace hive::net::http::test
