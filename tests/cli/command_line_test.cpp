#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hive::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() {
    app_.add_option("--url", value_);
    app_.add_flag("--insecure", flag_);
    app_.add_option("-o,--output", value_);
    CLI::App* call = app_.add_subcommand("call");
    call->add_option("-a,--arguments", value_);
    call->add_option("words", words_);
    app_.add_subcommand("status");
    app_.add_subcommand("__hidden")->group("");
    options_ = all_options(app_);
  }

  Words current(const Words& words) { return with_current_spelling(words, options_); }

  CLI::App app_{"test"};
  std::string value_;
  bool flag_ = false;
  Words words_;
  std::vector<KnownOption> options_;
};

TEST_F(CommandLineTest, OneDashBecomesTwoForKnownLongNames) {
  EXPECT_THAT(current({"-url", "x", "-insecure", "-output=json", "status"}),
              ElementsAre("--url", "x", "--insecure", "--output=json", "status"));
  EXPECT_THAT(current({"-ojson", "-unknown", "-"}), ElementsAre("-ojson", "-unknown", "-"));
}

TEST_F(CommandLineTest, AShortOptionWithEqualsIsTakenApart) {
  EXPECT_THAT(current({"call", "-o=json", "-a={\"x\":\"a=b\"}"}),
              ElementsAre("call", "-o", "json", "-a", "{\"x\":\"a=b\"}"));
}

TEST_F(CommandLineTest, ValuesOfOptionsStayAsTheyAre) {
  EXPECT_THAT(current({"--url", "-insecure", "-a", "-url"}), ElementsAre("--url", "-insecure", "-a", "-url"));
}

TEST_F(CommandLineTest, WordsBehindTwoDashesStayAsTheyAre) {
  EXPECT_THAT(current({"call", "--", "-url", "x"}), ElementsAre("call", "--", "-url", "x"));
  EXPECT_THAT(current({"call", "--", "a=1"}), ElementsAre("call", "a=1"));
}

TEST_F(CommandLineTest, FindsTheOperands) {
  EXPECT_THAT(positional_words(Words{"--url", "x", "call", "-a", "{}", "t", "--insecure", "k=v", "--", "z"}, options_),
              ElementsAre(2, 5, 7));
}

TEST_F(CommandLineTest, ChecksTheCommandBehindTheOptions) {
  EXPECT_TRUE(check_command(app_, Words{"--url", "nonsense", "status"}, options_));
  EXPECT_TRUE(check_command(app_, Words{"--url", "nonsense"}, options_));
  EXPECT_TRUE(check_command(app_, Words{"__hidden"}, options_));
  EXPECT_THAT(check_command(app_, Words{"-o", "json", "cal"}, options_).error().message, HasSubstr("\"call\""));
  EXPECT_THAT(check_command(app_, Words{"__hiddn"}, options_).error().message, Not(HasSubstr("__hidden")));
  EXPECT_THAT(check_command(app_, Words{"zzzzzzzz"}, options_).error().message, HasSubstr("myrmex help"));
}

TEST_F(CommandLineTest, ChecksTheCommandsOfACommand) {
  CLI::App* audit = app_.add_subcommand("audit");
  audit->add_subcommand("verify");
  EXPECT_TRUE(check_command(app_, Words{"audit"}, options_));
  EXPECT_TRUE(check_command(app_, Words{"audit", "verify", "more"}, options_));
  EXPECT_EQ(check_command(app_, Words{"audit", "-o", "json", "verfy"}, options_).error().message,
            "unknown command \"audit verfy\"; did you mean \"audit verify\"?");
}

}  // namespace
}  // namespace hive::cli
