#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace hive::mcp {

/// The revisions of the Model Context Protocol, oldest first, so that they compare by age.
enum class Revision : std::uint8_t { v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28 };

std::string_view to_string(Revision revision);
std::optional<Revision> revision_from_string(std::string_view name);
std::span<const Revision> all_revisions();

/// Revisions with initialize and sessions are legacy; from 2026-07-28 on every request carries its own context.
constexpr bool is_modern(Revision revision) {
  return revision >= Revision::v2026_07_28;
}
inline constexpr Revision newest_legacy = Revision::v2025_11_25;
inline constexpr Revision newest = Revision::v2026_07_28;

}  // namespace hive::mcp
