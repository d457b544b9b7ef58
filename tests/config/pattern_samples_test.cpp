#include "config/pattern_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/pattern.h"

namespace hive::config {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(OutlinePattern, ListsAllTextsOfAFinitePattern) {
  std::optional<PatternOutline> outline = outline_pattern("^(status|restart) (nginx|postgresql)$");
  ASSERT_TRUE(outline);
  EXPECT_EQ(outline->finite_count, 4U);
  EXPECT_THAT(outline->samples,
              UnorderedElementsAre("status nginx", "status postgresql", "restart nginx", "restart postgresql"));
  EXPECT_THAT(outline->alternatives, IsEmpty());
}

TEST(OutlinePattern, KnowsOptionalParts) {
  std::optional<PatternOutline> outline = outline_pattern("(-s (reload|quit))?");
  ASSERT_TRUE(outline);
  EXPECT_THAT(outline->samples, UnorderedElementsAre("", "-s reload", "-s quit"));
  EXPECT_EQ(outline->finite_count, 3U);
}

TEST(OutlinePattern, CountsNothingThatItDoesNotList) {
  for (std::string_view pattern : {"[a-z]+", ".*", "\\d{1,5}", "a*", "(?i)status", "[^x]"}) {
    std::optional<PatternOutline> outline = outline_pattern(pattern);
    ASSERT_TRUE(outline) << pattern;
    EXPECT_FALSE(outline->finite_count) << pattern;
  }
}

TEST(OutlinePattern, TellsTheAlternativesOfTheOutermostLevel) {
  EXPECT_THAT(outline_pattern("^status|(a|b)|logs$")->alternatives, ElementsAre("^status", "(a|b)", "logs$"));
}

TEST(OutlinePattern, PutsEveryAlternativeIntoASample) {
  std::optional<PatternOutline> outline =
      outline_pattern("http://(localhost|127\\.0\\.0\\.1|a\\.b)(:\\d{1,5})?/[a-z]*");
  ASSERT_TRUE(outline);
  for (std::string_view host : {"//localhost", "//127.0.0.1", "//a.b"}) {
    EXPECT_THAT(outline->samples, Contains(HasSubstr(std::string(host))));
  }
}

TEST(OutlinePattern, MakesSamplesThatMatch) {
  for (std::string_view pattern :
       {"a{3}",     "a{2,}",    "x{0,2}y",  "[[:alpha:]]+", "[]a]",      "[^a-z]",   "[a\\-z]", "\\Qa.b\\E",
        "(?:a|b)c", "(?P<n>a)", "(?i:Abc)", "a{b",          "\\.\\/\\-", "[\\w.-]+", "\\s",     "a??b",
        "\\Aab\\z", ".",        "a.c",      "\\S+ \\d+",    "[0-9]{1,3}"}) {
    Result<Pattern> compiled = Pattern::compile(pattern);
    ASSERT_TRUE(compiled) << pattern;
    std::optional<PatternOutline> outline = outline_pattern(pattern);
    ASSERT_TRUE(outline) << pattern;
    ASSERT_FALSE(outline->samples.empty()) << pattern;
    for (const std::string& sample : outline->samples) {
      EXPECT_TRUE(compiled->admits(sample)) << pattern << " " << sample;
    }
  }
}

TEST(OutlinePattern, GivesUpOnWhatItDoesNotKnow) {
  for (std::string_view pattern :
       {"\\pL", "\\x41", "(", "a)", "*", "[a", "[é]", "[[:alpha8]]+", "[^\\d\\D]+", "a[^\\s\\S]{2,3}b"}) {
    EXPECT_FALSE(outline_pattern(pattern)) << pattern;
  }
}

TEST(OutlinePattern, StaysSmallWhateverThePatternIs) {
  std::string nested = std::string(40, '(') + "a|b" + std::string(40, ')');
  EXPECT_TRUE(outline_pattern(nested));
  EXPECT_FALSE(outline_pattern(std::string(1000, '(') + "a" + std::string(1000, ')')));
  std::string growing = "a";
  for (int i = 0; i < 20; ++i) {
    growing = "(?:" + growing + "){30}";
  }
  EXPECT_FALSE(outline_pattern(growing));
  std::string wide;
  for (int i = 0; i < 500; ++i) {
    wide += "(a|b)?";
  }
  std::optional<PatternOutline> outline = outline_pattern(wide);
  ASSERT_TRUE(outline);
  EXPECT_LE(outline->samples.size(), 64U);
}

}  // namespace
}  // namespace hive::config
