#include "cli/audit_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program_run.h"

namespace hive::cli {
namespace {

using test::FakeGateway;
using test::ProgramRun;
using test::run_program;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* page =
    R"({"entries":[{"seq":7,"time":"2026-11-30T12:00:02.000Z","kind":"outcome","principal":"bob","action":"call",)"
    R"("agent":"edge-1","tool":"run_command","outcome":"denied","reason":"role","detail":"no\u001b[2J\u202e"},)"
    R"({"seq":6,"time":"2026-11-30T12:00:01.000Z","kind":"event","action":"start"}],"next_before":6})";

class AuditListOfGatewayTest : public testing::Test {
 protected:
  ProgramRun run(std::vector<std::string> words) {
    words.insert(words.begin(), {"audit", "list", "--gateway"});
    return run_program(words, gateway_.variables());
  }

  FakeGateway gateway_;
};

TEST_F(AuditListOfGatewayTest, PrintsThePageWithTheNewestLast) {
  gateway_.answers["/api/audit?limit=50"] = {200, page};
  ProgramRun listed = run({});
  EXPECT_EQ(listed.exit_code, 0) << listed.error;
  EXPECT_LT(listed.out.find("start"), listed.out.find("edge-1__run_command"));
  EXPECT_THAT(listed.out, AllOf(HasSubstr("role: no\\x1b[2J"), Not(HasSubstr("\x1b")), Not(HasSubstr("\u202e"))));
  EXPECT_EQ(listed.error, "older entries: --before 6\n");
}

TEST_F(AuditListOfGatewayTest, JsonHasTheSameShapeAsThatOfAFile) {
  gateway_.answers["/api/audit?limit=50"] = {200, page};
  EXPECT_THAT(run({"-o", "json"}).out, AllOf(StartsWith("{\"entries\":[\n{\"seq\":7,"),
                                             HasSubstr("],\"before_seq\":6}\n"), Not(HasSubstr("\u202e"))));
}

TEST_F(AuditListOfGatewayTest, PassesEveryFilterOn) {
  run({"--principal", "a b&c=d/\xc3\xa4",
       "--agent",     "edge-1",
       "--tool",      "t",
       "--action",    "call",
       "--call-id",   "c1",
       "--reason",    "role",
       "--outcome",   "denied",
       "--since",     "2026-11-30T12:00",
       "--until",     "2026-12",
       "--before",    "9",
       "--limit",     "3"});
  ASSERT_EQ(gateway_.requests.size(), 1U);
  EXPECT_THAT(
      gateway_.requests[0],
      StartsWith("GET /api/audit?limit=3&actor=a%20b%26c%3Dd%2F%C3%A4&agent=edge-1&tool=t&action=call&call_id=c1"
                 "&reason=role&outcome=denied&since=2026-11-30T12%3A00&until=2026-12&before=9 HTTP/1.1"));
}

TEST_F(AuditListOfGatewayTest, ARefusalHasItsExitCode) {
  gateway_.answers["/api/audit?limit=50"] = {403, R"({"detail":"admins only"})"};
  ProgramRun refused = run({});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.error, HasSubstr("admins only"));
  for (const char* body : {"[]", R"({"entries":[1]})", R"({"entries":[{}]})"}) {
    gateway_.answers["/api/audit?limit=50"] = {200, body};
    EXPECT_EQ(run({}).exit_code, 1) << body;
  }
}

TEST(AuditListTest, AFileOrAGatewayMustBeNamed) {
  ::unsetenv("MYRMEX_AUDIT_LOG");
  ProgramRun refused = run_program({"audit", "list"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("--log"));
}

}  // namespace
}  // namespace hive::cli
