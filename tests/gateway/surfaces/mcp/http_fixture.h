#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "gateway/surfaces/mcp/fake_core.h"
#include "gateway/surfaces/mcp/http_endpoint.h"
#include "net/http/raw_client.h"
#include "net/http/server.h"

namespace hive::mcp_surface::test {

using net::http::test::body_of;
using net::http::test::header_of;
using net::http::test::RawClient;
using net::http::test::status_of;

/// The endpoint behind a real HTTP server and above a core that the test controls. The header X-User says who calls.
class HttpTest : public testing::Test {
 protected:
  ~HttpTest() override {
    runtime.stop();
    server.reset();
  }

  void start() {
    endpoint = HttpEndpoint::create(runtime, core, clock, options);
    auto made = net::http::Server::listen(
        runtime, {.listen_address = "127.0.0.1:0"},
        [this](std::shared_ptr<net::http::Request> request, std::shared_ptr<net::http::Responder> responder) {
          serve(std::move(request), std::move(responder));
        });
    ASSERT_TRUE(made) << made.error().message;
    server = *std::move(made);
    runtime.start();
  }

  void serve(std::shared_ptr<net::http::Request> request, std::shared_ptr<net::http::Responder> responder) {
    rest::McpRequest made;
    made.principal.name = request->header("x-user").value_or("alice");
    made.request_id = "r-1";
    made.surface = request->path == "/mcp" ? calls::Surface::mcp_http : calls::Surface::mcp_sse;
    made.headers = {{"Myrmex-Request-Id", "r-1"}};
    made.is_still_admitted = [this] { return is_admitted.load(); };
    made.record_refusal = [this](std::string_view reason, std::string) {
      std::lock_guard lock(mutex);
      refusals.emplace_back(reason);
    };
    made.request = std::move(request);
    made.responder = std::move(responder);
    endpoint->serve(std::move(made));
  }

  static std::string request_text(std::string_view method, std::string_view target, std::string_view headers,
                                  std::string_view body = "") {
    std::string text = std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    text += headers;
    if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return text + "\r\n" + std::string(body);
  }

  RawClient connect() {
    if (!server) start();
    return RawClient(server->port());
  }
  std::string send(std::string_view method, std::string_view target, std::string_view headers,
                   std::string_view body = "") {
    RawClient client = connect();
    client.send(request_text(method, target, headers, body));
    return client.read_response();
  }
  std::string post(std::string_view headers, std::string_view body) { return send("POST", "/mcp", headers, body); }

  static std::string modern_headers(std::string_view method, std::string_view more = "") {
    return "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " + std::string(method) + "\r\n" + std::string(more);
  }
  static std::string modern_body(std::string_view method, std::string_view id = "1", std::string_view params = "") {
    std::string members(params);
    if (!members.empty()) members += ',';
    return R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"method":")" + std::string(method) + R"(","params":{)" +
           members +
           R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}})";
  }
  static std::string call_body(std::string_view id = "1") {
    return R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"method":"tools/call","params":{"name":"x"}})";
  }

  /// Begins a legacy session and returns the header that names it.
  std::string begin_session(std::string_view revision = "2025-11-25", std::string_view user = "alice") {
    std::string response =
        post("X-User: " + std::string(user) + "\r\n",
             R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":")" + std::string(revision) +
                 R"(","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})");
    EXPECT_EQ(status_of(response), 200u) << response;
    std::string id = header_of(response, "Mcp-Session-Id");
    EXPECT_EQ(id.size(), 32u) << response;
    return "X-User: " + std::string(user) + "\r\nMcp-Session-Id: " + id + "\r\n";
  }

  /// The n-th request that reached the core; waits for it.
  static ReceivedPointer received(const Inbox& inbox, std::size_t index = 0) {
    EXPECT_TRUE(eventually([&] { return inbox.requests().size() > index; }));
    return inbox.requests().at(index);
  }

  template <class Condition>
  static bool eventually(Condition condition) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  /// The value of the last "id: " field in a piece of an event stream.
  static std::string last_event_id(const std::string& stream) {
    std::size_t at = stream.rfind("id: ");
    return at == std::string::npos ? "" : stream.substr(at + 4, stream.find('\n', at) - at - 4);
  }
  static std::size_t count(std::string_view text, std::string_view what) {
    std::size_t found = 0;
    for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size()))
      ++found;
    return found;
  }
  static bool contains(std::string_view text, std::string_view what) {
    return text.find(what) != std::string_view::npos;
  }
  std::vector<std::string> refused() {
    std::lock_guard lock(mutex);
    return refusals;
  }

  ManualClock clock;
  HttpOptions options;
  std::shared_ptr<FakeCore> core = std::make_shared<FakeCore>();
  std::atomic<bool> is_admitted = true;
  std::mutex mutex;
  std::vector<std::string> refusals;  // guarded by mutex
  net::Runtime runtime{2};
  std::shared_ptr<HttpEndpoint> endpoint;
  std::unique_ptr<net::http::Server> server;
};

}  // namespace hive::mcp_surface::test
