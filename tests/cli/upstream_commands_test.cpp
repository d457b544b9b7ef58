#include <gmock/gmock.h>

#include "cli/program_run.h"

namespace hive::cli {
namespace {

using test::FakeGateway;
using test::run_program;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string digest(64, 'b');

class UpstreamCommandsTest : public testing::Test {
 protected:
  UpstreamCommandsTest() {
    gateway_.answers["/api/status"] = {
        200, R"({"agents":[],"upstreams":[{"name":"git","url":"npx server-git","status":"connected",)"
             R"("transport":"stdio","since":"2026-11-30T17:00:00.000Z","tools":12,"held_back":1,)"
             R"("notes":["a \u001b[31mnote"]},{"name":"old","url":"https://a/sse","status":"error: refused"}]})"};
    gateway_.answers["/api/upstreams"] = {
        200, R"({"upstreams":[{"name":"git","held_back_tools":[{"tool":"push","current_sha256":")" + digest +
                 R"(","current":{"name":"push","description":"\u001b[2Jhostile"},"accepted_sha256":"aaaa",)"
                 R"("accepted":{"name":"push","description":"pushes"}},)"
                 R"({"tool":"new","current_sha256":"cccc","current":{"name":"new"},"accepted":null}]}]})"};
    gateway_.answers["/api/upstreams/accept"] = {200, R"({"upstream":"git","tool":"push"})"};
  }
  FakeGateway gateway_;
};

TEST_F(UpstreamCommandsTest, ListsServersWithTheirStateAndWhatIsHeldBack) {
  auto run = run_program({"upstreams"}, gateway_.variables());
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, AllOf(HasSubstr("SERVER NAME"), HasSubstr("stdio"), HasSubstr("connected"), HasSubstr("12"),
                             HasSubstr("error: refused"), HasSubstr("git: a \\x1b[31mnote"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(run.out, HasSubstr("1 tool waits for an admin"));
}

TEST_F(UpstreamCommandsTest, ShowsWhatWasAcceptedAndWhatIsSaidNow) {
  auto run = run_program({"upstreams", "held-back"}, gateway_.variables());
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, AllOf(HasSubstr("git push\n"), HasSubstr("Accepted, sha256 aaaa:\n"), HasSubstr("pushes"),
                             HasSubstr("Now, sha256 " + digest), HasSubstr("\\u001b[2Jhostile"),
                             HasSubstr("git new\nIt is new.\n"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(run.out, HasSubstr("myrmex upstreams accept git \"push\""));
  gateway_.answers["/api/upstreams"] = {200, R"({"upstreams":[]})"};
  EXPECT_EQ(run_program({"upstreams", "held-back"}, gateway_.variables()).out, "No tool is held back.\n");
}

TEST_F(UpstreamCommandsTest, AcceptsTheDescriptionThatStandsThereWhenToldTo) {
  auto run = run_program({"upstreams", "accept", "git", "push", "--yes"}, gateway_.variables());
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_EQ(gateway_.last_body(), R"({"upstream":"git","tool":"push","sha256":")" + digest + "\"}");
  EXPECT_THAT(run.out, HasSubstr("Accepted: \"push\" of git"));
}

TEST_F(UpstreamCommandsTest, AcceptsExactlyTheDigestThatIsGiven) {
  gateway_.answers["/api/upstreams/accept"] = {
      409, R"({"status":409,"code":"description_changed","detail":"look at it again"})"};
  auto run = run_program({"upstreams", "accept", "git", "push", "--sha256", "dddd"}, gateway_.variables());
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.error, HasSubstr("look at it again"));
  EXPECT_EQ(gateway_.last_body(), R"({"upstream":"git","tool":"push","sha256":"dddd"})");
}

TEST_F(UpstreamCommandsTest, AcceptsNothingUnseen) {
  auto run = run_program({"upstreams", "accept", "git", "push"}, gateway_.variables());
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.error, HasSubstr("--sha256"));
  EXPECT_THAT(gateway_.requests.back(), Not(HasSubstr("/accept")));
  run = run_program({"upstreams", "accept", "git", "pull", "--yes"}, gateway_.variables());
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.error, HasSubstr("no tool \"pull\" of \"git\" is held back"));
}

TEST_F(UpstreamCommandsTest, CompletesWhatIsHeldBack) {
  EXPECT_THAT(run_program({"__complete", "words", "--", "upstreams", ""}, gateway_.variables()).out,
              AllOf(HasSubstr("held-back\t"), HasSubstr("accept\t")));
  EXPECT_EQ(run_program({"__complete", "words", "--", "upstreams", "accept", ""}, gateway_.variables()).out, "git\t\n");
  EXPECT_EQ(run_program({"__complete", "words", "--", "upstreams", "accept", "git", ""}, gateway_.variables()).out,
            "push\t\nnew\t\n");
}

}  // namespace
}  // namespace hive::cli
