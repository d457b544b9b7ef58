#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/settings.h"
#include "net/http/async_client.h"
#include "net/http/message.h"

namespace hive::cli {

/// The largest message in either direction, and the largest event of a stream.
inline constexpr std::size_t max_mcp_message_bytes = std::size_t{4} << 20;

/// How a request to the MCP endpoint ended.
struct McpAnswer {
  std::optional<Error> error = {};          ///< the exchange was not completed; codes as of net::http::perform
  net::http::ClientResponse response = {};  ///< the head, if there was one; the body of what was no stream
  bool is_stream = false;
  std::string last_event_id = {};  ///< of the stream, to resume it; empty: it cannot be
  std::optional<std::chrono::milliseconds> retry = {};
};

/// The gateway's /mcp as a client sees it: requests with the operator's token, answers as JSON or as an event stream.
/// Belongs to one worker.
class McpEndpoint {
 public:
  struct Request {
    std::string method = "POST";
    net::http::Headers headers = {};
    std::string body = {};
    std::string last_event_id = {};  ///< not empty: the stream that is to be resumed
    std::chrono::milliseconds timeout{0};
  };
  struct Handlers {
    std::function<void(std::string_view message)> message = [](std::string_view) {};  ///< an event of the stream
    std::function<void(const McpAnswer&)> end;                                        ///< once, but not after cancel()
    std::function<void(const net::http::ClientResponse&)> head = {};
  };

  McpEndpoint(net::Worker& worker, net::http::AsyncClient& client, const Connection& connection)
      : worker_(worker), client_(client), connection_(connection) {}

  [[nodiscard]] const Connection& connection() const { return connection_; }
  [[nodiscard]] net::Worker& worker() const { return worker_; }

  /// Returns a number for cancel().
  std::uint64_t send(Request request, Handlers handlers);
  /// Closes the connection of a request, which tells the gateway that nobody waits for the answer.
  void cancel(std::uint64_t id) { client_.cancel(id); }

 private:
  net::Worker& worker_;
  net::http::AsyncClient& client_;
  const Connection& connection_;
};

}  // namespace hive::cli
