#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::upstreams {

/// The caller's side of a request that is on its way to an MCP server: where its notifications and questions go. Any
/// thread; nothing may block.
class Caller {
 public:
  virtual ~Caller() = default;

  /// Tells callers apart, so that no two of them ever share a session of an upstream that keeps state: a client's
  /// session, or a principal with its capabilities.
  [[nodiscard]] virtual const std::string& key() const = 0;
  /// The raw capabilities object that the client declared; "{}" if none.
  [[nodiscard]] virtual const std::string& capabilities() const = 0;
  /// The level from which on the client wants log messages; nullopt: none.
  [[nodiscard]] virtual std::optional<std::string> log_level() const = 0;
  /// Whether the client wants progress of this request.
  [[nodiscard]] virtual bool wants_progress() const = 0;
  /// Whether the client keeps a session itself, as in the older revisions. A server that can is then spoken to in a
  /// session as well: streams that are resumed exist in sessions alone.
  [[nodiscard]] virtual bool keeps_session() const { return false; }

  /// notifications/progress (without a token: the caller puts its own in) or notifications/message, before the end.
  virtual void notify(std::string_view method, std::string_view raw_params) = 0;

  /// The server has closed the stream of this request and gives the answer to who comes back for it. A client that can
  /// come back may be sent away meanwhile.
  virtual void interrupted() {}

  /// A question of the other side that only this client can answer: elicitation/create, sampling/createMessage,
  /// roots/list. `done` gets the raw result object, or why there is none; it may be called never if the request ends
  /// before.
  virtual void ask(std::string method, std::string raw_params,
                   std::move_only_function<void(Result<std::string>)> done) = 0;
};

}  // namespace hive::upstreams
