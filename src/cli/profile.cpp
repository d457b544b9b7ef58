#include "cli/profile.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr json::Limits profile_limits{.max_bytes = 65536, .max_depth = 8, .max_values = 2000};
constexpr std::array<std::string_view, 1> file_keys = {"profiles"};
constexpr std::array<std::string_view, 4> profile_keys = {"url", "token", "token_file", "cacert"};

Result<void> check_keys(const std::vector<json::Member>& members, std::span<const std::string_view> known,
                        std::string_view where) {
  for (const json::Member& member : members) {
    if (member.key.starts_with("_comment")) continue;
    if (std::ranges::find(known, member.key) != known.end()) continue;
    auto nearest = nearest_name(member.key, known);
    return fail(ErrorCode::invalid_argument, "{}: unknown key {}{}", where, quote(member.key),
                nearest ? fmt::format("; did you mean \"{}\"?", *nearest) : "");
  }
  return {};
}

std::string absolute_path(const std::string& path, const std::string& folder, const std::string& home) {
  if (path.empty() || path.starts_with('/')) return path;
  if (path.starts_with("~/") && !home.empty()) return home + path.substr(1);
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

Result<Profile> parse_profile(std::string_view raw, const std::string& where, const std::string& folder,
                              const std::string& home) {
  if (!json::is_object(raw)) return fail(ErrorCode::invalid_argument, "{}: must be an object", where);
  std::vector<json::Member> members = TRY_CONTEXT(where, json::parse_object(raw, profile_limits));
  TRY(check_keys(members, profile_keys, where));
  Profile profile;
  std::array<std::string*, profile_keys.size()> targets = {&profile.url, &profile.token, &profile.token_file,
                                                           &profile.ca_certificate_path};
  for (size_t k = 0; k < profile_keys.size(); ++k) {
    auto value = json::find(members, profile_keys[k]);
    if (!value) continue;
    auto text = json::decode_string(*value);
    if (!text || text->empty()) {
      return fail(ErrorCode::invalid_argument, "{}: \"{}\" must be a text that is not empty", where, profile_keys[k]);
    }
    *targets[k] = *std::move(text);
  }
  if (!profile.token.empty() && !profile.token_file.empty()) {
    return fail(ErrorCode::invalid_argument, "{}: \"token\" and \"token_file\" exclude each other", where);
  }
  profile.token_file = absolute_path(profile.token_file, folder, home);
  profile.ca_certificate_path = absolute_path(profile.ca_certificate_path, folder, home);
  return profile;
}

}  // namespace

Result<std::optional<Profile>> load_profile(const std::string& path, const std::string& name, bool must_exist,
                                            const std::string& home) {
  Result<std::string> content = path.empty() ? fail(ErrorCode::not_found, "no folder for it: HOME is not set")
                                             : read_file(path, profile_limits.max_bytes, FileSecrecy::owner_only);
  if (!content) {
    if (content.error().code == ErrorCode::not_found && !must_exist) return std::nullopt;
    return std::unexpected(with_context(content.error(), fmt::format("profile {}", quote(name))));
  }
  std::vector<json::Member> file = TRY_CONTEXT(path, json::parse_object(*content, profile_limits));
  TRY(check_keys(file, file_keys, path));
  auto profiles = json::find(file, "profiles");
  if (!profiles || !json::is_object(*profiles)) {
    return fail(ErrorCode::invalid_argument, "{}: \"profiles\" must be an object of profiles by name", path);
  }
  std::vector<json::Member> named = TRY_CONTEXT(path, json::parse_object(*profiles, profile_limits));
  auto raw = json::find(named, name);
  if (!raw && !must_exist) return std::nullopt;
  if (!raw) {
    std::vector<std::string> names;
    for (const json::Member& member : named)
      names.push_back(quote(member.key));
    return fail(ErrorCode::not_found, "{}: no profile {}; it has {}", path, quote(name),
                names.empty() ? "none" : join(names, ", "));
  }
  std::string where = fmt::format("{}: profiles.{}", path, escape_for_terminal(name));
  return TRY(parse_profile(*raw, where, std::filesystem::path(path).parent_path().string(), home));
}

}  // namespace hive::cli
