#include "priv/settings.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "priv/beneath.h"
#include "priv/names.h"
#include "protocol/json.h"

namespace hive::priv {

namespace {

constexpr size_t max_settings_bytes = size_t{256} << 10;
constexpr size_t max_list = 256;
constexpr std::string_view agent_mark = "{agent}";

std::string for_agent(std::string path, std::string_view agent) {
  size_t at = path.find(agent_mark);
  if (at != std::string::npos) path.replace(at, agent_mark.size(), agent);
  return path;
}

// One key of the file: reads its raw value into the settings.
struct Key {
  std::string_view name;
  Result<void> (*read)(std::string_view raw, Settings& settings, const Layout& layout);
};

Result<std::vector<std::string>> read_strings(std::string_view raw) {
  if (!json::is_array(raw)) return fail(ErrorCode::invalid_argument, "expected an array of strings");
  std::vector<std::string> strings;
  for (std::string_view element : TRY(json::parse_array(raw))) {
    auto text = json::decode_string(element);
    if (!text) return fail(ErrorCode::invalid_argument, "expected an array of strings");
    strings.push_back(*std::move(text));
  }
  if (strings.size() > max_list) return fail(ErrorCode::invalid_argument, "more than {} entries", max_list);
  return strings;
}

Result<std::uint64_t> read_number(std::string_view raw, std::uint64_t least, std::uint64_t largest) {
  auto number = json::decode_integer(raw);
  if (!number || *number < 0 || static_cast<std::uint64_t>(*number) < least ||
      static_cast<std::uint64_t>(*number) > largest) {
    return fail(ErrorCode::invalid_argument, "expected a whole number from {} to {}", least, largest);
  }
  return static_cast<std::uint64_t>(*number);
}

Result<std::vector<std::string>> read_sources(std::string_view raw, const Layout& layout) {
  auto paths = TRY(read_strings(raw));
  for (const std::string& path : paths) {
    std::string example = for_agent(path, "a");
    TRY(check_plain_path(example));
    if (belongs_to_the_host(example, layout)) {
      return fail(ErrorCode::invalid_argument, "{} belongs to the host and can't be given to an agent", quote(path));
    }
  }
  return paths;
}

Result<std::vector<std::string>> read_targets(std::string_view raw) {
  auto paths = TRY(read_strings(raw));
  for (std::string path : paths) {
    if (path.ends_with('/')) path.pop_back();
    TRY(check_plain_path(for_agent(path, "a")));
  }
  return paths;
}

Result<std::vector<std::string>> read_exclusions(std::string_view raw) {
  auto paths = TRY(read_strings(raw));
  for (const std::string& path : paths) {
    auto parts = split(path, '/');
    bool good =
        std::ranges::none_of(parts, [](std::string_view part) { return part.empty() || part == "." || part == ".."; });
    if (!good || path.find('\0') != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "{} is not a path from the root of a container, as in \"var/cache\"",
                  quote(path));
    }
  }
  return paths;
}

Result<void> read_bridges(std::string_view raw, Settings& settings) {
  settings.bridges.clear();
  for (const json::Member& member : TRY(json::parse_object(raw))) {
    TRY(check_interface(member.key));
    auto text = json::decode_string(member.value);
    auto network = text ? parse_ipv4_network(*text) : std::nullopt;
    if (!network) {
      return fail(ErrorCode::invalid_argument, "{}: expected an IPv4 network of /8 to /30, as in \"10.42.0.0/24\"",
                  quote(member.key));
    }
    settings.bridges[member.key] = *network;
  }
  return {};
}

Result<AgentSettings> read_agent(std::string_view raw, const Layout& layout) {
  AgentSettings agent;
  for (const json::Member& member : TRY(json::parse_object(raw))) {
    if (member.key == "uid") {
      agent.uid = static_cast<uid_t>(TRY_CONTEXT("uid", read_number(member.value, 1, 4'294'967'294)));
    } else if (member.key == "bind_sources") {
      agent.bind_sources = TRY_CONTEXT("bind_sources", read_sources(member.value, layout));
    } else {
      return fail(ErrorCode::invalid_argument, "unknown key {}; \"uid\" and \"bind_sources\" are known",
                  quote(member.key));
    }
  }
  return agent;
}

Result<void> read_agents(std::string_view raw, Settings& settings, const Layout& layout) {
  for (const json::Member& member : TRY(json::parse_object(raw))) {
    TRY(check_agent_container("h-" + member.key));
    settings.agents[member.key] = TRY_CONTEXT(quote(member.key), read_agent(member.value, layout));
  }
  return {};
}

Result<void> read_uids(std::string_view raw, Settings& settings) {
  for (const json::Member& member : TRY(json::parse_object(raw))) {
    if (member.key != "first" && member.key != "last") {
      return fail(ErrorCode::invalid_argument, "unknown key {}; \"first\" and \"last\" are known", quote(member.key));
    }
    auto uid = static_cast<uid_t>(TRY_CONTEXT(member.key, read_number(member.value, 1, 4'294'967'294)));
    (member.key == "first" ? settings.first_agent_uid : settings.last_agent_uid) = uid;
  }
  if (settings.first_agent_uid > settings.last_agent_uid) {
    return fail(ErrorCode::invalid_argument, "\"first\" is larger than \"last\"");
  }
  return {};
}

constexpr std::array keys = {
    Key{"peer_users",
        [](std::string_view raw, Settings& settings, const Layout&) -> Result<void> {
          settings.peer_users = TRY(read_strings(raw));
          return {};
        }},
    Key{"peer_groups",
        [](std::string_view raw, Settings& settings, const Layout&) -> Result<void> {
          settings.peer_groups = TRY(read_strings(raw));
          return {};
        }},
    Key{"bridges",
        [](std::string_view raw, Settings& settings, const Layout&) -> Result<void> {
          return read_bridges(raw, settings);
        }},
    Key{"bind_sources",
        [](std::string_view raw, Settings& settings, const Layout& layout) -> Result<void> {
          settings.bind_sources = TRY(read_sources(raw, layout));
          return {};
        }},
    Key{"bind_targets",
        [](std::string_view raw, Settings& settings, const Layout&) -> Result<void> {
          settings.bind_targets = TRY(read_targets(raw));
          return {};
        }},
    Key{"agents",
        [](std::string_view raw, Settings& settings, const Layout& layout) -> Result<void> {
          return read_agents(raw, settings, layout);
        }},
    Key{"agent_uids",
        [](std::string_view raw, Settings& settings, const Layout&) -> Result<void> {
          return read_uids(raw, settings);
        }},
    Key{"excluded",
        [](std::string_view raw, Settings& settings, const Layout&) -> Result<void> {
          settings.excluded = TRY(read_exclusions(raw));
          return {};
        }},
    Key{"excluded_distro",
        [](std::string_view raw, Settings& settings, const Layout&) -> Result<void> {
          settings.excluded_distro = TRY(read_exclusions(raw));
          return {};
        }},
    Key{"allow_host_network",
        [](std::string_view raw, Settings& settings, const Layout&) -> Result<void> {
          auto allowed = json::decode_boolean(raw);
          if (!allowed) return fail(ErrorCode::invalid_argument, "expected true or false");
          settings.allow_host_network = *allowed;
          return {};
        }},
    Key{"keep_free_percent",
        [](std::string_view raw, Settings& settings, const Layout&) -> Result<void> {
          settings.keep_free_percent = TRY(read_number(raw, 1, 90));
          return {};
        }},
    Key{"max_kept_roots",
        [](std::string_view raw, Settings& settings, const Layout&) -> Result<void> {
          settings.max_kept_roots = TRY(read_number(raw, 1, 1000));
          return {};
        }},
    Key{"max_salvage_entries",
        [](std::string_view raw, Settings& settings, const Layout&) -> Result<void> {
          settings.max_salvage_entries = TRY(read_number(raw, 1, 1'000'000'000));
          return {};
        }},
    Key{"max_salvage_seconds",
        [](std::string_view raw, Settings& settings, const Layout&) -> Result<void> {
          settings.max_salvage_time = std::chrono::seconds(TRY(read_number(raw, 1, 86'400)));
          return {};
        }},
    Key{"idle_exit_seconds",
        [](std::string_view raw, Settings& settings, const Layout&) -> Result<void> {
          settings.idle_exit = std::chrono::seconds(TRY(read_number(raw, 1, 86'400)));
          return {};
        }},
};

}  // namespace

Settings Settings::defaults(const Layout& layout) {
  Settings settings;
  settings.bind_sources = {layout.agents_dir + "/{agent}", "/var/lib/hyperhive/shared"};
  settings.bind_targets = {"/agents/{agent}/", "/home/{agent}/.claude", "/run/hive", "/shared"};
  settings.excluded = {"tmp", "var/tmp",   "var/cache",       "run",       "proc", "sys", "dev",
                       "nix", "var/empty", "var/log/journal", "lost+found"};
  for (std::string_view home : {"home/*/", "root/"}) {
    for (std::string_view cache :
         {".cache", ".npm/_cacache", ".cargo/registry", ".cargo/git", "go/pkg/mod", ".local/share/Trash"}) {
      settings.excluded.push_back(fmt::format("{}{}", home, cache));
    }
  }
  // What a fresh root has from its template. /usr/local is not of them: what lies there was put there by hand.
  settings.excluded_distro = {"bin",         "sbin",      "lib",        "lib32",       "lib64",
                              "libx32",      "boot",      "usr/bin",    "usr/sbin",    "usr/lib",
                              "usr/lib32",   "usr/lib64", "usr/libx32", "usr/share",   "usr/include",
                              "usr/libexec", "usr/src",   "usr/games",  "var/lib/apt", "var/lib/dpkg"};
  return settings;
}

std::vector<std::string> Settings::sources_of(std::string_view agent) const {
  std::vector<std::string> sources;
  for (const std::string& source : bind_sources)
    sources.push_back(for_agent(source, agent));
  if (auto own = agents.find(agent); own != agents.end()) {
    for (const std::string& source : own->second.bind_sources)
      sources.push_back(for_agent(source, agent));
  }
  return sources;
}

std::optional<std::string> Settings::shared_folder_above(std::string_view path) const {
  for (const std::string& source : bind_sources) {
    if (source.find(agent_mark) == std::string::npos && path != source && is_at_or_below(path, source)) return source;
  }
  return std::nullopt;
}

std::vector<std::string> Settings::targets_of(std::string_view agent) const {
  std::vector<std::string> targets;
  for (const std::string& target : bind_targets)
    targets.push_back(for_agent(target, agent));
  return targets;
}

std::optional<uid_t> Settings::uid_of(std::string_view agent) const {
  auto own = agents.find(agent);
  return own == agents.end() ? std::nullopt : own->second.uid;
}

Result<Settings> parse_settings(std::string_view text, const Layout& layout) {
  Settings settings = Settings::defaults(layout);
  json::Limits limits{.max_bytes = max_settings_bytes, .max_depth = 16, .max_values = 10'000};
  for (const json::Member& member : TRY(json::parse_object(text, limits))) {
    auto key = std::ranges::find(keys, std::string_view(member.key), &Key::name);
    if (key == keys.end()) {
      std::vector<std::string_view> known;
      for (const Key& candidate : keys)
        known.push_back(candidate.name);
      auto meant = nearest_name(member.key, known);
      return fail(ErrorCode::invalid_argument, "unknown key {}{}", quote(member.key),
                  meant ? fmt::format("; is \"{}\" meant?", *meant) : std::string());
    }
    TRY_CONTEXT(member.key, key->read(member.value, settings, layout));
  }
  return settings;
}

Result<Settings> load_settings(const Layout& layout) {
  UniqueFd anchor = TRY(open_anchor(layout));
  // A link is followed: the folder is root's, and distributions such as NixOS put links there.
  UniqueFd file(::openat(anchor.get(), layout.settings_file.c_str() + 1, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  std::string shown = layout.shown(layout.settings_file);
  if (!file && errno == ENOENT) return Settings::defaults(layout);
  if (!file) return std::unexpected(system_error(errno, shown));
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return std::unexpected(system_error(errno, shown));
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::invalid_argument, "{} is not a regular file", shown);
  if (status.st_uid != 0 || (status.st_mode & 022) != 0) {
    return fail(ErrorCode::permission_denied,
                "{} may be written by others than root; run: chown root {} && chmod 644 {}", shown, shown, shown);
  }
  std::string text = TRY(read_all(file.get(), shown, max_settings_bytes));
  return TRY_CONTEXT(shown, parse_settings(text, layout));
}

bool belongs_to_the_host(std::string_view path, const Layout& layout) {
  const std::array<std::string_view, 20> own = {layout.conf_dir,
                                                layout.roots_dir,
                                                layout.state_dir,
                                                layout.run_dir,
                                                layout.nix_profiles_dir,
                                                layout.settings_file,
                                                "/bin",
                                                "/boot",
                                                "/dev",
                                                "/etc",
                                                "/lib",
                                                "/nix",
                                                "/proc",
                                                "/root",
                                                "/run/systemd",
                                                "/run/dbus",
                                                "/sbin",
                                                "/sys",
                                                "/usr",
                                                "/var/log"};
  return std::ranges::any_of(
      own, [&](std::string_view folder) { return is_at_or_below(path, folder) || is_at_or_below(folder, path); });
}

}  // namespace hive::priv
