#include "config/gateway_upstreams.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "config/address.h"
#include "config/names.h"

namespace hive::config {

namespace {

constexpr std::size_t max_upstreams = 128;
constexpr std::size_t max_arguments = 256;
constexpr std::size_t max_members = 128;
constexpr std::size_t max_name_bytes = 128;

/// A server while it is read.
struct UpstreamDraft : UpstreamConfig {
  bool has_prefix = false;
};

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// A server's name is the prefix of its tools, as an agent's id is, so they share their rules.
void read_name(Reader& reader, const Value& value, UpstreamDraft& draft) {
  std::optional<std::string> name = reader.string(value);
  if (!name) return;
  if (Result<void> checked = check_agent_id(*name); !checked) {
    reader.problem(value, checked.error().message);
    return;
  }
  draft.name = *std::move(name);
}

void read_prefix(Reader& reader, const Value& value, UpstreamDraft& draft) {
  std::optional<std::string> prefix = reader.string(value);
  if (!prefix) return;
  if (!prefix->empty()) {
    if (Result<void> checked = check_agent_id(*prefix); !checked) {
      reader.problem(value, checked.error().message);
      return;
    }
  }
  draft.prefix = *std::move(prefix);
  draft.has_prefix = true;
}

void read_transport(Reader& reader, const Value& value, UpstreamDraft& draft) {
  static constexpr std::string_view transports[] = {"stdio", "sse", "http"};
  if (auto name = reader.one_of(value, transports)) draft.transport = *std::move(name);
}

void read_command(Reader& reader, const Value& value, UpstreamDraft& draft) {
  std::optional<std::string> command = reader.string(value);
  if (!command || command->empty()) return;
  if (Result<void> checked = check_command_name(*command); !checked) {
    reader.problem(value, checked.error().message);
    return;
  }
  draft.command = *std::move(command);
}

// An argument may well be empty or a whole script; only what cannot be passed to a program is refused.
void read_arguments(Reader& reader, const Value& value, UpstreamDraft& draft) {
  std::vector<Value> elements = reader.elements(value);
  if (elements.size() > max_arguments) {
    reader.problem(value, fmt::format("has {} entries; at most {} are accepted", elements.size(), max_arguments));
    return;
  }
  for (const Value& element : elements) {
    if (auto argument = reader.string(element)) draft.arguments.push_back(*std::move(argument));
  }
}

std::map<std::string, Secret> read_secret_members(Reader& reader, const Value& value,
                                                  bool (*is_sound)(std::string_view), std::string_view remedy) {
  std::map<std::string, Secret> secrets;
  auto members = reader.members(value);
  if (members.size() > max_members) {
    reader.problem(value, fmt::format("has {} members; at most {} are accepted", members.size(), max_members));
    return secrets;
  }
  for (const auto& [name, element] : members) {
    if (!is_sound(name)) {
      reader.problem(element, remedy);
      continue;
    }
    if (element.raw == "\"\"") {
      secrets.try_emplace(name);
    } else if (auto secret = reader.secret(element)) {
      secrets.try_emplace(name, *std::move(secret));
    }
  }
  return secrets;
}

bool is_variable(std::string_view name) {
  return !name.empty() && name.size() <= max_name_bytes && !(name[0] >= '0' && name[0] <= '9') &&
         std::ranges::all_of(name, [](char c) { return is_name_character(c) || c == '_'; });
}

void read_environment(Reader& reader, const Value& value, UpstreamDraft& draft) {
  draft.environment =
      read_secret_members(reader, value, is_variable,
                          "is not the name of a variable: letters, digits and \"_\", not starting with a digit");
}

// RFC 9110 section 5.6.2. Names that carry the protocol itself are the gateway's own.
bool is_free_header(std::string_view name) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  bool is_token = !name.empty() && name.size() <= max_name_bytes &&
                  std::ranges::all_of(name, [&](char c) { return is_name_character(c) || marks.contains(c); });
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  static constexpr std::string_view own[] = {"host",    "content-length", "content-type",      "accept",  "connection",
                                             "te",      "last-event-id",  "transfer-encoding", "upgrade", "expect",
                                             "trailer", "origin"};
  return is_token && !lower.starts_with("mcp-") && std::ranges::find(own, lower) == std::end(own);
}

void read_headers(Reader& reader, const Value& value, UpstreamDraft& draft) {
  draft.headers = read_secret_members(reader, value, is_free_header,
                                      "is not a header that may be added: the protocol sets it itself");
}

// A bearer token, and all that tools answer, would cross the network for anyone to read and to change.
void read_server_url(Reader& reader, const Value& value, UpstreamDraft& draft) {
  if (!says_something(value.raw)) return;
  std::optional<std::string> url = read_url(reader, value);
  if (!url) return;
  std::string_view rest = std::string_view(*url).substr(url->find("://") + 3);
  std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  std::string_view host = authority.starts_with('[') ? authority.substr(1, authority.find(']') - 1)
                                                     : authority.substr(0, authority.find(':'));
  bool is_visible = std::ranges::all_of(*url, [](char c) { return c > 0x20 && c < 0x7f; });
  if (host.empty() || !is_visible || rest.contains('#')) {
    reader.problem(value, "is not a URL of a server: blanks, control characters and \"#\" do not belong there");
  } else if (url->starts_with("http://") && !is_loopback_literal(host) && host != "localhost") {
    // The HTTP client takes the name localhost for the loopback without asking anybody.
    reader.problem(value, "must begin with https://; plain http is for loopback addresses alone");
  } else {
    draft.url = *std::move(url);
  }
}

void read_auth_secret(Reader& reader, const Value& value, UpstreamDraft& draft) {
  if (value.raw != "\"\"") store_secret<&UpstreamDraft::auth_token>(reader, value, draft);
}

template <auto Member>
void store_flag(Reader& reader, const Value& value, UpstreamDraft& draft) {
  if (auto flag = reader.boolean(value)) draft.*Member = *flag;
}

using U = UpstreamDraft;

constexpr KeyInfo name_info{.name = "name", .type = "string", .default_value = "", .required = true};
constexpr KeyInfo prefix_info{.name = "prefix", .type = "string", .default_value = "the name"};
constexpr KeyInfo token_info{.name = "auth_token", .type = "string", .default_value = "", .secret = true};

constexpr Key<U> upstream_server_keys[] = {
    {name_info, read_name},
    {{.name = "url", .type = "URL", .default_value = "", .required = true}, read_server_url},
    {prefix_info, read_prefix},
    {token_info, read_auth_secret},
};

constexpr Key<U> external_server_keys[] = {
    {name_info, read_name},
    {{.name = "transport", .type = "stdio, sse or http", .default_value = "", .required = true}, read_transport},
    {{.name = "command", .type = "string", .default_value = ""}, read_command},
    {{.name = "args", .type = "list of strings", .default_value = "[]"}, read_arguments},
    {{.name = "env", .type = "object of strings", .default_value = "{}", .secret = true}, read_environment},
    {{.name = "url", .type = "URL", .default_value = ""}, read_server_url},
    {token_info, read_auth_secret},
    {{.name = "headers", .type = "object of strings", .default_value = "{}", .secret = true}, read_headers},
    {{.name = "ca_cert_path", .type = "path", .default_value = "the system's authorities"},
     store_path<&U::ca_certificate_path>},
    {prefix_info, read_prefix},
    {{.name = "timeout_seconds", .type = "whole number, 1 to 3600", .default_value = "call_timeout_seconds"},
     store_seconds<&U::timeout, 1, 3600>},
    {{.name = "enabled", .type = "true or false", .default_value = "true"}, store_flag<&U::enabled>},
    {{.name = "pin_tools", .type = "true or false", .default_value = "true"}, store_flag<&U::pin_tools>},
};

void check_transport(Reader& reader, const Value& place, const UpstreamDraft& entry) {
  // What was not read well has been reported at its own place.
  auto is_set = [&](std::string_view key) {
    for (const auto& [name, value] : reader.members(place)) {
      if (name == key) return says_something(value.raw);
    }
    return false;
  };
  if (entry.transport == "stdio") {
    if (!is_set("command")) reader.problem(place, "command is not set");
    for (std::string_view key : {"url", "auth_token", "headers", "ca_cert_path"}) {
      if (is_set(key)) {
        reader.problem(place, fmt::format("{} has no meaning for the transport stdio; hand secrets over in env", key));
      }
    }
  } else if (!entry.transport.empty()) {
    if (!is_set("url")) reader.problem(place, "url is not set");
    for (std::string_view key : {"command", "args", "env"}) {
      if (is_set(key)) {
        reader.problem(place, fmt::format("{} has no meaning for the transport {}", key, entry.transport));
      }
    }
  }
  auto is_authorization = [](const auto& header) {
    std::string name = header.first;
    std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
    return name == "authorization";
  };
  if (!entry.auth_token.empty() && std::ranges::any_of(entry.headers, is_authorization)) {
    reader.problem(place, "auth_token and headers.Authorization are one header; set one of them");
  }
}

void keep(GatewayDraft& draft, const Value& place, UpstreamDraft&& entry) {
  if (entry.name.empty()) return;
  if (!entry.has_prefix) entry.prefix = entry.name;
  entry.field = place.field;
  draft.upstreams.push_back(std::move(entry));
  draft.upstream_places.push_back(place);
}

}  // namespace

void read_upstream_servers(Reader& reader, const Value& value, GatewayDraft& draft) {
  for (const Value& place : reader.elements(value)) {
    UpstreamDraft entry;
    read_members<U>(reader, place, upstream_server_keys, entry);
    entry.transport = "sse";
    keep(draft, place, std::move(entry));
  }
}

void read_external_mcp_servers(Reader& reader, const Value& value, GatewayDraft& draft) {
  for (const Value& place : reader.elements(value)) {
    UpstreamDraft entry;
    read_members<U>(reader, place, external_server_keys, entry);
    check_transport(reader, place, entry);
    keep(draft, place, std::move(entry));
  }
}

void check_upstreams(Reader& reader, const GatewayDraft& draft) {
  if (draft.upstreams.size() > max_upstreams) {
    reader.problem_with_file(
        fmt::format("upstream_servers and external_mcp_servers name {} servers; at most {} are "
                    "accepted",
                    draft.upstreams.size(), max_upstreams));
    return;
  }
  std::map<std::string_view, std::string_view> names;     // to the field of the first that has it
  std::map<std::string_view, std::string_view> prefixes;  // likewise
  for (std::size_t index = 0; index < draft.upstreams.size(); ++index) {
    const UpstreamConfig& upstream = draft.upstreams[index];
    const Value& place = draft.upstream_places[index];
    if (auto [first, is_new] = names.try_emplace(upstream.name, upstream.field); !is_new) {
      reader.problem(
          place, fmt::format("another upstream server is called {} as well: {}", quote(upstream.name), first->second));
      continue;
    }
    auto [first, is_new] = prefixes.try_emplace(upstream.prefix, upstream.field);
    if (is_new) continue;
    if (upstream.prefix.empty()) {
      reader.problem(place, fmt::format("its prefix is empty, and so is that of {}: only one server's tools can go "
                                        "without a prefix",
                                        first->second));
    } else {
      reader.problem(place, fmt::format("its prefix {} is that of {} as well; set another in prefix",
                                        quote(upstream.prefix), first->second));
    }
  }
}

void append_upstream_keys(std::vector<PlacedKey>& keys) {
  for (const Key<U>& row : upstream_server_keys) {
    keys.push_back({fmt::format("upstream_servers[].{}", row.info.name), row.info});
  }
  for (const Key<U>& row : external_server_keys) {
    keys.push_back({fmt::format("external_mcp_servers[].{}", row.info.name), row.info});
  }
}

}  // namespace hive::config
