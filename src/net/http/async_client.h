#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "net/http/client.h"
#include "net/runtime/runtime.h"

namespace hive::net::http {

/// What the sender of an asynchronous request learns. All on the worker that was named, in order.
struct AsyncHandlers {
  /// Status and headers, before the first piece of the body or the end. May be empty.
  std::function<void(const ClientResponse& head)> on_head;
  /// The body as it arrives. While pieces wait for this function, at most the client's window of them is held and the
  /// server is made to wait. Empty: the body is collected in the response.
  std::function<void(std::string_view piece)> on_data;
  /// Exactly once, at the end. Errors as of perform(); cancelled after cancel().
  std::move_only_function<void(Result<ClientResponse>)> done;
};

struct AsyncClientLimits {
  std::size_t max_transfers = 8192;  ///< further ones are refused with resource_exhausted
  long max_idle_connections = 128;   ///< kept open for reuse
  std::size_t window_bytes = std::size_t{256} << 10;
};

/// A way to an AsyncClient that may be kept longer than the client lives: once that is gone, requests end as cancelled.
/// Thread-safe, cheap to copy.
class AsyncClientReference {
 public:
  /// Returns a number for cancel(). What cannot be sent is reported through `done`, too.
  std::uint64_t send(Worker& worker, RequestOptions request, AsyncHandlers handlers) const;
  /// Closes the request's connection if it still runs; no head and no data are reported once this was called on the
  /// request's worker, `done` is.
  void cancel(std::uint64_t id) const;

 private:
  friend class AsyncClient;
  struct State;
  explicit AsyncClientReference(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// HTTP requests without waiting: all transfers share one thread and its pool of connections. No redirect is followed.
/// Proxies of the environment are used, but never for a loopback host. The program must ignore SIGPIPE. Thread-safe.
class AsyncClient {
 public:
  static Result<std::unique_ptr<AsyncClient>> create(AsyncClientLimits limits = {});
  /// Ends all transfers as cancelled and joins the thread; the workers they report to must still exist.
  ~AsyncClient();
  AsyncClient(const AsyncClient&) = delete;
  AsyncClient& operator=(const AsyncClient&) = delete;

  /// As of AsyncClientReference.
  std::uint64_t send(Worker& worker, RequestOptions request, AsyncHandlers handlers);
  void cancel(std::uint64_t id);

  [[nodiscard]] AsyncClientReference reference() const { return reference_; }

  /// Transfers whose end has not been reported. For tests and status pages.
  [[nodiscard]] std::size_t transfers() const;

 private:
  explicit AsyncClient(AsyncClientReference reference);
  AsyncClientReference reference_;
};

}  // namespace hive::net::http
