#include "priv/container_conf.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "priv/beneath.h"

namespace hive::priv {

namespace {

constexpr size_t max_extra_bytes = size_t{16} << 10;
constexpr std::string_view flags_key = "EXTRA_NSPAWN_FLAGS";
constexpr std::array<std::string_view, 3> cleared_keys = {"HOST_ADDRESS6", "LOCAL_ADDRESS6", "HOST_PORT"};
constexpr std::array<std::string_view, 2> network_keys = {"HOST_BRIDGE", "HOST_ADDRESS"};
// The start of a container or hive-priv itself gives these; a second one would say something else.
constexpr std::array<std::string_view, 8> own_flags = {"--ephemeral", "-x",      "--uuid",    "--link-journal",
                                                       "--directory", "--image", "--machine", "--template"};

// Opens a file in the folder of the configurations that only root can have made.
Result<UniqueFd> open_roots_file(int conf_dir, const Layout& layout, const std::string& name) {
  std::string shown = fmt::format("{}/{}", layout.conf_dir, name);
  UniqueFd file(::openat(conf_dir, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) return std::unexpected(system_error(errno, shown));
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::permission_denied, "{} is not a regular file", shown);
  if (status.st_uid != 0 || (status.st_mode & 022) != 0) {
    return fail(ErrorCode::permission_denied, "{} may be written by others than root (uid {}, mode {:04o})", shown,
                status.st_uid, status.st_mode & 07777);
  }
  return file;
}

std::string conf_name(const std::string& container) {
  return container + ".conf";
}

std::string nspawn_flags(const ContainerPlan& plan) {
  std::string flags =
      fmt::format("--ephemeral --link-journal=no --uuid={} --drop-capability=CAP_LINUX_IMMUTABLE", plan.machine_id);
  for (const Bind& bind : plan.binds) {
    flags += fmt::format(" {}={}:{}", bind.read_only ? "--bind-ro" : "--bind", bind.host_path, bind.container_path);
  }
  for (const std::string& flag : plan.extra_flags)
    flags += " " + flag;
  return flags;
}

// The keys that the plan owns; an absent value means that the key must be gone.
std::map<std::string_view, std::optional<std::string>> planned_keys(const ContainerPlan& plan) {
  std::map<std::string_view, std::optional<std::string>> keys;
  for (std::string_view key : cleared_keys)
    keys[key] = std::nullopt;
  keys[flags_key] = nspawn_flags(plan);
  if (plan.isolation) {
    keys["PRIVATE_NETWORK"] = "1";
    keys["HOST_BRIDGE"] = plan.isolation->bridge;
    keys["HOST_ADDRESS"] = plan.isolation->gateway_ip;
    keys["LOCAL_ADDRESS"] = plan.local_address;
  } else {
    keys["PRIVATE_NETWORK"] = "0";
    keys["LOCAL_ADDRESS"] = std::nullopt;
    for (std::string_view key : network_keys)
      keys[key] = std::nullopt;
  }
  return keys;
}

}  // namespace

Result<ConfFile> read_container_conf(int conf_dir, const Layout& layout, const std::string& container) {
  UniqueFd file = TRY(open_roots_file(conf_dir, layout, conf_name(container)));
  std::string shown = fmt::format("{}/{}", layout.conf_dir, conf_name(container));
  std::string text = TRY(read_all(file.get(), shown, ConfFile::max_bytes));
  return TRY_CONTEXT(shown, ConfFile::parse(text));
}

Result<std::vector<std::string>> read_extra_flags(int conf_dir, const Layout& layout, const std::string& container) {
  std::string name = container + ".extra";
  auto file = open_roots_file(conf_dir, layout, name);
  if (!file && file.error().code == ErrorCode::not_found) return std::vector<std::string>();
  if (!file) return std::unexpected(file.error());
  std::string text = TRY(read_all(file->get(), name, max_extra_bytes));
  std::ranges::replace_if(text, [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  std::vector<std::string> flags;
  for (std::string_view word : split(text, ' ')) {
    if (word.empty()) continue;
    bool plain = word.starts_with("--") && std::ranges::all_of(word, [](char c) {
                   return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("-_./:=,@%+").find(c) != std::string_view::npos;
                 });
    if (!plain) {
      return fail(ErrorCode::invalid_argument, "{}/{}: {} is not a flag of nspawn in plain characters", layout.conf_dir,
                  name, quote(word.substr(0, 64)));
    }
    if (std::ranges::find(own_flags, word.substr(0, word.find('='))) != own_flags.end()) {
      return fail(ErrorCode::invalid_argument, "{}/{}: hive-priv and the unit set {} themselves", layout.conf_dir, name,
                  word);
    }
    flags.emplace_back(word);
  }
  return flags;
}

Result<ConfFile> with_plan(const ConfFile& old, const ContainerPlan& plan) {
  auto keys = planned_keys(plan);
  ConfFile conf = old;
  for (const auto& [key, value] : keys) {
    if (value) {
      if (conf.value(key) != *value) conf.set(key, *value);
    } else {
      conf.remove(key);
    }
  }
  ConfFile again = TRY_CONTEXT("the new configuration", ConfFile::parse(conf.text()));
  auto foreign = [&](const ConfFile& file) {
    std::vector<std::pair<std::string, std::string>> others;
    for (const auto& [key, value] : file.assignments()) {
      if (!keys.contains(key)) others.emplace_back(key, value);
    }
    return others;
  };
  bool same = foreign(again) == foreign(old) && std::ranges::all_of(keys, [&](const auto& planned) {
                auto read = again.value(planned.first);
                return read.has_value() == planned.second.has_value() && (!read || *read == *planned.second);
              });
  if (!same) return fail(ErrorCode::internal, "the new configuration doesn't read as it was meant");
  return conf;
}

Result<void> write_container_conf(const Site& site, const std::string& container, const ConfFile& conf) {
  std::string text = conf.text();
  TRY(replace_file(site.conf.get(), conf_name(container), text, 0644));
  UniqueFd file = TRY(open_roots_file(site.conf.get(), site.layout, conf_name(container)));
  if (TRY(read_all(file.get(), conf_name(container), ConfFile::max_bytes)) != text) {
    return fail(ErrorCode::internal, "{} doesn't hold what was written", conf_name(container));
  }
  return {};
}

}  // namespace hive::priv
