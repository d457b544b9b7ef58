#include "priv/conf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hive::priv {
namespace {

using namespace std::string_view_literals;
using ::testing::ElementsAre;

ConfFile parsed(std::string_view text) {
  auto conf = ConfFile::parse(text);
  EXPECT_TRUE(conf.has_value()) << (conf ? "" : conf.error().message);
  return conf.value_or(ConfFile());
}

TEST(ConfFileTest, ReadsValuesAsSystemdDoes) {
  ConfFile conf = parsed(
      "PLAIN=a b  \n"
      "QUOTED=\"two words\" \n"
      "SINGLE='it\\s $HOME'\n"
      "ESCAPED=\"a\\\"b\\\\c\\$d\\ne\"\n"
      "JOINED=one\\\ntwo\n"
      "LINES=\"first\nsecond\"\n"
      "MIDDLE=a\"b\"\n"
      "BESIDE=\"a\"'b'c\n"
      "EMPTY=\n"
      "  INDENTED =x\n"
      "TWICE=1\nTWICE=2\n"
      "LAST=end");
  EXPECT_EQ(conf.value("PLAIN"), "a b");
  EXPECT_EQ(conf.value("QUOTED"), "two words");
  EXPECT_EQ(conf.value("SINGLE"), "it\\s $HOME");
  EXPECT_EQ(conf.value("ESCAPED"), "a\"b\\c$d\\ne");
  EXPECT_EQ(conf.value("JOINED"), "onetwo");
  EXPECT_EQ(conf.value("LINES"), "first\nsecond");
  EXPECT_EQ(conf.value("MIDDLE"), "a\"b\"");
  EXPECT_EQ(conf.value("BESIDE"), "abc");
  EXPECT_EQ(conf.value("EMPTY"), "");
  EXPECT_EQ(conf.value("INDENTED"), "x");
  EXPECT_EQ(conf.value("TWICE"), "2");
  EXPECT_EQ(conf.value("LAST"), "end");
  EXPECT_EQ(conf.value("ABSENT"), std::nullopt);
}

TEST(ConfFileTest, KeepsEveryByteItDoesNotSet) {
  constexpr std::string_view text = "# a comment\n\n  ; another\nA='x'\n\nB=\"y\"\\\n z\nC=3";
  EXPECT_EQ(parsed(text).text(), text);
  ConfFile conf = parsed(text);
  conf.set("B", "new");
  conf.set("D", "4");
  EXPECT_EQ(conf.text(), "# a comment\n\n  ; another\nA='x'\n\nB=\"new\"\nC=3\nD=\"4\"\n");
}

TEST(ConfFileTest, SetsTheFirstAssignmentAndDropsTheOthers) {
  ConfFile conf = parsed("A=1\nB=2\nA=3\n# end\n");
  conf.set("A", "9");
  EXPECT_EQ(conf.text(), "A=\"9\"\nB=2\n# end\n");
  conf.remove("B");
  EXPECT_EQ(conf.text(), "A=\"9\"\n# end\n");
}

TEST(ConfFileTest, C06_AValueWithALineEndDoesNotBecomeAKey) {
  ConfFile conf = parsed("A=1\n");
  std::string hostile = "x\"\nSYSTEM_PATH=/evil\n\\";
  conf.set("B", hostile);
  ConfFile again = parsed(conf.text());
  EXPECT_EQ(again.value("B"), hostile);
  EXPECT_EQ(again.value("SYSTEM_PATH"), std::nullopt);
}

TEST(ConfFileTest, RefusesWhatCouldSwallowTheNextLine) {
  for (std::string_view bad :
       {"A=\"open\n"sv, "A='open\n"sv, "A=\"open\\\""sv, "A=x\\"sv, "A=x\\\n"sv, "# comment \\\nA=1\n"sv,
        "no assignment\n"sv, "=x\n"sv, "A B=1\n"sv, "1A=x\n"sv, "A=a\0b\n"sv}) {
    EXPECT_FALSE(ConfFile::parse(bad).has_value()) << bad;
  }
  EXPECT_EQ(ConfFile::parse("A=1\n\nB=\"\n").error().message, "line 3: a quote without an end");
  EXPECT_EQ(ConfFile::parse(std::string(ConfFile::max_bytes + 1, '\n')).error().code, ErrorCode::resource_exhausted);
}

TEST(ConfFileTest, SplitsTheFlagsOfNspawnAtBlanksAlone) {
  ConfFile conf = parsed("EXTRA_NSPAWN_FLAGS=\"--bind=/a:/b  --setenv=X=*\n--ephemeral\"\n");
  EXPECT_THAT(conf.nspawn_flags(), ElementsAre("--bind=/a:/b", "--setenv=X=*", "--ephemeral"));
  EXPECT_TRUE(conf.is_ephemeral());
  EXPECT_FALSE(parsed("EXTRA_NSPAWN_FLAGS=--bind=/x/--ephemeral:/y\n").is_ephemeral());
  EXPECT_FALSE(parsed("").is_ephemeral());
}

}  // namespace
}  // namespace hive::priv
