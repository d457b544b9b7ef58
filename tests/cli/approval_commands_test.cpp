#include "cli/approval_commands.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <termios.h>

#include "cli/approval_fixture.h"
#include "cli/program_run.h"

namespace hive::cli {
namespace {

using test::approval_json;
using test::FakeGateway;
using test::first_id;
using test::ProgramRun;
using test::run_program;
using test::second_id;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* no_votes = R"(,"args_bytes":39,"approvals":[])";

class ApprovalsTest : public testing::Test {
 protected:
  ApprovalsTest() {
    show(approval_json(first_id, "pending", no_votes));
    gateway_.answers["/api/approvals"] = {200, R"({"id":"x","status":"approved","approvals":1,"required":1})"};
  }

  /// The gateway has this one request.
  void show(const std::string& approval) {
    gateway_.answers["/api/approvals?status=pending"] = {200, "[" + approval + "]"};
    gateway_.answers["/api/approvals?status=all"] = {200, "[" + approval + "]"};
    gateway_.answers[std::string("/api/approvals/") + first_id] = {200, approval};
  }

  ProgramRun run(std::vector<std::string> words) {
    words.insert(words.begin(), "approvals");
    return run_program(words, gateway_.variables());
  }

  [[nodiscard]] bool has_posted() const {
    return std::ranges::any_of(gateway_.requests, [](const std::string& text) { return text.starts_with("POST"); });
  }

  FakeGateway gateway_;
};

TEST_F(ApprovalsTest, ListsWhatWaits) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"list"}}) {
    ProgramRun listed = run(words);
    EXPECT_EQ(listed.exit_code, 0) << listed.error;
    EXPECT_THAT(listed.out, AllOf(HasSubstr("ASKED BY"), HasSubstr("3f2a9c1d   alice"),
                                  HasSubstr("edge-1__run_command"), HasSubstr("0 of 1"), HasSubstr("in "),
                                  HasSubstr(R"({"name":"systemctl")"), Not(HasSubstr("STATUS"))));
    EXPECT_THAT(gateway_.requests.back(), HasSubstr("GET /api/approvals?status=pending "));
  }
  gateway_.answers["/api/approvals?status=pending"] = {200, "[]"};
  EXPECT_EQ(run({}).out, "Nothing waits for an approval.\n");
}

TEST_F(ApprovalsTest, ListsAllWithTheirStatus) {
  show(approval_json(first_id, "approved", R"(,"approvals":[{"by":"bob"}],"outcome":"success")"));
  EXPECT_THAT(run({"list", "--all"}).out,
              AllOf(HasSubstr("STATUS"), HasSubstr("approved, success"), HasSubstr("1 of 1")));
}

TEST_F(ApprovalsTest, IdsThatShareABeginningAreShownLongEnough) {
  std::string other = std::string(first_id).substr(0, 12) + "ffffffffffffffffffff";
  gateway_.answers["/api/approvals?status=pending"] = {
      200, "[" + approval_json(first_id) + "," + approval_json(other) + "]"};
  EXPECT_THAT(run({}).out, AllOf(HasSubstr("3f2a9c1d00112"), HasSubstr("3f2a9c1d0011f")));
}

TEST_F(ApprovalsTest, PrintsTheGatewaysJson) {
  EXPECT_THAT(run({"-o", "json"}).out,
              AllOf(HasSubstr("[\n  {\n    \"id\": \"3f2a"), HasSubstr("\"digest\": \"d1d1d1\"")));
  EXPECT_THAT(run({"show", "3f2a", "-o", "json"}).out, HasSubstr("\"digest\": \"d1d1d1\""));
}

TEST_F(ApprovalsTest, ShowsEveryArgumentAndWhoAsked) {
  ProgramRun shown = run({"show", "3f2a"});
  EXPECT_EQ(shown.exit_code, 0) << shown.error;
  for (const char* part : {first_id, "pending, 0 of 1 approvals", "alice (token:1234567890ab), operator, over rest",
                           "edge-1__run_command", "SHA256:abc", "d1d1d1", "req-1", "39 bytes, all of them",
                           "\"args\": [\n    \"restart\"\n  ]", "expires       in "}) {
    EXPECT_THAT(shown.out, HasSubstr(part));
  }
}

TEST_F(ApprovalsTest, ShowsVotesRefusalAndOutcome) {
  show(approval_json(first_id, "rejected",
                     R"(,"approvals":[{"by":"token:1","identity":"bob","at":"2026-11-30T12:01:00Z","comment":"fine"}],)"
                     R"("refusal":{"by":"carol","identity":"carol","at":"2026-11-30T12:02:00Z","comment":"not now"},)"
                     R"("outcome":"denied","reason":"rejected","on_behalf_of":"dave","after_untrusted_text":true)"));
  EXPECT_THAT(run({"show", first_id}).out,
              AllOf(HasSubstr("by bob at 2026-11-30T12:01:00Z (token:1): fine"), HasSubstr("by carol"),
                    HasSubstr("not now"), HasSubstr("denied (rejected)"), HasSubstr("on behalf of  dave"),
                    HasSubstr("look twice"), Not(HasSubstr("expires  "))));
}

TEST_F(ApprovalsTest, NothingRemoteSteersTheTerminal) {
  show(approval_json(first_id, "pending", R"(,"approvals":[],"on_behalf_of":"\u001b[2J\u202e")",
                     R"({\"name\":\"\\u001b]52;c;x\\u0007\",\"b\":\"\u009b31m\u202e\",\"c\":\"a\\nb\"})"));
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"show", first_id}, {}}) {
    ProgramRun shown = run(words);
    EXPECT_EQ(shown.exit_code, 0) << shown.error;
    EXPECT_THAT(shown.out, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\u202e")), Not(HasSubstr("\u009b"))));
  }
  EXPECT_THAT(run({"show", first_id}).out, AllOf(HasSubstr("\\u009b31m\\u202e"), HasSubstr("\\u001b]52")));
}

TEST_F(ApprovalsTest, ArgumentsThatAreHiddenAreSaidToBe) {
  show(approval_json(first_id, "pending", R"(,"args_bytes":5000,"args_hidden_bytes":4000)", R"({\"name\":\"x)"));
  EXPECT_THAT(run({"show", first_id}).out, HasSubstr("5000 bytes, 4000 of them are NOT shown"));
}

TEST_F(ApprovalsTest, ABeginningMustNameOneRequest) {
  gateway_.answers["/api/approvals?status=all"] = {
      200, "[" + approval_json(first_id) + "," + approval_json(second_id) + "]"};
  EXPECT_EQ(run({"show", "3f2a"}).exit_code, 0);
  ProgramRun refused = run({"show", "3f2b00000011"});
  EXPECT_EQ(refused.exit_code, 1);  // no such path in this gateway: the id was resolved
  EXPECT_THAT(gateway_.requests.back(), HasSubstr(second_id));
  refused = run({"show", "ffff"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error, HasSubstr("no request that you may see begins with ffff"));
  for (const char* wrong : {"3f2", "", "3F2A", "../status", "3f2a9c1d00112233445566778899aabbcc", "3f2a?x=1"}) {
    refused = run({"show", wrong});
    EXPECT_EQ(refused.exit_code, 2) << wrong;
  }
  gateway_.answers["/api/approvals?status=all"] = {
      200, "[" + approval_json(first_id) + "," + approval_json("3f2acccccccccccccccccccccccccccc") + "]"};
  refused = run({"show", "3f2a"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("2 requests begin with 3f2a"));
}

TEST_F(ApprovalsTest, ApprovingSendsTheDigestOfWhatWasShown) {
  ProgramRun approved = run({"approve", "3f2a", "--yes", "--comment", "change \"4711\""});
  EXPECT_EQ(approved.exit_code, 0) << approved.error;
  EXPECT_EQ(gateway_.last_body(), std::string("{\"id\":\"") + first_id +
                                      R"(","decision":"approve","digest":"d1d1d1","comment":"change \"4711\""})");
  EXPECT_THAT(approved.out, AllOf(HasSubstr("approved, 1 of 1: edge-1__run_command for alice runs now"),
                                  HasSubstr("result 3f2a9c1d`")));
  gateway_.answers["/api/approvals"] = {200, R"({"id":"x","status":"pending","approvals":1,"required":2})"};
  EXPECT_THAT(run({"approve", "3f2a", "--yes"}).out, HasSubstr("1 of 2: edge-1__run_command for alice waits for more"));
}

TEST_F(ApprovalsTest, DenyingAndWithdrawing) {
  gateway_.answers["/api/approvals"] = {200, R"({"id":"x","status":"rejected","approvals":0,"required":1})"};
  EXPECT_EQ(run({"deny", "3f2a", "-y"}).out, "denied: edge-1__run_command for alice\n");
  EXPECT_THAT(gateway_.last_body(), HasSubstr(R"("decision":"reject")"));
  EXPECT_EQ(run({"withdraw", "3f2a"}).out, "withdrawn: edge-1__run_command for alice\n");
  EXPECT_THAT(gateway_.last_body(), HasSubstr(R"("decision":"withdraw")"));
}

TEST_F(ApprovalsTest, WithoutATerminalNobodyIsAsked) {
  ProgramRun refused = run({"approve", "3f2a"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("--yes"));
  EXPECT_FALSE(has_posted());
}

TEST_F(ApprovalsTest, LongArgumentsNeedTheirDigest) {
  show(approval_json(first_id, "pending", R"(,"args_bytes":4097)"));
  ProgramRun refused = run({"approve", "3f2a", "--yes"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, AllOf(HasSubstr("4097 bytes"), HasSubstr("--digest")));
  EXPECT_FALSE(has_posted());
  EXPECT_EQ(run({"approve", "3f2a", "--yes", "--digest", "d1d1d1"}).exit_code, 0);
  EXPECT_EQ(run({"deny", "3f2a", "--yes"}).exit_code, 0);
}

TEST_F(ApprovalsTest, AnotherDigestIsNotApproved) {
  ProgramRun refused = run({"approve", "3f2a", "--yes", "--digest", "e2e2e2"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error, HasSubstr("another digest"));
  EXPECT_FALSE(has_posted());
}

TEST_F(ApprovalsTest, WhatIsDecidedStaysDecided) {
  show(approval_json(first_id, "approved", R"(,"approvals":[{"by":"token:1","identity":"bob"}])"));
  ProgramRun refused = run({"approve", "3f2a", "--yes"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error, HasSubstr("not pending any more, but approved by bob"));
  show(approval_json(first_id, "expired"));
  EXPECT_EQ(run({"deny", "3f2a", "--yes"}).exit_code, 8);
  EXPECT_FALSE(has_posted());
}

TEST_F(ApprovalsTest, TheGatewaysRefusalHasItsExitCode) {
  struct Case {
    int status;
    int exit_code;
  };
  for (const Case& each : {Case{403, 3}, Case{404, 1}, Case{409, 1}, Case{410, 8}, Case{401, 7}, Case{503, 5}}) {
    gateway_.answers["/api/approvals"] = {each.status, R"({"detail":"own_request: it is yours","code":"own_request"})"};
    ProgramRun refused = run({"approve", "3f2a", "--yes"});
    EXPECT_EQ(refused.exit_code, each.exit_code) << each.status;
    EXPECT_THAT(refused.error, HasSubstr("it is yours"));
  }
}

TEST_F(ApprovalsTest, AnswersThatAreNoApprovalsAreRefused) {
  for (const char* body : {"{}", "[1]", "[{}]", R"([{"id":1}])", "null", "[{\"id\":\"a\",\"id\":\"b\"}]"}) {
    gateway_.answers["/api/approvals?status=pending"] = {200, body};
    ProgramRun refused = run({"list"});
    EXPECT_EQ(refused.exit_code, 1) << body;
    EXPECT_THAT(refused.error, HasSubstr("gateway")) << body;
  }
  show(approval_json(second_id));
  EXPECT_EQ(run({"show", first_id}).exit_code, 1);
}

/// Standard input and error are a terminal on which somebody has typed.
class TypedAnswer {
 public:
  explicit TypedAnswer(const std::string& typed) : saved_in_(::dup(STDIN_FILENO)), saved_error_(::dup(STDERR_FILENO)) {
    int master = -1;
    int terminal = -1;
    if (::openpty(&master, &terminal, nullptr, nullptr, nullptr) != 0) std::abort();
    master_.reset(master);
    ::dup2(terminal, STDIN_FILENO);
    ::dup2(terminal, STDERR_FILENO);
    ::close(terminal);
    if (::write(master, typed.data(), typed.size()) != static_cast<ssize_t>(typed.size())) std::abort();
  }
  ~TypedAnswer() {
    ::dup2(saved_in_.get(), STDIN_FILENO);
    ::dup2(saved_error_.get(), STDERR_FILENO);
  }
  TypedAnswer(const TypedAnswer&) = delete;
  TypedAnswer& operator=(const TypedAnswer&) = delete;

 private:
  UniqueFd saved_in_;
  UniqueFd saved_error_;
  UniqueFd master_;
};

TEST_F(ApprovalsTest, OnATerminalTheRequestIsShownAndAYesNeeded) {
  for (const char* typed : {"n\n", "\n", "maybe\n", "\x04"}) {
    TypedAnswer answer(typed);
    ProgramRun asked = run({"approve", "3f2a"});
    EXPECT_NE(asked.exit_code, 0) << typed;
    EXPECT_THAT(asked.error, AllOf(HasSubstr("\"restart\""), HasSubstr("nothing was decided")));
  }
  EXPECT_FALSE(has_posted());
  TypedAnswer answer("y\n");
  ProgramRun approved = run({"approve", "3f2a"});
  EXPECT_EQ(approved.exit_code, 0) << approved.error;
  EXPECT_THAT(approved.error, HasSubstr("\"restart\""));
  EXPECT_THAT(gateway_.last_body(), HasSubstr(R"("digest":"d1d1d1")"));
}

TEST(WaitTest, TakesSecondsOrNone) {
  EXPECT_EQ(*parse_wait("true"), std::chrono::milliseconds(0));
  EXPECT_EQ(*parse_wait("90"), std::chrono::seconds(90));
  for (const char* wrong : {"", "0", "-1", "1.5", "604801", "x"})
    EXPECT_FALSE(parse_wait(wrong)) << wrong;
}

}  // namespace
}  // namespace hive::cli
