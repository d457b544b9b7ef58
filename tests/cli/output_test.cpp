#include "cli/output.h"

#include <cerrno>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unique_fd.h"

namespace hive::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Table, PadsColumnsByThreeSpacesAndLeavesNoneAtTheEnd) {
  Table table({"A", "LONG", "C"});
  table.add({"1", "2", "3"});
  table.add({"four", "five", ""});
  EXPECT_EQ(table.render(0, false), "A      LONG   C\n1      2      3\nfour   five\n");
}

TEST(Table, EscapesWhatCouldSteerTheTerminal) {
  Table table({"ID"});
  table.add({"\x1b]52;c;ZXZpbA==\x07\x1b[2J\rspoof\nrow"});
  std::string text = table.render(0, false);
  EXPECT_EQ(text, "ID\n\\x1b]52;c;ZXZpbA==\\x07\\x1b[2J\\rspoof\\nrow\n");
}

TEST(Table, CutsTheLastColumnToTheTerminal) {
  Table table({"ID", "DESCRIPTION"});
  table.add({"edge-1", "a description that is longer than the line"});
  std::string text = table.render(30, false);
  EXPECT_EQ(text, "ID       DESCRIPTION\nedge-1   a description that...\n");
}

TEST(Table, CountsWideAndCombiningCharactersAsTheTerminalDoes) {
  Table table({"NAME", "X"});
  table.add({"日本", "1"});
  table.add({"e\u0301a", "2"});
  EXPECT_EQ(table.render(0, false), "NAME   X\n日本   1\ne\u0301a     2\n");
}

TEST(CutToWidth, NeverCutsACodePoint) {
  EXPECT_EQ(cut_to_width("äöüäöü", 5), "äö...");
  EXPECT_EQ(cut_to_width("日本語日本語", 6), "日...");
  EXPECT_EQ(cut_to_width("short", 5), "short");
  EXPECT_EQ(cut_to_width("longer", 2), "..");
  EXPECT_EQ(cut_to_width("longer", 0), "");
}

TEST(CutList, SaysHowManyItemsAreLeftOut) {
  EXPECT_EQ(cut_list({"22", "80", "443"}, ",", 9), "22,80,443");
  EXPECT_EQ(cut_list({"22", "80", "443", "8080"}, ",", 13), "22,80 +2 more");
  EXPECT_EQ(cut_list({"22", "80"}, ",", 3), "2 items");
  EXPECT_EQ(cut_list({}, ",", 3), "");
}

TEST(Styled, UsesColourOnlyWhenAskedTo) {
  EXPECT_EQ(styled("x", Style::bad, false), "x");
  EXPECT_EQ(styled("x", Style::bad, true), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(styled("x", Style::plain, true), "x");
}

TEST(Output, RemembersAWriteThatFailed) {
  UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(full);
  Output output(full.get(), STDERR_FILENO);
  output.write("text");
  EXPECT_EQ(output.write_error(), ENOSPC);
  EXPECT_FALSE(output.is_terminal());
  EXPECT_EQ(output.width(), 0U);
}

}  // namespace
}  // namespace hive::cli
