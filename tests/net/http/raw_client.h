#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace hive::net::http::test {

/// A client that sends exactly the bytes it is told. Every wait ends after ten seconds at the latest.
class RawClient {
 public:
  /// `source`: the IPv4 address to come from, when the kernel is not to choose it.
  explicit RawClient(std::uint16_t port, const std::string& host = "127.0.0.1", const std::string& source = "");

  /// False when the connection does not take them.
  bool send(std::string_view bytes);
  void end_sending();
  /// Closes with a reset instead of a farewell.
  void reset();
  void close() { fd_.reset(); }
  void shrink_receive_buffer();

  /// One response with the body that its Content-Length announces. Empty when the connection ends before.
  std::string read_response();
  /// Until `text` has arrived; what was read so far when it does not.
  std::string read_until(std::string_view text);
  /// Until the server closes.
  std::string read_all();
  /// Whether nothing arrives and the connection stays open for that long.
  bool stays_silent(std::chrono::milliseconds time);

  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  bool fill();

  UniqueFd fd_;
  std::string buffer_;
  bool ended_ = false;
};

/// The status of a response, 0 if it is none.
unsigned status_of(std::string_view response);
std::string_view body_of(std::string_view response);
/// The value of a header, or "".
std::string header_of(std::string_view response, std::string_view name);

}  // namespace hive::net::http::test
