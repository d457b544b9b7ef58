#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/proxy.h"

namespace hive::net::proxy {

/// How much a proxy may say before the tunnel stands: heads of HTTP answers are smaller, SOCKS needs less than 300.
inline constexpr std::size_t max_answer_bytes = std::size_t{16} << 10;

/// What is said to a proxy, and what it answers, until a tunnel to the target stands. No input or output of its own.
/// Every error is one line that names the proxy and what it answered, never the credentials. Not thread-safe.
class Dialogue {
 public:
  /// `host` is what the proxy is asked for: a name, or an IP address in its text form without brackets. Fails for what
  /// cannot be said to this proxy.
  static Result<std::unique_ptr<Dialogue>> begin(const config::ProxyAddress& proxy, std::string_view host,
                                                 std::uint16_t port);
  virtual ~Dialogue() = default;

  /// The bytes to send next; empty: none until the proxy has answered.
  [[nodiscard]] std::string take_output() { return std::exchange(output_, {}); }
  /// Looks at what the proxy has sent and returns how many of these bytes are its answer; the ones behind belong to the
  /// tunnel. Not after finished().
  Result<std::size_t> feed(std::string_view bytes);
  /// The proxy has ended the connection: the error says after what.
  [[nodiscard]] Error ended() const;
  /// The tunnel stands.
  [[nodiscard]] bool finished() const { return finished_; }

 protected:
  Dialogue(std::string proxy, std::string target) : proxy_(std::move(proxy)), target_(std::move(target)) {}

  /// Takes one byte of the answer.
  virtual Result<void> take(char byte) = 0;
  /// How far the dialogue has come, for the error of an end.
  [[nodiscard]] virtual std::string progress() const = 0;

  /// "proxy http://p:3128 MESSAGE"
  [[nodiscard]] std::unexpected<Error> failed(ErrorCode code, std::string_view message) const;
  void say(std::string output) { output_ = std::move(output); }
  void finish() { finished_ = true; }
  [[nodiscard]] const std::string& target() const { return target_; }

 private:
  std::string proxy_;
  std::string target_;
  std::string output_;
  std::size_t taken_ = 0;
  bool finished_ = false;
};

}  // namespace hive::net::proxy
