#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "priv/site.h"

namespace hive::priv {

/// How the salvage of a switch ended.
enum class SalvageKind { none, done, skipped_low_disk };

std::string_view to_string(SalvageKind kind);

/// What a switch is about to do and has done: a small file in the state folder, so that the next request can finish
/// what a crash has cut short.
struct SwitchRecord {
  std::string staging;   ///< folder beside the agent's folders that holds the copy until it is handed over
  std::string salvage;   ///< last name of the copy in the agent's work folder
  std::string old_root;  ///< last name of the old root
  std::string guest_id;  ///< machine id that the old root had, for the journal's link; may be empty
  bool ready = false;    ///< the copy is complete, or was skipped; the root may be renamed
  SalvageKind kind = SalvageKind::none;
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t skipped_special = 0;
  std::uint64_t changed = 0;
  std::uint64_t cloned_files = 0;
  std::uint64_t nix_links = 0;

  bool operator==(const SwitchRecord&) const = default;
};

/// Writes the record of a container durably.
Result<void> save_record(const Site& site, const std::string& container, const SwitchRecord& record);

/// The record of an unfinished switch; nullopt if there is none. A record that isn't in order is an error and stays: a
/// person has to look.
Result<std::optional<SwitchRecord>> load_record(const Site& site, const std::string& container);

Result<void> remove_record(const Site& site, const std::string& container);

/// The text of a record, and back. The names in it are held against the forms that hive-priv gives them.
std::string format_record(const SwitchRecord& record);
Result<SwitchRecord> parse_record(std::string_view text, std::string_view container);

}  // namespace hive::priv
