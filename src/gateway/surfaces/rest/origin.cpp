#include "gateway/surfaces/rest/origin.h"

#include <algorithm>

#include "net/http/ascii.h"

namespace hive::rest {

using net::http::to_lower;

namespace {

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string host_without_port(std::string_view authority) {
  std::string_view host = authority;
  if (authority.starts_with('[')) {
    std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return "";
    host = authority.substr(1, close - 1);
    std::string_view rest = authority.substr(close + 1);
    if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) return "";
    return to_lower(host);
  }
  if (std::size_t colon = authority.find(':'); colon != std::string_view::npos) {
    if (!is_port(authority.substr(colon + 1))) return "";
    host = authority.substr(0, colon);
  }
  if (host.ends_with('.')) host.remove_suffix(1);
  return to_lower(host);
}

OriginPolicy::OriginPolicy(std::span<const std::string> hosts, std::span<const std::string> allowed_origins)
    : hosts_{"localhost", "127.0.0.1", "::1"} {
  for (const std::string& host : hosts) {
    if (host.starts_with("*.")) {
      wildcard_suffixes_.push_back(to_lower(std::string_view(host).substr(1)));
    } else if (!host.empty() && host != "0.0.0.0" && host != "::") {
      hosts_.insert(to_lower(host));
    }
  }
  for (const std::string& origin : allowed_origins) {
    origins_.insert(to_lower(origin));
    if (std::size_t scheme = origin.find("://"); scheme != std::string::npos) {
      if (std::string host = host_without_port(std::string_view(origin).substr(scheme + 3)); !host.empty()) {
        hosts_.insert(std::move(host));
      }
    }
  }
}

bool OriginPolicy::knows_host(std::string_view host) const {
  if (hosts_.contains(host)) return true;
  std::size_t dot = host.find('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  return std::ranges::find(wildcard_suffixes_, host.substr(dot)) != wildcard_suffixes_.end();
}

OriginPolicy::Verdict OriginPolicy::check(const net::http::Request& request) const {
  std::optional<std::string_view> authority = request.header("host");
  // Only HTTP/1.0 can do without, and no browser speaks it.
  if (authority) {
    std::string host = host_without_port(*authority);
    if (host.empty() || (!knows_host(host) && host != request.local_address)) return Verdict::bad_host;
  }
  std::optional<std::string_view> origin = request.header("origin");
  if (!origin) {
    bool is_repeated =
        std::ranges::any_of(request.headers, [](const auto& header) { return header.first == "origin"; });
    return is_repeated ? Verdict::bad_origin : Verdict::accepted;
  }
  if (origins_.contains(to_lower(*origin))) return Verdict::accepted;
  std::string own = (request.is_tls ? "https://" : "http://") + to_lower(authority.value_or(""));
  return to_lower(*origin) == own ? Verdict::accepted : Verdict::bad_origin;
}

std::string_view OriginPolicy::shared_origin(const net::http::Request& request) const {
  std::optional<std::string_view> origin = request.header("origin");
  return origin && origins_.contains(to_lower(*origin)) ? *origin : std::string_view();
}

}  // namespace hive::rest
