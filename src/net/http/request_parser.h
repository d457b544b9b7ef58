#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/http/message.h"

namespace hive::net::http {

/// Why the server itself refuses a request: an HTTP status, a short code and one line for the client.
struct Refusal {
  unsigned status = 400;
  std::string code;
  std::string detail;
};

struct ParserLimits {
  std::size_t max_header_bytes = 16384;
  std::size_t max_target_bytes = 8192;
  std::size_t max_header_fields = 100;
  std::size_t max_body_bytes = std::size_t{1} << 20;
};

/// Reads one request from bytes as they arrive. Boost.Beast does the grammar of RFC 9112; this class refuses what Beast
/// lets pass although two readers could understand it differently (request smuggling): bare line feeds, folded
/// lines, a repeated Content-Length, a Transfer-Encoding that is not exactly "chunked", a missing or repeated Host.
/// Memory grows with the bytes received, never with the bytes announced.
class RequestParser {
 public:
  enum class State { head, body, complete, failed };

  explicit RequestParser(const ParserLimits& limits);
  ~RequestParser();
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) noexcept;

  /// Takes what it can use from the front of `data` and returns how many bytes that was. What it leaves must be offered
  /// again with more behind it. Bytes behind a complete request are left alone.
  std::size_t feed(std::string_view data);

  /// Makes ready for the next request, keeping memory that can be used again.
  void reset();

  [[nodiscard]] State state() const;
  /// Whether any byte of the request has been seen.
  [[nodiscard]] bool has_begun() const;
  /// Of a failed request.
  [[nodiscard]] const Refusal& refusal() const;
  /// Bytes of the body received so far.
  [[nodiscard]] std::size_t body_size() const;

  // From here on: once the head is complete.
  [[nodiscard]] bool is_http_1_0() const;
  /// What the client wishes (RFC 9112 section 9.3).
  [[nodiscard]] bool keeps_alive() const;
  /// Whether the client waits for "100 Continue" before it sends the body.
  [[nodiscard]] bool expects_continue() const;
  /// The request, once complete; connection fields are not filled in.
  [[nodiscard]] std::shared_ptr<Request> take();

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace hive::net::http
