#include "config/names.h"

#include <algorithm>

#include "base/strings.h"
#include "protocol/outcome.h"
#include "protocol/tools.h"

namespace hive::config {

std::optional<std::string> read_role(Reader& reader, const Value& value) {
  static constexpr std::string_view roles[] = {"admin", "operator", "read-only"};
  return reader.one_of(value, roles);
}

std::optional<std::string> read_tier(Reader& reader, const Value& value) {
  std::optional<std::string> name = reader.string(value);
  if (!name) return std::nullopt;
  if (*name == "mutate") return "write";
  if (*name == "destructive") return "admin";
  if (std::optional<protocol::Tier> tier = protocol::tier_from_string(*name)) {
    return std::string(protocol::to_string(*tier));
  }
  reader.problem(value, fmt::format("{} is not a tier; the tiers are read, write and admin",
                                    quote(std::string_view(*name).substr(0, 64))));
  return std::nullopt;
}

void read_url(Reader& reader, const Value& value) {
  std::optional<std::string> text = reader.non_empty_string(value);
  if (!text) return;
  std::size_t scheme = text->starts_with("https://") ? 8 : text->starts_with("http://") ? 7 : 0;
  std::string_view authority = std::string_view(*text).substr(scheme);
  authority = authority.substr(0, authority.find_first_of("/?#"));
  // A URL may hold a secret (webhooks do), so it is not shown.
  if (scheme == 0 || authority.empty() || authority.contains(' ')) {
    reader.problem(value, "is not a URL with http:// or https:// and a host");
  } else if (authority.contains('@')) {
    reader.problem(value, "a URL must not hold a user name or password");
  }
}

Result<void> check_tool_name(std::string_view name) {
  bool printable = std::ranges::all_of(name, [](char c) { return c > 0x20 && c < 0x7f; });
  if (name.empty() || name.size() > 128 || !printable) {
    return fail(ErrorCode::invalid_argument, "is not the name of a tool");
  }
  std::size_t separator = name.find("__");
  if (separator != std::string_view::npos && protocol::find_builtin_tool(name.substr(separator + 2)) != nullptr) {
    return fail(ErrorCode::invalid_argument, "a tier is set for a tool on all agents; write {}",
                quote(name.substr(separator + 2)));
  }
  return {};
}

}  // namespace hive::config
