#include "config/agent_config.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/strings.h"
#include "config/document.h"
#include "config/file_mode.h"
#include "config/key.h"
#include "config/pattern.h"
#include "config/secret_reference.h"
#include "crypto/ssh_key.h"
#include "protocol/json.h"

namespace hive::config {

namespace {

constexpr std::size_t max_commands = 1000;

struct Draft : AgentConfig {
  std::optional<GatewayAddress> single_gateway;
  bool names_a_gateway = false;  ///< perhaps wrongly, which has been reported then
  bool names_a_key = false;      ///< in one of the two ways, perhaps wrongly as well
  std::optional<Secret> proxy_password;
  bool shows_proxy_password = false;          ///< in the text of `proxy` itself
  std::optional<Value> proxy_value;           ///< where `proxy` stands, if it says something
  std::optional<Value> proxy_password_value;  ///< the same
  std::vector<Value> no_proxy_values;         ///< of no_proxy, element by element
};

// The name is what a caller says and, unless it is absolute, what is looked up on PATH. A relative path with a slash
// would mean another program in another working directory.
void read_command_name(Reader& reader, const Value& value, AllowedCommand& command) {
  std::optional<std::string> name = reader.non_empty_string(value);
  if (!name) return;
  if (name->contains('/') && !name->starts_with('/')) {
    reader.problem(value, fmt::format("{} is a relative path; write a bare name or an absolute path", quote(*name)));
  } else if (name->contains(' ')) {
    reader.problem(value, "a name is one program; its arguments belong into args_regex");
  } else {
    command.name = *std::move(name);
  }
}

void read_args_regex(Reader& reader, const Value& value, AllowedCommand& command) {
  std::optional<std::string> pattern = reader.string(value);
  if (!pattern) return;
  if (Result<Pattern> compiled = Pattern::compile(*pattern); !compiled) {
    reader.problem(value, compiled.error().message);
    return;
  }
  command.args_regex = *std::move(pattern);
}

void read_user(Reader& reader, const Value& value, AllowedCommand& command) {
  std::optional<std::string> user = reader.string(value);
  if (!user) return;
  bool sound = user->size() <= 32 && !user->starts_with('-') &&
               user->find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-$") ==
                   std::string::npos;
  if (sound) {
    command.user = *std::move(user);
  } else {
    reader.problem(value, fmt::format("{} is not a user name", quote(std::string_view(*user).substr(0, 64))));
  }
}

void read_env(Reader& reader, const Value& value, AllowedCommand& command) {
  for (const auto& [name, element] : reader.members(value)) {
    bool sound =
        !name.empty() && name.size() <= 128 && !(name[0] >= '0' && name[0] <= '9') &&
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
    if (!sound) {
      reader.problem(element, "is not a name of an environment variable (letters, digits and \"_\")");
      continue;
    }
    if (std::optional<std::string> text = reader.string(element)) command.env[name] = *std::move(text);
  }
}

constexpr Key<AllowedCommand> command_keys[] = {
    {{.name = "name", .type = "string", .default_value = "", .required = true}, read_command_name},
    {{.name = "args_regex", .type = "string", .default_value = "no arguments"}, read_args_regex},
    {{.name = "timeout_seconds", .type = "whole number, 1 to 3600", .default_value = "30"},
     store_seconds<&AllowedCommand::timeout, 1, 3600>},
    {{.name = "max_output_bytes", .type = "whole number, 1 to 67108864", .default_value = "1048576"},
     store_integer<&AllowedCommand::max_output_bytes, 1, 64 << 20>},
    {{.name = "user", .type = "string", .default_value = "the agent's own"}, read_user},
    {{.name = "env", .type = "object of strings", .default_value = "{}"}, read_env},
};

std::optional<GatewayAddress> read_address(Reader& reader, const Value& value) {
  std::optional<std::string> text = reader.string_or_reference(value);
  if (!text) return std::nullopt;
  Result<GatewayAddress> address = parse_gateway_address(*text);
  if (address) return *std::move(address);
  reader.problem(value, address.error().message);
  return std::nullopt;
}

void read_gateway_addr(Reader& reader, const Value& value, Draft& draft) {
  if (!says_something(value.raw)) return;
  draft.names_a_gateway = true;
  draft.single_gateway = read_address(reader, value);
}

void read_gateway_addrs(Reader& reader, const Value& value, Draft& draft) {
  draft.names_a_gateway = draft.names_a_gateway || says_something(value.raw);
  for (const Value& element : reader.elements(value)) {
    if (auto address = read_address(reader, element)) draft.gateways.push_back(*std::move(address));
  }
}

void read_agent_id(Reader& reader, const Value& value, Draft& draft) {
  std::optional<std::string> id = reader.string_or_reference(value);
  if (!id) return;
  if (Result<void> checked = check_agent_id(*id); !checked) {
    reader.problem(value, checked.error().message);
    return;
  }
  draft.agent_id = *std::move(id);
}

void read_gateway_host_key(Reader& reader, const Value& value, Draft& draft) {
  std::optional<std::string> line = reader.string_or_reference(value);
  if (!line || line->empty()) return;
  Result<crypto::PublicKey> key = crypto::PublicKey::from_line(*line);
  if (!key) {
    reader.problem(value, fmt::format("{}; copy the line from the gateway's host_key.pub", key.error().message));
  } else if (!key->is_ed25519()) {
    reader.problem(value, fmt::format("the key is of type {}; only ssh-ed25519 is accepted", key->type()));
  } else {
    draft.gateway_host_key = *std::move(line);
  }
}

void read_private_key_path(Reader& reader, const Value& value, Draft& draft) {
  if (draft.names_a_key) reader.problem(value, "private_key is set as well; remove one of the two");
  draft.names_a_key = true;
  store_required_path<&Draft::private_key_path>(reader, value, draft);
}

// In the file it would be copied with the file: into backups, tickets and version control.
void read_private_key(Reader& reader, const Value& value, Draft& draft) {
  if (!says_something(value.raw)) return;
  if (draft.names_a_key) {
    reader.problem(value, "private_key_path is set as well; remove one of the two");
  }
  draft.names_a_key = true;
  std::optional<Secret> text = reader.referred_text(
      value, "write a reference, as in env:NAME or vault:PATH#FIELD, or set private_key_path instead");
  if (!text) return;
  if (Result<crypto::PrivateKey> key = crypto::PrivateKey::from_openssh(text->reveal()); !key) {
    reader.problem(value, key.error().message);
    return;
  }
  draft.private_key = *std::move(text);
}

void read_proxy(Reader& reader, const Value& value, Draft& draft) {
  if (!says_something(value.raw)) return;
  draft.proxy_value = value;
  std::optional<std::string> text = reader.string_or_reference(value);
  if (!text) return;
  Result<ProxyAddress> proxy = parse_proxy(*text);
  if (!proxy) {
    reader.problem(value, proxy.error().message);
    return;
  }
  draft.shows_proxy_password =
      !proxy->password.empty() && !is_secret_reference(json::decode_string(value.raw).value_or(""));
  draft.proxy = *std::move(proxy);
}

void read_proxy_password(Reader& reader, const Value& value, Draft& draft) {
  if (!says_something(value.raw)) return;
  draft.proxy_password_value = value;
  draft.proxy_password = reader.secret(value);
}

void read_no_proxy(Reader& reader, const Value& value, Draft& draft) {
  for (const Value& element : reader.elements(value)) {
    std::optional<std::string> host = reader.non_empty_string(element);
    if (!host) continue;
    draft.no_proxy.push_back(*std::move(host));
    draft.no_proxy_values.push_back(element);
  }
}

// The keys of the proxy can stand in any order, so what one says of the other is checked at the end.
void join_proxy(Reader& reader, Draft& draft) {
  if (draft.proxy_password_value && !draft.proxy_value) {
    reader.problem(*draft.proxy_password_value, "proxy is not set");
  }
  if (draft.proxy && draft.proxy_password) {
    if (!draft.proxy->password.empty()) {
      reader.problem(*draft.proxy_password_value, "proxy holds a password as well; remove one of the two");
    }
    draft.proxy->password = *draft.proxy_password;
  }
  if (draft.proxy && (draft.proxy_password || !draft.proxy_password_value)) {
    if (Result<void> sound = check_proxy_credentials(*draft.proxy); !sound) {
      reader.problem(*draft.proxy_value, sound.error().message);
    }
  }
  for (std::size_t i = 0; i < draft.no_proxy.size(); ++i) {
    if (!draft.names_a_gateway ||
        std::ranges::find(draft.gateways, draft.no_proxy[i], &GatewayAddress::host) != draft.gateways.end()) {
      continue;
    }
    reader.problem(draft.no_proxy_values[i], fmt::format("no gateway has the host {}; write a host as it stands in "
                                                         "gateway_addr or gateway_addrs, without the port",
                                                         quote(draft.no_proxy[i])));
  }
}

void read_allowed_commands(Reader& reader, const Value& value, Draft& draft) {
  std::vector<Value> entries = reader.elements(value);
  if (entries.size() > max_commands) {
    reader.problem(value, fmt::format("has {} entries; at most {} are accepted", entries.size(), max_commands));
    return;
  }
  for (const Value& entry : entries) {
    AllowedCommand& command = draft.allowed_commands.emplace_back();
    read_members<AllowedCommand>(reader, entry, command_keys, command);
  }
}

template <auto Member>
void store_absolute_paths(Reader& reader, const Value& value, Draft& draft) {
  (draft.*Member).clear();
  for (const Value& element : reader.elements(value)) {
    std::optional<std::string> text = reader.non_empty_string(element);
    if (!text) continue;
    std::string path = std::filesystem::path(*text).lexically_normal().string();
    if (!path.starts_with('/')) {
      reader.problem(element, fmt::format("{} is not an absolute path", quote(*text)));
      continue;
    }
    while (path.size() > 1 && path.ends_with('/')) {
      path.pop_back();
    }
    (draft.*Member).push_back(std::move(path));
  }
}

constexpr Key<Draft> agent_keys[] = {
    {{.name = "agent_id",
      .type = "string",
      .default_value = "",
      .required = true,
      .remedy = "it is the comment of the agent's line in the gateway's authorized_keys"},
     read_agent_id},
    {{.name = "gateway_addr", .type = "string", .default_value = ""}, read_gateway_addr},
    {{.name = "gateway_addrs", .type = "list of strings", .default_value = "[]"}, read_gateway_addrs},
    {{.name = "private_key_path", .type = "path", .default_value = ""}, read_private_key_path},
    {{.name = "private_key", .type = "reference", .default_value = "", .secret = true}, read_private_key},
    {{.name = "gateway_host_key", .type = "string", .default_value = "trust on first use"}, read_gateway_host_key},
    {{.name = "known_host_key_path", .type = "path", .default_value = "private_key_path + \".gateway_hostkey\""},
     store_path<&Draft::known_host_key_path>},
    {{.name = "proxy", .type = "string", .default_value = ""}, read_proxy},
    {{.name = "proxy_password", .type = "string", .default_value = "", .secret = true}, read_proxy_password},
    {{.name = "no_proxy", .type = "list of strings", .default_value = "[]"}, read_no_proxy},
    {{.name = "allowed_commands", .type = "list of objects", .default_value = "[]"}, read_allowed_commands},
    {{.name = "file_read_roots", .type = "list of absolute paths", .default_value = "[]"},
     store_absolute_paths<&Draft::file_read_roots>},
    {{.name = "log_paths",
      .type = "list of absolute paths",
      .default_value = "/var/log/syslog, /var/log/messages, /var/log/auth.log, /var/log/system.log"},
     store_absolute_paths<&Draft::log_paths>},
    {{.name = "keepalive_seconds", .type = "whole number, 1 to 3600", .default_value = "15"},
     store_seconds<&Draft::keepalive, 1, 3600>},
    {{.name = "max_concurrent_calls", .type = "whole number, 1 to 4096", .default_value = "64"},
     store_integer<&Draft::max_concurrent_calls, 1, 4096>},
    {{.name = "log_level", .type = "debug, info, warning or error", .default_value = "info"},
     store_log_level<&Draft::log_level>},
};

// gateway_addr stands for the gateway to try first, unless the list already says where it comes.
void join_gateways(Reader& reader, Draft& draft) {
  if (draft.single_gateway) {
    bool listed = false;
    for (const GatewayAddress& address : draft.gateways) {
      listed = listed || address.to_string() == draft.single_gateway->to_string();
    }
    if (!listed) draft.gateways.insert(draft.gateways.begin(), *draft.single_gateway);
  }
  if (!draft.names_a_gateway) {
    reader.problem_with_file("no gateway is set; add \"gateway_addr\": \"host:2222\" or a list \"gateway_addrs\"");
  }
}

void check_key(Reader& reader, const Draft& draft) {
  if (draft.names_a_key) return;
  reader.problem_with_file(
      "private_key_path is not set; make a key with: ssh-keygen -t ed25519 -N \"\" -C AGENT_ID -f id_ed25519");
}

void check_files(Reader& reader, const Draft& draft) {
  if (Result<void> mode =
          check_configuration_mode(reader.file(), draft.shows_proxy_password || reader.holds_plain_secret());
      !mode) {
    reader.problem_with_file(mode.error().message);
  }
  if (draft.private_key_path.empty()) return;
  if (Result<void> mode = check_private_key_mode(draft.private_key_path); !mode) {
    reader.problem_with_file(fmt::format("private_key_path: {}", mode.error().message));
  }
}

AgentConfigDraft read_agent_config(std::string_view text, const std::string& path, const SecretSources& sources,
                                   bool on_disk) {
  Reader reader(text, path, sources);
  Draft draft;
  draft.source_path = path;
  draft.log_paths = {"/var/log/syslog", "/var/log/messages", "/var/log/auth.log", "/var/log/system.log"};
  std::optional<Value> document = reader.document();
  if (!document) return {static_cast<AgentConfig&&>(std::move(draft)), reader.error()};
  read_members<Draft>(reader, *document, agent_keys, draft);
  join_gateways(reader, draft);
  join_proxy(reader, draft);
  check_key(reader, draft);
  if (on_disk) check_files(reader, draft);
  if (draft.known_host_key_path.empty()) {
    draft.known_host_key_path = draft.private_key_path.empty() ? reader.folder() + "/gateway_hostkey"
                                                               : draft.private_key_path + ".gateway_hostkey";
  }
  std::optional<Error> error;
  if (!reader.ok()) error = reader.error();
  return {static_cast<AgentConfig&&>(std::move(draft)), std::move(error)};
}

Result<AgentConfig> accept(AgentConfigDraft draft) {
  if (draft.error) return std::unexpected(*std::move(draft.error));
  return std::move(draft.config);
}

}  // namespace

const ProxyAddress* AgentConfig::proxy_for(const GatewayAddress& gateway) const {
  if (!proxy || std::ranges::find(no_proxy, gateway.host) != no_proxy.end()) return nullptr;
  return &*proxy;
}

Result<AgentConfig> parse_agent_config(std::string_view text, const std::string& path) {
  return parse_agent_config(text, path, SecretSources::system());
}

Result<AgentConfig> parse_agent_config(std::string_view text, const std::string& path, const SecretSources& sources) {
  return accept(read_agent_config(text, path, sources, false));
}

Result<AgentConfig> load_agent_config(const std::string& path) {
  return load_agent_config(path, SecretSources::system());
}

Result<AgentConfig> load_agent_config(const std::string& path, const SecretSources& sources) {
  std::string text = TRY(read_file(path, max_document_bytes));
  return accept(read_agent_config(text, path, sources, true));
}

AgentConfigDraft inspect_agent_config(const std::string& path, const SecretSources& sources) {
  Result<std::string> text = read_file(path, max_document_bytes);
  if (!text) return {{}, std::move(text).error()};
  return read_agent_config(*text, path, sources, true);
}

std::vector<PlacedKey> agent_config_keys() {
  std::vector<PlacedKey> keys;
  for (const Key<Draft>& key : agent_keys) {
    keys.push_back({std::string(key.info.name), key.info});
  }
  for (const Key<AllowedCommand>& key : command_keys) {
    keys.push_back({fmt::format("allowed_commands[].{}", key.info.name), key.info});
  }
  return keys;
}

}  // namespace hive::config
