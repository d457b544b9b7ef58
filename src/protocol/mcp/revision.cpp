#include "protocol/mcp/revision.h"

#include <array>
#include <cstddef>

namespace hive::mcp {

namespace {

constexpr std::array<std::string_view, 5> names = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25",
                                                   "2026-07-28"};
constexpr std::array<Revision, 5> revisions = {Revision::v2024_11_05, Revision::v2025_03_26, Revision::v2025_06_18,
                                               Revision::v2025_11_25, Revision::v2026_07_28};

}  // namespace

std::string_view to_string(Revision revision) {
  return names[static_cast<std::size_t>(revision)];
}

std::optional<Revision> revision_from_string(std::string_view name) {
  for (Revision revision : revisions) {
    if (to_string(revision) == name) return revision;
  }
  return std::nullopt;
}

std::span<const Revision> all_revisions() {
  return revisions;
}

}  // namespace hive::mcp
