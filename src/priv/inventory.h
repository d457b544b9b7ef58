#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "priv/site.h"

/// What hive-priv and nspawn have left on the disk, for people to see and for the janitor.
namespace hive::priv {

/// A salvage or an old root.
struct KeptTree {
  std::string name;
  std::string path;
  std::uint64_t bytes = 0;  ///< of files, as far as the walk went
  std::uint64_t entries = 0;
  bool counted_all = true;  ///< false where the walk reached its bound
};

/// The salvages in an agent's work folder, the newest thousand. Empty where there is no such folder.
Result<std::vector<KeptTree>> list_salvages(const Site& site, const std::string& container);

/// The old roots of a container that are kept.
Result<std::vector<KeptTree>> list_old_roots(const Site& site, const std::string& container);

/// Something that nobody needs any more: the snapshot of a container that was killed, or a salvage that was never
/// finished.
struct Leftover {
  std::string kind;  ///< "snapshot" or "staging"
  std::string container;
  std::string path;
  bool removed = false;
  std::string problem;  ///< why it could not be removed; for the journal
};

/// Finds leftovers, and removes them if asked. What a running container or an unfinished switch uses is none; an
/// agent's data never is.
Result<std::vector<Leftover>> find_leftovers(const Site& site, bool remove);

}  // namespace hive::priv
