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
  return read_tier_name(reader, value, *name);
}

std::optional<std::string> read_tier_name(Reader& reader, const Value& at, std::string_view name) {
  if (name == "mutate") return "write";
  if (name == "destructive") return "admin";
  if (std::optional<protocol::Tier> tier = protocol::tier_from_string(name)) {
    return std::string(protocol::to_string(*tier));
  }
  reader.problem(at, fmt::format("{} is not a tier; the tiers are read, write and admin", quote(name.substr(0, 64))));
  return std::nullopt;
}

Result<void> check_identity(std::string_view text) {
  auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (text.empty() || text.size() > 128 || text != trim(text) || std::ranges::any_of(text, is_control)) {
    return fail(ErrorCode::invalid_argument,
                "a name has 1 to 128 bytes, no control characters and no blanks around it");
  }
  // What would not be shown as it is could be mistaken for somebody else.
  if (escape_for_terminal(text) != text) {
    return fail(ErrorCode::invalid_argument, "a name must not hold characters that are not shown as they are");
  }
  if (text.starts_with("token:")) {
    return fail(ErrorCode::invalid_argument,
                "a name must not begin with \"token:\", by which the audit log means a token without an identity");
  }
  return {};
}

namespace {

// A URL may hold a secret (webhooks do), so it is not shown.
bool check_url(Reader& reader, const Value& at, std::string_view url) {
  std::size_t scheme = url.starts_with("https://") ? 8 : url.starts_with("http://") ? 7 : 0;
  std::string_view authority = url.substr(scheme);
  authority = authority.substr(0, authority.find_first_of("/?#"));
  if (scheme == 0 || authority.empty() || authority.contains(' ')) {
    reader.problem(at, "is not a URL with http:// or https:// and a host");
    return false;
  }
  if (authority.contains('@')) {
    reader.problem(at, "a URL must not hold a user name or password");
    return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> read_url(Reader& reader, const Value& value) {
  std::optional<std::string> url = reader.non_empty_string(value);
  if (url && !check_url(reader, value, *url)) url.reset();
  return url;
}

void read_secret_url(Reader& reader, const Value& value) {
  if (std::optional<Secret> url = reader.secret(value)) check_url(reader, value, url->reveal());
}

Result<void> check_command_name(std::string_view name) {
  bool printable = std::ranges::all_of(name, [](char c) { return c > 0x20 && c < 0x7f; });
  if (name.empty() || name.size() > 240 || !printable) {
    return fail(ErrorCode::invalid_argument, "is not the name of a command");
  }
  if (name.contains('/') && !name.starts_with('/')) {
    return fail(ErrorCode::invalid_argument,
                "{} is a relative path; write a bare name or an absolute path, as in "
                "allowed_commands",
                quote(name));
  }
  return {};
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
