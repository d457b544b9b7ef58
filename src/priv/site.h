#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "priv/layout.h"
#include "priv/settings.h"
#include "priv/units.h"
#include "priv/walk.h"

namespace hive::priv {

/// The room on a file system.
struct DiskSpace {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;
};

/// What fstatvfs says of the file system that a folder lies on.
Result<DiskSpace> measure_disk(int folder);

/// The steps of a switch, in their order. After each of them the program may die.
enum class SwitchStep {
  recorded,        ///< what will be done stands in the state folder
  staged,          ///< the folder for the copy is there
  copied,          ///< the salvage is complete under its temporary name
  nix_carried,     ///< links of the nix profile are on the host
  id_noted,        ///< the machine id stands in the state folder
  ready,           ///< the record says that the copy is complete
  root_renamed,    ///< the old root has its last name
  root_made,       ///< there is a new root
  salvage_moved,   ///< the salvage has its last name
  conf_written,    ///< the configuration asks for --ephemeral
  record_removed,  ///< nothing is left to do
};

/// What of the host a test replaces.
struct Host {
  const Clock& clock;
  Units& units;
  std::function<Result<DiskSpace>(int folder)> disk_space = measure_disk;
  std::function<void(SwitchStep)> at_step = [](SwitchStep) {};
  const std::atomic<bool>* stopping = nullptr;
  bool may_clone = true;
};

/// The folders that a request works in, opened without following a link. A request opens its own: what is mounted may
/// change between two.
struct Site {
  const Layout& layout;
  const Settings& settings;
  Host& host;
  UniqueFd anchor;
  UniqueFd conf;
  UniqueFd roots;
  UniqueFd state;

  static Result<Site> open(const Layout& layout, const Settings& settings, Host& host);

  [[nodiscard]] WalkLimits walk_limits() const;
  /// A folder of the state folder, made if need be; for root alone.
  [[nodiscard]] Result<UniqueFd> state_folder(const std::string& name) const;
  /// Holds the lock `name` until the descriptor is closed; `unavailable` if somebody else holds it for longer than
  /// `patience`.
  [[nodiscard]] Result<UniqueFd> lock(const std::string& name, std::chrono::milliseconds patience) const;
};

/// The lock that is held while the root of `container` is switched; check-rootfs refuses a start meanwhile.
std::string switch_lock_name(std::string_view container);

/// Whether somebody holds a lock. False where the lock was never made.
Result<bool> is_locked(int anchor, const Layout& layout, const std::string& name);

/// The lock that nspawn takes on the root `name` of `roots` (make_lock_file of systemd: .#NAME.lck, an OFD lock): held
/// by a container that was started around its unit. `unavailable` if it is held.
Result<UniqueFd> lock_image(int roots, const std::string& name);

}  // namespace hive::priv
