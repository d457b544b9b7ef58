#include "cli/fan_out_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/fan_out_report.h"
#include "cli/program_run.h"

namespace hive::cli {
namespace {

using test::FakeGateway;
using test::ProgramRun;
using test::run_program;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* stream_headers = "Content-Type: text/event-stream\r\n";

std::string event(std::string_view name, std::string_view data) {
  return "event: " + std::string(name) + "\ndata: " + std::string(data) + "\n\n";
}

std::string result_event(std::string_view agent, std::string_view text) {
  return event("result",
               R"({"agent":")" + std::string(agent) +
                   R"(","outcome":"success","duration_us":12000,"result":{"content":[{"type":"text","text":")" +
                   std::string(text) + R"("}]}})");
}

std::string end_event(std::size_t agents, std::string_view more = "") {
  return event("end", R"({"fan_out":"r-7","agents":)" + std::to_string(agents) + R"(,"left_out":0,)" +
                          std::string(more) + R"("duration_us":2500000})");
}

std::string preview(std::string_view tier) {
  return R"({"dry_run":true,"tier":")" + std::string(tier) +
         R"(","left_out":1,"agents":[{"agent":"web-1","online":true,"verdict":"allow"},)"
         R"({"agent":"web-2","verdict":"deny","reason":"scope","message":"not in reach"}]})";
}

class FanOutCommandTest : public testing::Test {
 protected:
  /// What the gateway's stream has between its start and whatever follows.
  void answer_with(const std::string& events) {
    gateway_.answers["/api/fan-out"] = {200, event("start", R"({"fan_out":"r-7","agents":2,"left_out":0})") + events,
                                        stream_headers};
  }
  ProgramRun run(std::vector<std::string> words) {
    words.insert(words.begin(), "call");
    return run_program(words, gateway_.variables());
  }

  FakeGateway gateway_;
};

TEST_F(FanOutCommandTest, PrintsALineAnAgentAsTheyComeAndSumsThemUp) {
  answer_with(
      result_event("web-2", "up 3 days\\nload 1\\n") +
      event("result", R"({"agent":"web-1","outcome":"denied","reason":"agent_offline","message":"web-1 is away"})") +
      end_event(2));
  ProgramRun called = run({"--agents", "web-1,web-2", "get_metrics", "--yes"});
  EXPECT_EQ(called.out,
            "web-2      success               12 ms   up 3 days (+1 line)\n"
            "web-1      denied                        web-1 is away (agent_offline)\n");
  EXPECT_EQ(called.error, "myrmex: 2 agents: 1 denied, 1 success in 2.5 s; request r-7\n");
  EXPECT_EQ(called.exit_code, static_cast<int>(ExitCode::unreachable));
  EXPECT_EQ(gateway_.last_body(), R"({"tool":"get_metrics","arguments":{},"agents":["web-1","web-2"]})");
}

TEST_F(FanOutCommandTest, SendsItsOptions) {
  answer_with(end_event(2));
  ProgramRun called = run({"--tag", "web", "--tag", "eu,us", "--offline", "--concurrency", "8", "--deadline", "1.5",
                           "--stop-after", "3", "--timeout", "2", "--yes", "get_metrics"});
  EXPECT_EQ(called.exit_code, 0) << called.error;
  EXPECT_EQ(gateway_.last_body(),
            R"({"tool":"get_metrics","arguments":{},"tags":["web","eu","us"],"offline":true,"concurrency":8,)"
            R"("deadline_ms":1500,"stop_after_errors":3,"timeout_ms":2000})");
  EXPECT_THAT(gateway_.requests.back(), HasSubstr("Accept: text/event-stream"));
}

TEST_F(FanOutCommandTest, LetsEachCallWaitForAnAgentThatIsOffline) {
  answer_with(end_event(2));
  ProgramRun called = run({"--tag", "web", "--wait-online", "5m", "--yes", "get_metrics"});
  EXPECT_EQ(called.exit_code, 0) << called.error;
  EXPECT_EQ(gateway_.last_body(), R"({"tool":"get_metrics","arguments":{},"tags":["web"],"wait_seconds":300})");
}

TEST_F(FanOutCommandTest, WordsForAgentsThatAreAllAwayAreSentOnlyWhenTheCallWaits) {
  constexpr const char* away = R"({"dry_run":true,"tier":"read","left_out":0,"agents":[)"
                               R"({"agent":"web-1","online":false,"verdict":"allow"}]})";
  gateway_.answers["/api/fan-out"] = {200, away};
  ProgramRun refused = run({"--agents", "web-1", "--yes", "run_command", "name=df"});
  EXPECT_EQ(refused.exit_code, static_cast<int>(ExitCode::unreachable)) << refused.error;
  EXPECT_THAT(refused.error, HasSubstr("nothing was sent"));
  // What the gateway remembers of the agent's tools gives the words their types.
  gateway_.answers["/api/tools"] = {200, R"({"tools":[{"name":"web-1__run_command","inputSchema":{"type":"object",)"
                                         R"("properties":{"name":{"type":"string"}}}}]})"};
  ProgramRun shown = run({"--agents", "web-1", "--wait-online", "5m", "--dry-run", "run_command", "name=5"});
  EXPECT_EQ(shown.exit_code, 0) << shown.error;
  EXPECT_THAT(gateway_.last_body(), HasSubstr(R"("arguments":{"name":"5"})"));
  EXPECT_THAT(gateway_.last_body(), HasSubstr(R"("wait_seconds":300)"));
}

TEST_F(FanOutCommandTest, GroupsWhatIsTheSame) {
  answer_with(result_event("web-2", "same\\n") + result_event("web-3", "other") + result_event("web-1", "same\\n") +
              end_event(3));
  ProgramRun called = run({"--all", "--yes", "--group", "get_metrics"});
  EXPECT_EQ(called.out, "--- web-1, web-2 (2): success\nsame\n--- web-3 (1): success\nother\n");
}

TEST_F(FanOutCommandTest, GivesProgramsAnObjectALine) {
  answer_with(result_event("web-1", "fine") + end_event(1));
  ProgramRun called = run({"--all", "--yes", "-o", "json", "get_metrics"});
  EXPECT_EQ(called.out,
            R"({"agent":"web-1","outcome":"success","duration_us":12000,"result":{"content":[{"type":"text","text":)"
            "\"fine\"}]}}\n");
  EXPECT_EQ(run({"--all", "--yes", "-o", "json", "--group", "get_metrics"}).exit_code, 2);
}

TEST_F(FanOutCommandTest, RemoteTextCannotSteerTheTerminal) {
  answer_with(result_event("web-1", "a\\u001b[2Jb") + end_event(1));
  ProgramRun lines = run({"--all", "--yes", "get_metrics"});
  EXPECT_THAT(lines.out, Not(HasSubstr("\x1b")));
  ProgramRun groups = run({"--all", "--yes", "--group", "get_metrics"});
  EXPECT_THAT(groups.out, Not(HasSubstr("\x1b")));
}

TEST_F(FanOutCommandTest, AStreamThatBreaksOffLeavesTheOutcomeUnknown) {
  answer_with(result_event("web-1", "fine"));
  ProgramRun called = run({"--all", "--yes", "get_metrics"});
  EXPECT_EQ(called.exit_code, static_cast<int>(ExitCode::unsettled));
  EXPECT_THAT(called.error, HasSubstr("unknown; the audit log will tell"));
}

TEST_F(FanOutCommandTest, ADryRunShowsWhomItWouldAskAndSendsNothingElse) {
  gateway_.answers["/api/fan-out"] = {200, preview("write")};
  ProgramRun shown = run({"--tag", "web", "run_command", "--dry-run"});
  EXPECT_EQ(shown.exit_code, 0) << shown.error;
  EXPECT_THAT(shown.out, HasSubstr("web-1   online   allow"));
  EXPECT_THAT(shown.out, HasSubstr("web-2   -        deny      not in reach"));
  EXPECT_EQ(shown.error,
            "myrmex: run_command of tier write on 2 agents, nothing was run; 1 would be refused; 1 offline left out\n");
  EXPECT_EQ(gateway_.requests.size(), 1U);
  EXPECT_THAT(gateway_.last_body(), HasSubstr(R"("dry_run":true)"));
}

TEST_F(FanOutCommandTest, ChangesNothingOnSeveralAgentsUnlessSomebodySaysSo) {
  gateway_.answers["/api/fan-out"] = {200, preview("write")};
  ProgramRun called = run({"--tag", "web", "run_command", "-a", R"({"name":"reboot"})"});
  EXPECT_EQ(called.exit_code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(called.error, HasSubstr("would run on 2 agents, and nobody can be asked here: say --yes"));
  EXPECT_EQ(gateway_.requests.size(), 1U);
}

TEST_F(FanOutCommandTest, WhatTheGatewayRefusesAsAWholeIsSaidOnce) {
  gateway_.answers["/api/fan-out"] = {
      422,
      R"({"title":"Unprocessable","status":422,"code":"no_target","detail":"no agent matches","outcome":"denied"})",
      "Content-Type: application/problem+json\r\nMyrmex-Outcome: denied\r\nMyrmex-Reason: no_target\r\n"};
  ProgramRun called = run({"--tag", "wbe", "get_metrics", "--yes"});
  EXPECT_EQ(called.exit_code, static_cast<int>(ExitCode::denied));
  EXPECT_THAT(called.out, IsEmpty());
  EXPECT_THAT(called.error, HasSubstr("no agent matches"));
}

TEST_F(FanOutCommandTest, WordsThatDoNotFitAreRefusedBeforeAnythingIsSent) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--all", "web-1__get_metrics"},
                                             {"--all"},
                                             {"--all", "--agent", "web-1", "get_metrics"},
                                             {"--all", "--agents", "web-1", "get_metrics"},
                                             {"--all", "--concurrency", "0", "get_metrics"},
                                             {"--all", "--deadline", "x", "get_metrics"},
                                             {"--all", "--deadline", "0", "get_metrics"},
                                             {"--all", "--progress", "get_metrics"},
                                             {"--all", "--wait", "get_metrics"},
                                             {"web-1__get_metrics", "--group"},
                                             {"web-1__get_metrics", "--dry-run"}}) {
    ProgramRun called = run(words);
    EXPECT_EQ(called.exit_code, 2) << testing::PrintToString(words) << called.error;
    EXPECT_FALSE(called.error.empty());
  }
  EXPECT_THAT(gateway_.requests, IsEmpty());
}

TEST(WorseOf, WhatIsNotKnownIsWorseThanWhatWentWrongThanWhatDidNotRun) {
  EXPECT_EQ(worse_of(ExitCode::success, ExitCode::pending_approval), ExitCode::pending_approval);
  EXPECT_EQ(worse_of(ExitCode::unreachable, ExitCode::denied), ExitCode::denied);
  EXPECT_EQ(worse_of(ExitCode::failure, ExitCode::denied), ExitCode::failure);
  EXPECT_EQ(worse_of(ExitCode::failure, ExitCode::unsettled), ExitCode::unsettled);
}

}  // namespace
}  // namespace hive::cli
