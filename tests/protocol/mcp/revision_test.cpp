#include "protocol/mcp/revision.h"

#include <gtest/gtest.h>

namespace hive::mcp {
namespace {

TEST(RevisionTest, KnowsEveryRevisionByItsName) {
  ASSERT_EQ(all_revisions().size(), 5U);
  for (Revision revision : all_revisions())
    EXPECT_EQ(revision_from_string(to_string(revision)), revision);
  EXPECT_EQ(to_string(newest), "2026-07-28");
  EXPECT_EQ(to_string(newest_legacy), "2025-11-25");
}

TEST(RevisionTest, KnowsNoOtherName) {
  for (std::string_view name : {"", "2026-07-29", "2026-07-28 ", "DRAFT-2026-v1", "2025"})
    EXPECT_EQ(revision_from_string(name), std::nullopt) << name;
}

TEST(RevisionTest, ComparesByAgeAndTellsTheErasApart) {
  EXPECT_LT(Revision::v2024_11_05, Revision::v2025_03_26);
  EXPECT_FALSE(is_modern(newest_legacy));
  EXPECT_TRUE(is_modern(newest));
}

}  // namespace
}  // namespace hive::mcp
