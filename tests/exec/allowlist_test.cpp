#include "exec/allowlist.h"

#include <chrono>

#include <gmock/gmock.h>

#include "exec/executable.h"
#include "runner_fixture.h"

namespace hive::exec {
namespace {

using Args = std::vector<std::string>;

config::AllowedCommand entry(std::string name, std::string pattern = "") {
  config::AllowedCommand command;
  command.name = std::move(name);
  command.args_regex = std::move(pattern);
  return command;
}

Allowlist compile(std::vector<config::AllowedCommand> entries) {
  auto allowlist = Allowlist::compile(entries);
  EXPECT_TRUE(allowlist) << allowlist.error().message;
  return *std::move(allowlist);
}

std::string refusal(const Allowlist& allowlist, std::string_view name, const Args& args) {
  auto refusal = allowlist.refusal_of(name, args);
  return refusal ? refusal->text : "admitted";
}

TEST(Allowlist, AdmitsACommandWithoutArguments) {
  Allowlist allowlist = compile({entry("uptime")});
  auto command = allowlist.check("uptime", {});
  ASSERT_TRUE(command) << command.error().text;
  EXPECT_EQ(command->path.front(), '/');
  EXPECT_TRUE(command->path.ends_with("/uptime"));
}

TEST(Allowlist, RefusesWhatIsNotListedAndSaysSoInTheContractsWords) {
  Allowlist allowlist = compile({entry("uptime")});
  auto command = allowlist.check("bash", Args{"-c", "whoami"});
  ASSERT_FALSE(command);
  EXPECT_TRUE(command.error().denied);
  EXPECT_EQ(command.error().reason, "not_allowlisted");
  EXPECT_THAT(command.error().text, testing::HasSubstr("is not in the approved allowlist"));
}

TEST(Allowlist, NamesAreComparedExactly) {
  Allowlist allowlist = compile({entry("uptime")});
  for (std::string name : {"Uptime", "uptime ", "/usr/bin/uptime", "uptim", "uptimes"})
    EXPECT_NE(refusal(allowlist, name, {}), "admitted") << name;
  EXPECT_NE(refusal(allowlist, std::string_view("uptime\0", 7), {}), "admitted");
}

TEST(Allowlist, AnEmptyPatternAdmitsNoArgumentAtAll) {
  Allowlist allowlist = compile({entry("uptime")});
  for (const Args& args : {Args{""}, Args{"-p"}, Args{"a", "b"}})
    EXPECT_THAT(refusal(allowlist, "uptime", args), testing::HasSubstr("does not allow arguments"));
}

TEST(Allowlist, TheWholeTextMustMatch) {
  Allowlist allowlist = compile({entry("echo", "hello")});
  EXPECT_EQ(refusal(allowlist, "echo", {"hello"}), "admitted");
  for (const Args& args : {Args{"hello!"}, Args{"xhello"}, Args{"hello", "world"}, Args{}, Args{"goodbye"}})
    EXPECT_THAT(refusal(allowlist, "echo", args), testing::HasSubstr("do not match the approved pattern"));
}

TEST(Allowlist, AnAlternationIsAnchoredAsAWhole) {
  Allowlist allowlist = compile({entry("systemctl", "^status|logs$")});
  EXPECT_EQ(refusal(allowlist, "systemctl", {"status"}), "admitted");
  EXPECT_EQ(refusal(allowlist, "systemctl", {"logs"}), "admitted");
  EXPECT_NE(refusal(allowlist, "systemctl", {"rm", "-rf", "/", "logs"}), "admitted");
  EXPECT_NE(refusal(allowlist, "systemctl", {"status", "x"}), "admitted");
}

TEST(Allowlist, SeveralArgumentsAreJoinedWithOneSpace) {
  Allowlist allowlist = compile({entry("systemctl", "(status|restart) (nginx|postgresql)")});
  EXPECT_EQ(refusal(allowlist, "systemctl", {"restart", "nginx"}), "admitted");
  EXPECT_NE(refusal(allowlist, "systemctl", {"restart", "sshd"}), "admitted");
  EXPECT_NE(refusal(allowlist, "systemctl", {"stop", "nginx"}), "admitted");
  EXPECT_NE(refusal(allowlist, "systemctl", {"restart", "nginx", "extra"}), "admitted");
}

TEST(Allowlist, ElementsWhoseBoundariesWouldBeLostAreRefused) {
  Allowlist allowlist = compile({entry("x", "(?s).*")});
  for (const std::string& element :
       {std::string("a b"), std::string("a\tb"), std::string("a\nb"), std::string("a\r"), std::string("a\0b", 3),
        std::string("a\x0b"), std::string("\x7f"), std::string("a\xc2\x85"), std::string("a\xe2\x80\xa8"),
        std::string("a\xc2\xa0z"), std::string("\xe2\x80\xae"), std::string("a\xff"), std::string()}) {
    EXPECT_THAT(refusal(allowlist, "x", {"ok", element}), testing::HasSubstr("argument 2 ")) << quote(element);
  }
  EXPECT_EQ(refusal(allowlist, "x", {"%{http_code}:%{time_total}", "caf\xc3\xa9"}), "admitted");
}

TEST(Allowlist, ATextThatEndsInALineBreakIsNotTheSameText) {
  Allowlist allowlist = compile({entry("systemctl", "^status [a-z]+$")});
  EXPECT_EQ(refusal(allowlist, "systemctl", {"status", "nginx"}), "admitted");
  for (std::string_view end : {"\n", "\r", "\v", "\xe2\x80\xa8"})
    EXPECT_NE(refusal(allowlist, "systemctl", {"status", "nginx" + std::string(end)}), "admitted");
  EXPECT_NE(refusal(allowlist, "systemctl", {"status", std::string("nginx\0", 6)}), "admitted");
}

TEST(Allowlist, APatternThatIsOnlyValidInsideAWrapperIsRefusedAtLoad) {
  for (std::string pattern : {"a)|(?:b", "(unclosed", "a**", "[z-a]", "(?<name", "\\"}) {
    std::vector entries = {entry("uptime"), entry("echo", pattern)};
    auto allowlist = Allowlist::compile(entries);
    ASSERT_FALSE(allowlist) << pattern;
    EXPECT_THAT(allowlist.error().message, testing::HasSubstr("allowed_commands[1] (\"echo\"): args_regex"));
    EXPECT_THAT(allowlist.error().message, testing::HasSubstr("invalid regex pattern in allowlist config"));
  }
}

TEST(Allowlist, AllBrokenEntriesAreReportedTogether) {
  std::vector entries = {entry("echo", "("), entry("./x"), entry("dir/x"), entry("")};
  auto allowlist = Allowlist::compile(entries);
  ASSERT_FALSE(allowlist);
  EXPECT_EQ(split(allowlist.error().message, '\n').size(), 4U);
  EXPECT_THAT(allowlist.error().message, testing::HasSubstr("relative path"));
}

TEST(Allowlist, APatternThatNeedsTooMuchMemoryIsRefusedAtLoad) {
  std::vector entries = {entry("echo", "((((a{1,100}){1,10}){1,100}){1,100}){1,100}")};
  EXPECT_FALSE(Allowlist::compile(entries));
}

TEST(Allowlist, TheFirstEntryOfANameDecidesAndTheOthersAreReported) {
  Allowlist allowlist = compile({entry("echo", "one"), entry("echo", "two")});
  EXPECT_EQ(refusal(allowlist, "echo", {"one"}), "admitted");
  EXPECT_NE(refusal(allowlist, "echo", {"two"}), "admitted");
  ASSERT_EQ(allowlist.warnings().size(), 1U);
  EXPECT_THAT(allowlist.warnings()[0], testing::HasSubstr("allowed_commands[1]"));
}

TEST(Allowlist, ARefusalDoesNotDiscloseThePattern) {
  Allowlist allowlist = compile({entry("echo", "s3cret-[0-9]+")});
  EXPECT_THAT(refusal(allowlist, "echo", {"guess"}), testing::Not(testing::HasSubstr("s3cret")));
}

TEST(Allowlist, AMissingProgramFailsAfterTheCallWasAdmitted) {
  Allowlist allowlist = compile({entry("no-such-program-here", "a")});
  ASSERT_EQ(allowlist.warnings().size(), 1U);
  auto denied = allowlist.check("no-such-program-here", Args{"b"});
  ASSERT_FALSE(denied);
  EXPECT_TRUE(denied.error().denied);
  auto missing = allowlist.check("no-such-program-here", Args{"a"});
  ASSERT_FALSE(missing);
  EXPECT_FALSE(missing.error().denied);
  EXPECT_EQ(missing.error().reason, "not_installed");
  EXPECT_THAT(missing.error().text, testing::StartsWith("failed to resolve command"));
}

TEST(Allowlist, AProgramThatIsInstalledLaterIsFound) {
  TemporaryFolder folder;
  std::string path = folder / "tool";
  Allowlist allowlist = compile({entry(path)});
  EXPECT_FALSE(allowlist.check(path, {}));
  folder.write("tool", "#!/bin/sh\n", 0755);
  auto command = allowlist.check(path, {});
  ASSERT_TRUE(command);
  EXPECT_EQ(command->path, path);
}

TEST(Allowlist, AVeryLongArgumentIsAnsweredInMilliseconds) {
  Allowlist allowlist = compile({entry("echo", "(a|b)*"), entry("cat", "(a*)*c"), entry("grep", "(x+x+)+y")});
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(refusal(allowlist, "echo", {std::string(50'000, 'a')}), "admitted");
  EXPECT_NE(refusal(allowlist, "echo", {std::string(43'000, 'A')}), "admitted");
  EXPECT_NE(refusal(allowlist, "cat", {std::string(50'000, 'a')}), "admitted");
  EXPECT_NE(refusal(allowlist, "grep", {std::string(50'000, 'x')}), "admitted");
  // Generous, for loaded machines; a backtracking matcher would not come back at all.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(Allowlist, FullwidthLettersAreNotTheLettersTheyResemble) {
  Allowlist allowlist = compile({entry("curl", "http://example\\.com/")});
  EXPECT_NE(refusal(allowlist, "curl", {"http://\xef\xbd\x85xample.com/"}), "admitted");
}

TEST(Allowlist, AnUnknownUserIsALoadError) {
  config::AllowedCommand command = entry("uptime");
  command.user = "no-such-user-here";
  std::vector entries = {command};
  auto allowlist = Allowlist::compile(entries);
  ASSERT_FALSE(allowlist);
  EXPECT_THAT(allowlist.error().message, testing::HasSubstr("no user \"no-such-user-here\""));
}

TEST(Allowlist, TheEnvironmentIsAFixedListPlusTheEntrysOwn) {
  ::setenv("LD_PRELOAD_MARK", "inherited", 1);
  config::AllowedCommand command = entry("uptime");
  command.env = {{"APP_MODE", "test"}, {"LANG", "de_DE.UTF-8"}};
  auto approved = compile({command}).check("uptime", {});
  ASSERT_TRUE(approved);
  const std::vector<std::string>& environment = approved->profile->environment;
  EXPECT_THAT(environment, testing::Contains("PATH=" + std::string(fixed_path)));
  EXPECT_THAT(environment, testing::Contains("APP_MODE=test"));
  EXPECT_THAT(environment, testing::Contains("LANG=de_DE.UTF-8"));
  EXPECT_THAT(environment, testing::Contains("SYSTEMD_COLORS=0"));
  EXPECT_THAT(environment, testing::Not(testing::Contains(testing::HasSubstr("inherited"))));
  EXPECT_EQ(std::ranges::count_if(environment, [](const auto& text) { return text.starts_with("LANG="); }), 1);
}

TEST(Executable, ABareWordIsLookedUpAndBecomesAbsolute) {
  TemporaryFolder folder;
  folder.write("tool", "#!/bin/sh\n", 0755);
  folder.write("data", "not executable", 0644);
  EXPECT_EQ(resolve_executable("tool", "relative:" + folder.path()).value_or(""), folder / "tool");
  EXPECT_FALSE(resolve_executable("data", folder.path()));
  EXPECT_FALSE(resolve_executable("tool", ":relative"));
  EXPECT_EQ(resolve_executable("./tool", folder.path()).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(resolve_executable("", folder.path()).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace hive::exec
