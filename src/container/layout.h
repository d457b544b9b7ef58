#pragma once

#include <string>
#include <string_view>

namespace hive::container {

/// Where everything of a container lies. `prefix` stands before each path, so that tests work in a folder of their own;
/// it is empty on a real host. Names and ids must have been checked (names.h).
struct Layout {
  std::string prefix;

  [[nodiscard]] std::string at(std::string_view path) const { return prefix + std::string(path); }

  [[nodiscard]] std::string conf_folder() const { return at("/etc/nixos-containers"); }
  [[nodiscard]] std::string conf(std::string_view name) const {
    return conf_folder() + "/" + std::string(name) + ".conf";
  }
  [[nodiscard]] std::string roots() const { return at("/var/lib/nixos-containers"); }
  [[nodiscard]] std::string root(std::string_view name) const { return roots() + "/" + std::string(name); }
  /// Of hive-container: what it knows of its containers, and their pristine roots.
  [[nodiscard]] std::string state() const { return at("/var/lib/hive-container"); }
  [[nodiscard]] std::string record(std::string_view name) const { return state() + "/" + std::string(name) + ".json"; }
  [[nodiscard]] std::string templates() const { return state() + "/templates"; }
  [[nodiscard]] std::string template_root(std::string_view name) const { return templates() + "/" + std::string(name); }
  [[nodiscard]] std::string agent(std::string_view id) const {
    return at("/var/lib/hyperhive/agents/") + std::string(id);
  }
  /// What the start helper makes anew at every start.
  [[nodiscard]] std::string run_folder(std::string_view name) const {
    return at("/run/hive-container/") + std::string(name);
  }
  [[nodiscard]] std::string unit_drop_ins(std::string_view name) const {
    return at("/etc/systemd/system/container@") + std::string(name) + ".service.d";
  }
};

}  // namespace hive::container
