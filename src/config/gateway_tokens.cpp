// The tokens of a gateway configuration: auth_token, tokens and scoped_tokens.
#include <algorithm>

#include "base/strings.h"
#include "config/expiry.h"
#include "config/gateway_access.h"
#include "config/names.h"

namespace hive::config {

namespace {

constexpr std::size_t max_glob_bytes = 128;
constexpr std::size_t max_globs = 1000;

// Who mixes up key and value has written a token here, so the value is not shown.
void read_token_role(Reader& reader, const Value& value, StaticToken& token) {
  static constexpr std::string_view roles[] = {"admin", "operator", "read-only"};
  std::optional<std::string> role = reader.string(value);
  if (!role) return;
  if (std::ranges::find(roles, *role) == std::end(roles)) {
    reader.problem(value, "is not a role; write \"token\": \"role\" with the role admin, operator or read-only");
    return;
  }
  token.role = *std::move(role);
}

void read_token_identity(Reader& reader, const Value& value, StaticToken& token) {
  std::optional<std::string> identity = reader.string(value);
  if (!identity) return;
  if (Result<void> checked = check_identity(*identity); !checked) {
    reader.problem(value, checked.error().message);
    return;
  }
  token.identity = *std::move(identity);
}

constexpr Key<StaticToken> token_keys[] = {
    {{.name = "role", .type = "role", .default_value = "", .required = true}, read_token_role},
    {{.name = "identity", .type = "string", .default_value = ""}, read_token_identity},
};

/// A scoped token while it is read.
struct ScopedDraft : ScopedToken {
  bool names_agents = false;  ///< by id or by tag
};

void read_scoped_secret(Reader& reader, const Value& value, ScopedDraft& draft) {
  if (auto token = reader.token(value)) draft.credential.token = *std::move(token);
}

void read_scoped_role(Reader& reader, const Value& value, ScopedDraft& draft) {
  if (auto role = read_role(reader, value)) draft.credential.role = *std::move(role);
}

void read_scoped_identity(Reader& reader, const Value& value, ScopedDraft& draft) {
  read_token_identity(reader, value, draft.credential);
}

/// Reads names or globs. "*" is their only wildcard; `check` judges a name without one, and, with its stars taken for
/// letters, a glob.
std::vector<std::string> read_globs(Reader& reader, const Value& value, Result<void> (*check)(std::string_view name)) {
  std::vector<std::string> globs;
  std::vector<Value> elements = reader.elements(value);
  if (elements.size() > max_globs) {
    reader.problem(value, fmt::format("has {} entries; at most {} are accepted", elements.size(), max_globs));
    return globs;
  }
  for (const Value& element : elements) {
    std::optional<std::string> glob = reader.non_empty_string(element);
    if (!glob) continue;
    if (glob->size() > max_glob_bytes) {
      reader.problem(element, fmt::format("is longer than {} bytes", max_glob_bytes));
      continue;
    }
    if (Result<void> checked = check(*glob); !checked) {
      reader.problem(element, checked.error().message);
      continue;
    }
    globs.push_back(*std::move(glob));
  }
  return globs;
}

Result<void> check_agent_glob(std::string_view glob) {
  if (!glob.contains('*')) return glob == "gateway" ? Result<void>() : check_agent_id(glob);
  bool sound = std::ranges::all_of(glob, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '*';
  });
  if (sound && !glob.contains("__")) return {};
  return fail(ErrorCode::invalid_argument,
              "{} matches no agent: ids have letters, digits, \"_\" and \"-\", and \"*\" stands for any of them",
              quote(glob));
}

Result<void> check_tool_glob(std::string_view glob) {
  if (!glob.contains('*')) return check_tool_name(glob);
  bool printable = std::ranges::all_of(glob, [](char c) { return c > 0x20 && c < 0x7f; });
  if (printable && !glob.contains("__")) return {};
  return fail(ErrorCode::invalid_argument,
              "{} is not the name of a tool; write it without an agent, with \"*\" for any part of it", quote(glob));
}

Result<void> check_tag_glob(std::string_view /*glob*/) {
  return {};
}

void read_scoped_agents(Reader& reader, const Value& value, ScopedDraft& draft) {
  draft.names_agents = draft.names_agents || says_something(value.raw);
  draft.agents = read_globs(reader, value, check_agent_glob);
}

void read_scoped_tags(Reader& reader, const Value& value, ScopedDraft& draft) {
  draft.names_agents = draft.names_agents || says_something(value.raw);
  draft.tags = read_globs(reader, value, check_tag_glob);
}

void read_scoped_tools(Reader& reader, const Value& value, ScopedDraft& draft) {
  draft.tools = read_globs(reader, value, check_tool_glob);
  if (!says_something(value.raw)) {
    reader.problem(value, "names no tool; to let the token call every tool, write \"tools\": [\"*\"]");
  }
}

void read_scoped_expiry(Reader& reader, const Value& value, ScopedDraft& draft) {
  std::optional<std::string> text = reader.string(value);
  if (!text) return;
  draft.expires_at = parse_utc_time(*text);
  if (draft.expires_at) return;
  reader.problem(value, fmt::format("{} is not a time in UTC; write it as in 2027-01-31T00:00:00Z",
                                    quote(std::string_view(*text).substr(0, 64))));
}

constexpr Key<ScopedDraft> scoped_token_keys[] = {
    {{.name = "token", .type = "string", .default_value = "", .required = true, .secret = true}, read_scoped_secret},
    {{.name = "role", .type = "role", .default_value = "", .required = true}, read_scoped_role},
    {{.name = "identity", .type = "string", .default_value = ""}, read_scoped_identity},
    {{.name = "agents", .type = "list of strings", .default_value = "[]"}, read_scoped_agents},
    {{.name = "tags", .type = "list of strings", .default_value = "[]"}, read_scoped_tags},
    {{.name = "tools",
      .type = "list of strings",
      .default_value = "",
      .required = true,
      .remedy = "to let it call every tool, write \"tools\": [\"*\"]"},
     read_scoped_tools},
    {{.name = "expires_at", .type = "time", .default_value = "never"}, read_scoped_expiry},
};

}  // namespace

void read_auth_token(Reader& reader, const Value& value, GatewayDraft& draft) {
  draft.names_credentials = true;
  draft.auth_token_place = value;
  if (auto secret = reader.token(value)) draft.auth_token = *std::move(secret);
}

// The keys of this object are secrets, so places are told by number.
void read_tokens(Reader& reader, const Value& value, GatewayDraft& draft) {
  draft.names_credentials = draft.names_credentials || says_something(value.raw);
  for (const auto& [text, place] : reader.secret_members(value)) {
    StaticToken token{.token = {}, .role = {}, .identity = {}, .field = place.field};
    std::optional<Secret> secret = reader.token_text(place, text);
    if (place.raw.starts_with('{')) {
      read_members<StaticToken>(reader, place, token_keys, token);
    } else {
      read_token_role(reader, place, token);
    }
    if (!secret || token.role.empty()) continue;
    token.token = *std::move(secret);
    draft.tokens.push_back(std::move(token));
    draft.token_places.push_back(place);
  }
}

void read_scoped_tokens(Reader& reader, const Value& value, GatewayDraft& draft) {
  draft.names_credentials = draft.names_credentials || says_something(value.raw);
  for (const Value& place : reader.elements(value)) {
    ScopedDraft entry;
    entry.credential.field = place.field;
    read_members<ScopedDraft>(reader, place, scoped_token_keys, entry);
    // A list that somebody forgot must not open the fleet.
    if (place.raw.starts_with('{') && !entry.names_agents) {
      reader.problem(place,
                     "reaches no agent: neither agents nor tags names one; for the whole fleet, write "
                     "\"agents\": [\"*\"]");
    }
    if (entry.credential.token.empty() || entry.credential.role.empty()) continue;
    draft.scoped_tokens.push_back(std::move(entry));
    draft.scoped_token_places.push_back(place);
  }
}

void append_token_keys(std::vector<PlacedKey>& keys) {
  for (const Key<StaticToken>& row : token_keys) {
    keys.push_back({fmt::format("tokens{{}}.{}", row.info.name), row.info});
  }
  for (const Key<ScopedDraft>& row : scoped_token_keys) {
    keys.push_back({fmt::format("scoped_tokens[].{}", row.info.name), row.info});
  }
}

}  // namespace hive::config
