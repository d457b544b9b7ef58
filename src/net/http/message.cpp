#include "net/http/message.h"

#include "net/http/target.h"

namespace hive::net::http {

std::optional<std::string_view> Request::header(std::string_view name) const {
  std::optional<std::string_view> found;
  for (const auto& [key, value] : headers) {
    if (key != name) continue;
    if (found) return std::nullopt;
    found = value;
  }
  return found;
}

std::optional<std::string> Request::query_parameter(std::string_view name) const {
  std::string_view rest = query;
  while (!rest.empty()) {
    std::size_t end = rest.find('&');
    std::string_view pair = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    std::size_t equals = pair.find('=');
    std::optional<std::string> key = decode_query_component(pair.substr(0, equals));
    if (!key || *key != name) continue;
    return decode_query_component(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1));
  }
  return std::nullopt;
}

}  // namespace hive::net::http
