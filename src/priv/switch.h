#pragma once

#include <optional>
#include <string>

#include "priv/conf_file.h"
#include "priv/refusal.h"
#include "priv/site.h"
#include "priv/switch_record.h"

/// The switch of a container from a root that persists to one that is thrown away. Its order makes every crash
/// harmless: the copy is complete before the old root moves, the old root is never changed, and the configuration asks
/// for
/// --ephemeral only when both have their last names.
namespace hive::priv {

/// Whether the root of the container holds something to save.
Result<bool> needs_switch(const Site& site, const std::string& container, const ConfFile& conf);

/// Does everything but writing the configuration and removing the record. The caller holds the container's lock and has
/// seen that it doesn't run.
Outcome<SwitchRecord> switch_root(const Site& site, const std::string& container, const ConfFile& conf);

/// Finishes or takes back what a crash has left: before the old root was renamed, the unfinished copy is removed and
/// nullopt returned; after that, the rest is done and the record returned.
Outcome<std::optional<SwitchRecord>> recover_switch(const Site& site, const std::string& container);

/// After the configuration is written.
Result<void> finish_switch(const Site& site, const std::string& container);

/// The old roots of a container that are kept, by name.
Result<std::vector<std::string>> kept_roots(const Site& site, const std::string& container);

}  // namespace hive::priv
