#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gateway/upstreams/connection.h"
#include "net/http/async_client.h"
#include "protocol/mcp/revision.h"

/// Private to this room: how messages get to a server and back. What they mean is the session's business.
namespace hive::upstreams {

/// Why a request gets no answer.
struct RequestFailure {
  ReplyKind kind = ReplyKind::lost;  ///< error (with a body), not_sent or lost
  std::string reason;                ///< as in Reply
  std::string detail;
  std::string body;          ///< raw JSON-RPC error object, of an error that came without an id
  unsigned http_status = 0;  ///< 0: none came
  ErrorCode code = ErrorCode::io;
};

/// A request as it goes out.
struct Outgoing {
  std::uint64_t ticket = 0;
  std::string_view method;
  std::string_view text;                                     ///< the whole message
  std::optional<mcp::Revision> revision;                     ///< nullopt: initialize, which comes before there is one
  std::string_view name;                                     ///< Mcp-Name of modern requests; may be empty
  std::vector<std::pair<std::string, std::string>> headers;  ///< further ones, of modern requests
};

/// All on the worker, never from within a call of the session.
struct TransportEvents {
  std::function<void()> on_open;
  /// A message. `stream` is the ticket of the request on whose answer it came, 0 for the stream that all share.
  std::function<void(std::string_view text, std::uint64_t stream)> on_message;
  std::function<void(std::uint64_t ticket, const RequestFailure&)> on_failed;
  /// The server has ended the stream of this request before the answer; the transport goes back for it.
  std::function<void(std::uint64_t ticket)> on_interrupted;
  std::function<void(const Error&)> on_closed;  ///< nothing follows
};

/// Lives on one worker; made and used there alone.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void start() = 0;
  /// An answer or on_failed follows, unless the ticket is finished or abandoned before.
  virtual void send_request(Outgoing request) = 0;
  /// A notification or an answer. `sent` is called when the server has taken it, or could not.
  virtual void send(std::string text, std::function<void()> sent = {}) = 0;
  /// The answer of this request has come.
  virtual void finish(std::uint64_t ticket) = 0;
  /// Nobody waits for this one any more; where it has a stream of its own, that is closed.
  virtual void abandon(std::uint64_t ticket) = 0;
  /// The revision that was agreed on by initialize.
  virtual void set_revision(mcp::Revision revision) = 0;
  /// From now on messages that belong to no request are wanted; legacy only.
  virtual void listen() = 0;
  /// No event follows.
  virtual void close() = 0;
  [[nodiscard]] virtual bool has_request_streams() const = 0;
  [[nodiscard]] virtual std::optional<int> process_id() const { return std::nullopt; }
};

std::shared_ptr<Transport> make_stdio_transport(net::Worker& worker, net::Runtime& runtime,
                                                const ConnectionOptions& options, TransportEvents events);
/// Streamable HTTP.
std::shared_ptr<Transport> make_http_transport(net::Worker& worker, net::http::AsyncClientReference client,
                                               const ConnectionOptions& options, TransportEvents events);
/// HTTP+SSE of 2024-11-05.
std::shared_ptr<Transport> make_sse_transport(net::Worker& worker, net::http::AsyncClientReference client,
                                              const ConnectionOptions& options, TransportEvents events);

}  // namespace hive::upstreams
