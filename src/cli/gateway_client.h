#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_code.h"
#include "cli/settings.h"
#include "net/http/client.h"

namespace hive::cli {

/// Why a command ends: its exit code and one line for standard error, safe for a terminal, with the remedy.
struct Failure {
  ExitCode code = ExitCode::error;
  std::string message;
  std::optional<protocol::Outcome> outcome = {};  ///< of a call, where the answer tells
  std::string reason = {};                        ///< the gateway's short code, as it came
};

/// The gateway's REST interface as the commands use it.
class GatewayClient {
 public:
  /// `timeout` limits a whole exchange. `cancel_fd`: see net::http::ClientRequest.
  GatewayClient(Connection connection, std::chrono::milliseconds timeout, int cancel_fd);

  [[nodiscard]] const Connection& connection() const { return connection_; }

  /// GET; anything but 200 with a JSON body is a Failure.
  [[nodiscard]] std::expected<std::string, Failure> get_json(std::string_view path) const;

  /// POST of a JSON body with whatever comes back. After a Failure whose code is unsettled, the gateway may have acted.
  [[nodiscard]] std::expected<net::http::ClientResponse, Failure> post(std::string_view path, std::string body) const;
  /// The same; anything but 200 with a JSON body is a Failure.
  [[nodiscard]] std::expected<std::string, Failure> post_json(std::string_view path, std::string body) const;

  /// GET with whatever comes back.
  [[nodiscard]] Result<net::http::ClientResponse> get(std::string_view path) const;
  /// The same with a time limit of its own, for requests that the gateway holds until there is something to say.
  [[nodiscard]] Result<net::http::ClientResponse> get(std::string_view path, std::chrono::milliseconds timeout) const;

  struct CallRequest {
    std::string path = "/api/call";
    std::string body;
    std::chrono::milliseconds timeout{0};  ///< that the gateway allows the call; 0: its default
    /// Set to get the call's events while it runs (name, data); the last one of a call is named "result".
    std::function<void(std::string_view, std::string_view)> on_event;
    /// That the call may wait for its agent before that.
    std::chrono::milliseconds wait{0};
    /// Of the whole answer; a stream is handed on and not kept.
    std::size_t max_bytes = std::size_t{64} << 20;
  };
  /// POST /api/call, or another path that takes calls. With on_event and a gateway that streams, the response's body is
  /// empty.
  [[nodiscard]] std::expected<net::http::ClientResponse, Failure> call(CallRequest request) const;

  /// What a response that is no success says, as a Failure. Knows application/problem+json and plain text.
  [[nodiscard]] Failure failure_from(const net::http::ClientResponse& response, bool may_have_run) const;
  /// What a request that got no answer says.
  [[nodiscard]] Failure failure_from(const Error& error, bool may_have_run) const;

 private:
  [[nodiscard]] net::http::ClientRequest request_to(std::string_view path) const;
  [[nodiscard]] std::expected<std::string, Failure> json_body(net::http::ClientResponse response, std::string_view path,
                                                              bool may_have_run) const;

  Connection connection_;
  std::chrono::milliseconds timeout_;
  int cancel_fd_;
};

}  // namespace hive::cli
