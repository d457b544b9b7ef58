#include "cli/completion.h"

#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/approval_fixture.h"
#include "cli/program_run.h"

namespace hive::cli {
namespace {

using test::FakeGateway;
using test::run_program;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* tools_body =
    R"json({"tools":[{"name":"edge-1__run_command","description":"Runs\n more","inputSchema":{"properties":{"name":{"type":"string","description":"what to run"},"args":{"type":"array"},"$(x)":{}}}},)json"
    R"json({"name":"edge-1__get_metrics"},{"name":"web__get_metrics"},{"name":"$(reboot)"},{"name":"-rf"},{"name":"a b"}]})json";

class CompletionTest : public testing::Test {
 protected:
  CompletionTest() { gateway_.answers["/api/tools"] = {200, tools_body}; }

  std::string complete(std::vector<std::string> words) {
    words.insert(words.begin(), {"__complete", "words", "--"});
    test::ProgramRun run = run_program(words, gateway_.variables());
    EXPECT_EQ(run.error, "");
    EXPECT_EQ(run.exit_code, 0);
    return run.out;
  }

  FakeGateway gateway_;
};

TEST_F(CompletionTest, OffersCommands) {
  EXPECT_EQ(complete({"sta"}), "status\tagents and upstream servers at a glance\n");
  EXPECT_THAT(complete({""}), AllOf(HasSubstr("call\t"), HasSubstr("audit\t"), Not(HasSubstr("__complete"))));
  EXPECT_THAT(complete({"audit", "ver"}), HasSubstr("verify\t"));
  EXPECT_THAT(complete({"help", "doc"}), HasSubstr("doctor\t"));
  EXPECT_EQ(complete({"completion", "z"}), "zsh\t\n");
  EXPECT_EQ(complete({"status", ""}), "");
}

TEST_F(CompletionTest, OffersOptionsOfTheCommandAndOfAll) {
  EXPECT_THAT(complete({"call", "--"}), AllOf(HasSubstr("--progress\t"), HasSubstr("--url\t"), HasSubstr("--tool\t")));
  EXPECT_THAT(complete({"status", "--"}), AllOf(HasSubstr("--url\t"), Not(HasSubstr("--progress"))));
}

TEST_F(CompletionTest, OffersValuesOfOptions) {
  EXPECT_EQ(complete({"status", "-o", "j"}), "json\tfor programs\n");
  EXPECT_EQ(complete({"status", "--output=j"}), "--output=json\tfor programs\n");
  EXPECT_EQ(complete({"--cacert", ""}), ":files\n");
  EXPECT_EQ(complete({"tools", "--agent", ""}), "edge-1\tagent\nweb\tagent\n");
  EXPECT_THAT(complete({"call", "--agent", "web", "--tool", "get"}), HasSubstr("get_metrics\t"));
}

TEST_F(CompletionTest, OffersTheIdsOfRequests) {
  gateway_.answers["/api/approvals?status=pending"] = {
      200, "[" + test::approval_json(test::first_id) + "," + test::approval_json("$(reboot)") + "]"};
  gateway_.answers["/api/approvals?status=all"] = {200, "[" + test::approval_json(test::second_id) + "]"};
  for (const char* command : {"approve", "deny", "withdraw"}) {
    EXPECT_EQ(complete({"approvals", command, "3f"}), std::string(test::first_id) + "\talice: edge-1__run_command\n");
  }
  EXPECT_THAT(complete({"approvals", "result", ""}), HasSubstr(test::second_id));
  EXPECT_THAT(complete({"approvals", "show", ""}), HasSubstr(test::second_id));
  EXPECT_EQ(complete({"approvals", "show", "3f2b", ""}), "");
  EXPECT_EQ(complete({"approvals", "watch", ""}), "");
  EXPECT_THAT(complete({"approvals", ""}), AllOf(HasSubstr("approve\t"), HasSubstr("watch\t")));
}

TEST_F(CompletionTest, OffersFilesToThoseWhoTakeThem) {
  EXPECT_EQ(complete({"policy", "test", ""}), ":files\n");
  EXPECT_EQ(complete({"config", "apply", ""}), ":files\n");
  EXPECT_EQ(complete({"config", "show", ""}), "");
  EXPECT_THAT(complete({"explain", "edge-1__r"}), HasSubstr("edge-1__run_command\t"));
}

TEST_F(CompletionTest, OffersToolsAndTheirArguments) {
  EXPECT_EQ(complete({"call", "edge-1__r"}), "edge-1__run_command\tRuns\n");
  EXPECT_EQ(complete({"call", "edge-1__run_command", ""}), "name=\twhat to run\nargs=\t\n:nospace\n");
  EXPECT_EQ(complete({"call", "edge-1__run_command", "na"}), "name=\twhat to run\n:nospace\n");
}

TEST_F(CompletionTest, OffersForManyAgentsWhatACallOfManyTakes) {
  gateway_.answers["/api/status"] = {
      200, R"json({"agents":[{"id":"edge-1","tags":["web","eu"]},{"id":"web","tags":["web","$(x)"]}]})json"};
  EXPECT_EQ(complete({"call", "--all", ""}), "run_command\tRuns\nget_metrics\t\n");
  EXPECT_EQ(complete({"call", "--tag", "web", "run_command", "na"}), "name=\twhat to run\n:nospace\n");
  EXPECT_EQ(complete({"call", "--all", "unknown", "na"}), ":nospace\n");
  EXPECT_EQ(complete({"call", "--tag", ""}), "web\ttag\neu\ttag\n");
  EXPECT_EQ(complete({"agents", "--tag=e"}), "--tag=eu\ttag\n");
  EXPECT_EQ(complete({"call", "--agents", "edge-1,w"}), "edge-1,web\tagent\n");
  EXPECT_EQ(complete({"call", "--agents=edge-1,w"}), "--agents=edge-1,web\tagent\n");
}

TEST_F(CompletionTest, NeverOffersWhatAShellWouldRunOrTakeForAnOption) {
  std::string offered = complete({"call", ""});
  EXPECT_THAT(offered, AllOf(HasSubstr("web__get_metrics"), Not(HasSubstr("reboot")), Not(HasSubstr("-rf")),
                             Not(HasSubstr("a b"))));
  EXPECT_THAT(complete({"call", "edge-1__run_command", ""}), Not(HasSubstr("$")));
}

TEST_F(CompletionTest, AsksTheGatewayThatTheWordsName) {
  std::string out = run_program({"__complete", "words", "--", "call", "--url", gateway_.url(), "web"},
                                {{"MYRMEX_TOKEN", "t"}, {"MYRMEX_URL", "http://127.0.0.1:1"}})
                        .out;
  EXPECT_THAT(out, HasSubstr("web__get_metrics"));
}

TEST_F(CompletionTest, IsSilentWithoutAGateway) {
  test::ProgramRun run = run_program({"__complete", "words", "--", "call", ""}, {{"MYRMEX_URL", "http://127.0.0.1:1"}});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out + run.error, "");
}

TEST_F(CompletionTest, ListsNames) {
  EXPECT_EQ(run_program({"__complete", "agents"}, gateway_.variables()).out, "edge-1\nweb\n");
  EXPECT_EQ(run_program({"__complete", "tools"}, gateway_.variables()).out,
            "edge-1__run_command\nedge-1__get_metrics\nweb__get_metrics\n");
}

/// Runs a bash script and returns what it printed.
std::string bash(const std::string& script) {
  test::TemporaryFolder folder;
  std::string path = folder.write("script.bash", script);
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(("bash " + path + " 2>&1").c_str(), "re"), &::pclose);
  std::string out;
  char buffer[4096];
  for (size_t count = 0; (count = std::fread(buffer, 1, sizeof buffer, pipe.get())) > 0;)
    out.append(buffer, count);
  return out;
}

/// What bash would offer for a line, with `myrmex` replaced by a program that prints its words and fixed candidates.
std::string completed_by_bash(const std::string& line, const std::string& bash_words, const std::string& candidates) {
  return bash(
      "myrmex() { printf '<%s>' \"$@\" >&2; printf -- '" + candidates + "'; }\n" + completion_script("bash") +
      "COMP_LINE='" + line + "'\nCOMP_POINT=${#COMP_LINE}\nCOMP_WORDS=(" + bash_words +
      ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\nexec 2>/dev/null\n_myrmex\nprintf '[%s]' \"${COMPREPLY[@]}\"\n");
}

TEST(CompletionScript, BashOffersTheCandidates) {
  EXPECT_EQ(completed_by_bash("myrmex st", "myrmex st", "status\\tabout\\nstop\\t\\n"), "[status][stop]");
}

TEST(CompletionScript, BashTakesOffWhatItHasCutAlready) {
  EXPECT_EQ(
      completed_by_bash("myrmex status --output=j", "myrmex status --output = j", "--output=json\\t\\n:nospace\\n"),
      "[json]");
}

TEST(CompletionScript, BashHandsOverTheWordsUpToTheCursor) {
  std::string out = bash("myrmex() { printf '%s\\t\\n' \"$#\" \"${@: -1}\" \"$@\"; }\n" + completion_script("bash") +
                         "COMP_LINE='myrmex call  a__b '\nCOMP_POINT=${#COMP_LINE}\nCOMP_WORDS=(myrmex call a__b '')\n"
                         "COMP_CWORD=3\n_myrmex\nprintf '[%s]' \"${COMPREPLY[@]}\"\n");
  EXPECT_EQ(out, "[6][][__complete][words][--][call][a__b][]");
}

TEST(CompletionScript, ExistsForEveryShell) {
  EXPECT_THAT(completion_script("zsh"), HasSubstr("#compdef myrmex"));
  EXPECT_THAT(completion_script("fish"), HasSubstr("complete -c myrmex"));
  EXPECT_EQ(run_program({"completion", "tcsh"}).exit_code, 2);
}

}  // namespace
}  // namespace hive::cli
