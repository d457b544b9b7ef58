#include "net/http/connection_limits.h"

#include <algorithm>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace hive::net::http {

std::optional<ConnectionLimits::Slot> ConnectionLimits::acquire(const std::string& source) {
  std::lock_guard lock(mutex_);
  if (total_ >= max_total_) return std::nullopt;
  Sources::value_type& entry = *sources_.try_emplace(source).first;
  if (entry.second.connections >= max_per_source_) return std::nullopt;
  ++entry.second.connections;
  ++total_;
  return Slot(shared_from_this(), entry);
}

std::size_t ConnectionLimits::total() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

void ConnectionLimits::release(Sources::value_type& source) {
  std::lock_guard lock(mutex_);
  --total_;
  if (--source.second.connections == 0) sources_.erase(sources_.find(source.first));
}

std::string source_of(const std::string& address) {
  if (address.find(':') == std::string::npos) return address;
  in6_addr parsed{};
  std::string without_zone = address.substr(0, address.find('%'));
  if (::inet_pton(AF_INET6, without_zone.c_str(), &parsed) != 1) return address;
  std::fill(parsed.s6_addr + 8, parsed.s6_addr + 16, std::uint8_t{0});
  char text[INET6_ADDRSTRLEN];
  ::inet_ntop(AF_INET6, &parsed, text, sizeof text);
  return std::string(text) + "/64";
}

}  // namespace hive::net::http
