#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/message.h"

namespace hive::rest {

/// Which names a browser may know this gateway by, and which web pages may talk to it. Stops DNS rebinding: a page
/// whose own name has been pointed at this gateway sends that name as Host.
class OriginPolicy {
 public:
  enum class Verdict {
    accepted,
    bad_host,
    bad_origin,
  };

  /// `hosts` are names and addresses, "*.example.org" for one label; those of `allowed_origins` are added, wildcard
  /// addresses ("0.0.0.0", "::") are not. The loopback names, and the address that a connection really reached, are
  /// always accepted. Ports are not compared: a forwarded port is another number.
  OriginPolicy(std::span<const std::string> hosts, std::span<const std::string> allowed_origins);

  [[nodiscard]] Verdict check(const net::http::Request& request) const;
  /// The Origin to which the answer may be shown (CORS), or "".
  [[nodiscard]] std::string_view shared_origin(const net::http::Request& request) const;

 private:
  [[nodiscard]] bool knows_host(std::string_view host) const;

  std::set<std::string, std::less<>> hosts_;
  std::vector<std::string> wildcard_suffixes_;  // ".example.org"
  std::set<std::string, std::less<>> origins_;
};

/// The host of "HOST", "HOST:PORT" or "[IPV6]:PORT" in lower case without brackets and final dot; "" if malformed.
std::string host_without_port(std::string_view authority);

}  // namespace hive::rest
