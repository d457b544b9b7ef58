#pragma once

#include <optional>
#include <string>
#include <vector>

#include "priv/conf_file.h"
#include "priv/refusal.h"
#include "priv/request.h"
#include "priv/site.h"

namespace hive::priv {

/// Reads the configuration of a container. It may be a link, as NixOS makes them into its store: the folder is root's
/// alone, and so must the file be. not_found if there is none.
Result<ConfFile> read_container_conf(int conf_dir, const Layout& layout, const std::string& container);

/// The flags that the owner of the host gives a container beyond those that hive-priv writes: the words of NAME.extra,
/// beside the configuration, owned by root. No file, no flags.
Result<std::vector<std::string>> read_extra_flags(int conf_dir, const Layout& layout, const std::string& container);

/// What hive-priv writes into a configuration.
struct ContainerPlan {
  const std::vector<Bind>& binds;
  const std::optional<Isolation>& isolation;
  std::string machine_id;
  std::string local_address;  ///< with isolation
  std::vector<std::string> extra_flags;
};

/// The configuration with the keys of the plan; every other key keeps its bytes and its place. Reads its own text again
/// and fails if that doesn't say exactly this.
Result<ConfFile> with_plan(const ConfFile& old, const ContainerPlan& plan);

/// Replaces the configuration in one step (a link is replaced, not followed) and reads it again.
Result<void> write_container_conf(const Site& site, const std::string& container, const ConfFile& conf);

}  // namespace hive::priv
