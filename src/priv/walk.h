#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/stat.h>

#include "base/clock.h"
#include "base/result.h"
#include "priv/exclusions.h"

namespace hive::priv {

/// Bounds of a walk through a tree that somebody hostile has made.
struct WalkLimits {
  size_t max_depth = 400;  ///< every level holds descriptors open
  std::uint64_t max_entries = 5'000'000;
  SteadyTime deadline = SteadyTime::max();
  const std::atomic<bool>* cancelled = nullptr;  ///< ends the walk with ErrorCode::cancelled
};

/// One entry of the tree while the walk stands on it.
struct WalkEntry {
  int fd = -1;              ///< O_PATH descriptor of the entry itself, a link included
  std::string_view name;    ///< last part
  const std::string& path;  ///< from the root of the walk; bytes as somebody hostile chose them
  const struct stat& status;
};

/// What to do after an entry was seen.
enum class WalkStep {
  go_on,  ///< into it, if it is a folder
  skip,   ///< not into it
  stop,   ///< end the walk; it has succeeded
};

/// What a walk calls. An error ends the walk and becomes its result.
class WalkVisitor {
 public:
  virtual ~WalkVisitor() = default;
  virtual Result<WalkStep> enter(const WalkEntry& entry) = 0;
  /// Behind everything in a folder that was gone into.
  virtual Result<void> leave(const WalkEntry& folder) {
    static_cast<void>(folder);
    return {};
  }
};

/// Walks a tree depth first, without recursion and by descriptor: no link is followed, no mount entered (both
/// permission_denied), no device or pipe opened. An entry that vanishes meanwhile is passed over. `root` is a folder
/// open for reading or O_PATH; it is not an entry itself.
Result<void> walk_tree(int root, const Exclusions& exclusions, const WalkLimits& limits, WalkVisitor& visitor);

/// Removes the entry `name` of `folder` and everything below it, by descriptor. Nothing there is fine. With
/// `clear_immutable` the immutable and append-only flags that are in the way are cleared.
Result<void> remove_tree(int folder, const std::string& name, const WalkLimits& limits, bool clear_immutable = false);

}  // namespace hive::priv
