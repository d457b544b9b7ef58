#include "cli/call_command.h"

#include <csignal>

#include <fcntl.h>
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
using testing::IsEmpty;
using testing::Not;

std::string text_answer(std::string_view escaped_text) {
  return R"({"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":")" + std::string(escaped_text) +
         R"("}]}})";
}

constexpr const char* success_headers = "Content-Type: application/json\r\nMyrmex-Outcome: success\r\n";

constexpr std::string_view run_command_schema =
    R"({"type":"object","properties":{"name":{"type":"string"},"args":{"type":"array","items":{"type":"string"}},
        "dry_run":{"type":"boolean"}},"required":["name"],"additionalProperties":false})";

class CallTest : public testing::Test {
 protected:
  CallTest() {
    gateway_.answers["/api/call"] = {200, text_answer("fine"), success_headers};
    gateway_.answers["/api/tools"] = {200, R"({"tools":[{"name":"edge-1__read_logs"},{"name":"e__t"},)"
                                           R"({"name":"e__run_command","inputSchema":)" +
                                               std::string(run_command_schema) + "}]}"};
  }

  ProgramRun run(std::vector<std::string> words) {
    words.insert(words.begin(), "call");
    return run_program(words, gateway_.variables());
  }

  FakeGateway gateway_;
};

TEST_F(CallTest, SendsTheToolAndItsArguments) {
  ProgramRun called = run({"edge-1__read_logs", "lines=20"});
  EXPECT_EQ(called.exit_code, 0) << called.error;
  EXPECT_EQ(called.out, "fine\n");
  EXPECT_EQ(called.error, "");
  EXPECT_EQ(gateway_.last_body(), R"({"name":"edge-1__read_logs","arguments":{"lines":20}})");
}

TEST_F(CallTest, WaitsForAnAgentThatIsOffline) {
  ProgramRun called = run({"away__run_command", "name=df", "args=-h", "--wait-online", "5m"});
  EXPECT_EQ(called.exit_code, 0) << called.error;
  EXPECT_EQ(gateway_.last_body(),
            R"({"name":"away__run_command","arguments":{"name":"df","args":["-h"]},"wait_seconds":300})");
  EXPECT_EQ(run({"away__run_command", "name=df"}).exit_code, 5) << "without it, nothing is sent";
  for (const char* time : {"0", "x", "2d", "25h", "-5", "1.5"})
    EXPECT_EQ(run({"away__run_command", std::string("--wait-online=") + time}).exit_code, 2) << time;
}

TEST_F(CallTest, TypesTheWordsByTheToolsSchema) {
  run({"e__run_command", "name=sleep", "args=5"});
  EXPECT_EQ(gateway_.last_body(), R"({"name":"e__run_command","arguments":{"name":"sleep","args":["5"]}})");
}

TEST_F(CallTest, TakesAPlainNameThatTheGatewayLists) {
  gateway_.answers["/api/tools"] = {200, R"({"tools":[{"name":"e__t"},{"name":"publish","inputSchema":)"
                                         R"({"type":"object","properties":{"pages":{"type":"array"}}}}]})"};
  ProgramRun called = run({"publish", "pages=home"});
  EXPECT_EQ(called.exit_code, 0) << called.error;
  EXPECT_EQ(gateway_.last_body(), R"({"name":"publish","arguments":{"pages":["home"]}})");
  EXPECT_EQ(run({"publish"}).exit_code, 0);
}

TEST_F(CallTest, DoesNotSendAPlainNameThatNothingHas) {
  gateway_.answers["/api/tools"] = {200, R"({"tools":[{"name":"e__t"},{"name":"publish"}]})"};
  ProgramRun typo = run({"publsh"});
  EXPECT_EQ(typo.exit_code, 2);
  EXPECT_THAT(typo.error, HasSubstr(R"("publsh" is not the name of a tool: did you mean "publish"?)"));
  EXPECT_THAT(run({"read_logs"}).error, HasSubstr("use AGENT__TOOL"));
  EXPECT_THAT(run({"t"}).error,
              HasSubstr(R"("t" is a tool of agents: name one of them, as in e__t, or many by --agents)"));
  gateway_.answers["/api/tools"] = {503, "{}"};
  EXPECT_THAT(run({"publish"}).error, HasSubstr("the call was not sent"));
  for (const auto& request : gateway_.requests)
    EXPECT_EQ(request.find("/api/call"), std::string::npos);
}

TEST_F(CallTest, AsksForTheSchemaOnlyWhenThereAreWords) {
  run({"edge-1__get_metrics"});
  run({"edge-1__run_command", "-a", R"({"name":"uptime"})"});
  EXPECT_EQ(gateway_.requests.size(), 2U);
}

TEST_F(CallTest, KnowsEverySpellingOfArguments) {
  for (std::vector<std::string> words : std::vector<std::vector<std::string>>{{"e__t", "--arguments", R"({"a":[1]})"},
                                                                              {"e__t", "--arguments={\"a\":[1]}"},
                                                                              {"-a", R"({"a":[1]})", "e__t"},
                                                                              {"-a={\"a\":[1]}", "e__t"},
                                                                              {"e__t", "-arguments", R"({"a":[1]})"},
                                                                              {"e__t", "--", "a:=[1]"}}) {
    EXPECT_EQ(run(words).exit_code, 0);
    EXPECT_EQ(gateway_.last_body(), R"({"name":"e__t","arguments":{"a":[1]}})");
  }
}

TEST_F(CallTest, TakesAgentAndToolAsOptions) {
  run({"--agent", "e", "--tool", "t", "a=1"});
  EXPECT_EQ(gateway_.last_body(), R"({"name":"e__t","arguments":{"a":1}})");
  run({"t", "--agent", "e"});
  EXPECT_EQ(gateway_.last_body(), R"({"name":"e__t","arguments":{}})");
}

TEST_F(CallTest, PassesTheDeadlineOn) {
  run({"e__t", "--timeout", "1.5"});
  EXPECT_EQ(gateway_.last_body(), R"({"name":"e__t","arguments":{},"timeout_ms":1500})");
}

TEST_F(CallTest, ReadsArgumentsFromStandardInput) {
  test::TemporaryFolder folder;
  UniqueFd input(::open(folder.write("in.json", "{\"name\": \"uptime\"}\n").c_str(), O_RDONLY | O_CLOEXEC));
  UniqueFd saved(::dup(STDIN_FILENO));
  ASSERT_EQ(::dup2(input.get(), STDIN_FILENO), STDIN_FILENO);
  ProgramRun called = run({"e__t", "--arguments", "-"});
  ::dup2(saved.get(), STDIN_FILENO);
  EXPECT_EQ(called.exit_code, 0) << called.error;
  EXPECT_EQ(gateway_.last_body(), "{\"name\":\"e__t\",\"arguments\":{\"name\": \"uptime\"}\n}");
}

TEST_F(CallTest, SendsNothingWhenTheCommandLineIsWrong) {
  for (std::vector<std::string> words : std::vector<std::vector<std::string>>{{},
                                                                              {"e__t", "--arguments", "{"},
                                                                              {"e__t", "--arguments", "[]"},
                                                                              {"e__t", "word"},
                                                                              {"name=uptime"},
                                                                              {"bad\x1bname"},
                                                                              {"e__t", "a=1", "-a", R"({"a":2})"},
                                                                              {"__t"},
                                                                              {"e__"},
                                                                              {"--agent", "a", "b__c"},
                                                                              {"e__t", "--url", "https://h:99999"},
                                                                              {"e__t", "-a"}}) {
    ProgramRun refused = run(words);
    EXPECT_EQ(refused.exit_code, 2) << testing::PrintToString(words);
    EXPECT_THAT(refused.error, Not(IsEmpty()));
    EXPECT_THAT(refused.error, Not(HasSubstr("\x1b")));
  }
  EXPECT_THAT(gateway_.requests, IsEmpty());
}

TEST_F(CallTest, MetricsGoThroughJq) {
  gateway_.answers["/api/call"] = {200, text_answer(R"({\"cpu_usage_percent\":1.50,\"load_avg_1m\":0.2})"),
                                   success_headers};
  EXPECT_EQ(run({"e__get_metrics", "-o", "json"}).out,
            "{\n  \"cpu_usage_percent\": 1.50,\n  \"load_avg_1m\": 0.2\n}\n");
  EXPECT_EQ(run({"e__get_metrics"}).out, "{\n  \"cpu_usage_percent\": 1.50,\n  \"load_avg_1m\": 0.2\n}\n");
}

TEST_F(CallTest, ArgumentsThatTheToolDoesNotHaveOrMissesAreNotSent) {
  ProgramRun refused = run({"e__run_command", "name=df", "dryrun=true"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("unknown argument \"dryrun\"; did you mean \"dry_run\"?"));
  refused = run({"e__run_command", "args=-h"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("the argument \"name\" is missing"));
  refused = run({"e__run_comand", "name=df"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("did you mean \"e__run_command\"?"));
  refused = run({"away__run_command", "name=df"});
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_THAT(refused.error, HasSubstr("agent away offers no tools"));
  for (const std::string& request : gateway_.requests)
    EXPECT_THAT(request, Not(HasSubstr("POST /api/call")));
}

TEST_F(CallTest, WhoMayNotReachTheAgentIsToldSoThoughItsToolsAreNotListed) {
  gateway_.answers["/api/explain"] = {
      200,
      R"({"verdict":"deny","reason":"scope","tier":"write","tier_rule":"built-in","gates":[)"
      R"({"gate":"role","verdict":"allow","reason":"","message":"","rule":"x"},)"
      R"({"gate":"scope","verdict":"deny","reason":"scope","message":"this credential does not reach away","rule":"y"}]})"};
  ProgramRun refused = run({"away__run_command", "name=df"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_EQ(refused.error, "myrmex: denied, nothing ran: this credential does not reach away (scope)\n");
  EXPECT_EQ(gateway_.last_body(), R"({"name":"away__run_command","arguments":{}})");
  // A refusal by a later gate may depend on the words, so it is not told without them.
  gateway_.answers["/api/explain"] = {
      200, R"({"verdict":"deny","reason":"agent_offline","tier":"write","tier_rule":"built-in","gates":[)"
           R"({"gate":"allowlist","verdict":"deny","reason":"agent_offline","message":"away","rule":""}]})"};
  EXPECT_EQ(run({"away__run_command", "name=df"}).exit_code, 5);
}

TEST_F(CallTest, WithoutTheSchemaNoTypeIsGuessed) {
  gateway_.answers["/api/tools"] = {503, R"({"detail":"busy"})"};
  ProgramRun refused = run({"e__t", "a=1"});
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_THAT(refused.error, AllOf(HasSubstr("the tools could not be read"), HasSubstr("busy")));
  ASSERT_EQ(gateway_.requests.size(), 1U);
  EXPECT_EQ(run({"e__t", "a:=1"}).exit_code, 0);
  EXPECT_EQ(gateway_.last_body(), R"({"name":"e__t","arguments":{"a":1}})");
  EXPECT_EQ(run({"e__t", "--arguments", R"({"a":"1"})"}).exit_code, 0);
}

TEST_F(CallTest, EveryFailureIsOneJsonObject) {
  gateway_.answers["/api/call"] = {
      200, text_answer("Command failed/rejected: command failed: exit status 1\\nOutput:\\n"),
      "Content-Type: application/json\r\nMyrmex-Outcome: failure\r\nMyrmex-Reason: exit_status\r\n"};
  ProgramRun failed = run({"e__t", "-o", "json"});
  EXPECT_EQ(failed.exit_code, 4);
  EXPECT_EQ(failed.out,
            "{\n  \"outcome\": \"failure\",\n  \"reason\": \"exit_status\",\n"
            "  \"message\": \"command failed: exit status 1\",\n"
            "  \"output\": \"Command failed/rejected: command failed: exit status 1\\nOutput:\\n\"\n}\n");
  gateway_.answers["/api/call"] = {504, R"({"detail":"agent agent-2 did not answer before the deadline"})",
                                   "Myrmex-Outcome: unknown\r\nMyrmex-Reason: timed_out\r\n"};
  failed = run({"e__t", "-o", "json"});
  EXPECT_EQ(failed.exit_code, 8);
  EXPECT_THAT(failed.out, AllOf(HasSubstr("\"outcome\": \"unknown\""), HasSubstr("\"reason\": \"timed_out\""),
                                HasSubstr("\"output\": null")));
  EXPECT_EQ(failed.error, "myrmex: outcome unknown: agent agent-2 did not answer before the deadline\n");
  failed = run({"e__t", "-o", "json", "--url", "http://127.0.0.1:1"});
  EXPECT_EQ(failed.exit_code, 5);
  EXPECT_THAT(failed.out, AllOf(HasSubstr("\"outcome\": \"denied\""), HasSubstr("\"reason\": \"unreachable\"")));
  failed = run({"nope", "-o", "json"});
  EXPECT_EQ(failed.exit_code, 2);
  EXPECT_THAT(failed.out, HasSubstr("\"reason\": \"usage\""));
}

TEST_F(CallTest, LongWordsAreNotRepeatedWhole) {
  for (std::vector<std::string> words :
       std::vector<std::vector<std::string>>{{std::string(5000, 'a')},
                                             {"e__t", std::string(5000, 'a')},
                                             {"e__run_command", std::string(5000, 'a') + "=1"}}) {
    ProgramRun refused = run(words);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_LT(refused.error.size(), 400U);
  }
}

TEST_F(CallTest, ADenialIsSaidOnce) {
  gateway_.answers["/api/call"] = {
      200, text_answer("Command failed/rejected: command 'rm' is not in the approved allowlist\\nOutput:\\n"),
      "Content-Type: application/json\r\nMyrmex-Outcome: denied\r\nMyrmex-Reason: not_allowlisted\r\n"};
  ProgramRun denied = run({"e__run_command", "name=rm"});
  EXPECT_EQ(denied.exit_code, 3);
  EXPECT_EQ(denied.out, "");
  EXPECT_EQ(denied.error,
            "myrmex: denied, nothing ran: command 'rm' is not in the approved allowlist (not_allowlisted)\n");
}

TEST_F(CallTest, EachOutcomeHasItsExitCode) {
  struct Case {
    const char* headers;
    int exit_code;
  };
  for (const Case& each : {Case{"Myrmex-Outcome: failure\r\nMyrmex-Reason: exit_status\r\n", 4},
                           Case{"Myrmex-Outcome: denied\r\nMyrmex-Reason: agent_offline\r\n", 5},
                           Case{"Myrmex-Outcome: denied\r\nMyrmex-Reason: agent_unknown\r\n", 5},
                           Case{"Myrmex-Outcome: cancelled\r\n", 8}, Case{"Myrmex-Outcome: expired\r\n", 8},
                           Case{"Myrmex-Outcome: unknown\r\n", 8}, Case{"Myrmex-Outcome: success\r\n", 0}}) {
    gateway_.answers["/api/call"] = {200, text_answer("x"), each.headers};
    EXPECT_EQ(run({"e__t"}).exit_code, each.exit_code) << each.headers;
  }
}

TEST_F(CallTest, EachHttpErrorHasItsExitCode) {
  struct Case {
    int status;
    const char* headers;
    int exit_code;
  };
  for (const Case& each :
       {Case{401, "", 7}, Case{403, "Myrmex-Outcome: denied\r\nMyrmex-Reason: role\r\n", 3},
        Case{429, "Retry-After: 5\r\n", 3},
        Case{503, "Myrmex-Outcome: denied\r\nMyrmex-Reason: audit_unavailable\r\n", 3},
        Case{503, "Myrmex-Outcome: denied\r\nMyrmex-Reason: draining\r\n", 5}, Case{503, "", 5},
        Case{504, "Myrmex-Outcome: unknown\r\n", 8}, Case{504, "", 8}, Case{400, "", 1}, Case{500, "", 1}}) {
    gateway_.answers["/api/call"] = {each.status, R"({"title":"t","detail":"the reason"})", each.headers};
    ProgramRun refused = run({"e__t"});
    EXPECT_EQ(refused.exit_code, each.exit_code) << each.status << " " << each.headers;
    EXPECT_THAT(refused.error, HasSubstr("the reason"));
    EXPECT_EQ(refused.out, "");
  }
}

TEST_F(CallTest, APendingApprovalNamesItsId) {
  gateway_.answers["/api/call"] = {202, R"({"status":"pending_approval","approval_id":"abc123"})"};
  ProgramRun pending = run({"e__t"});
  EXPECT_EQ(pending.exit_code, 6);
  EXPECT_THAT(pending.error, HasSubstr("abc123"));
}

TEST_F(CallTest, AJsonRpcErrorIsReported) {
  gateway_.answers["/api/call"] = {
      200,
      R"({"error":{"code":-32602,"message":"Invalid service name","data":{"outcome":"denied","reason":"invalid_arguments"}}})"};
  ProgramRun refused = run({"e__service_control", "-o", "json"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.out, AllOf(HasSubstr("\"outcome\": \"denied\""), HasSubstr("\"Invalid service name\"")));
  EXPECT_EQ(refused.error, "myrmex: denied, nothing ran: Invalid service name (invalid_arguments)\n");
}

TEST_F(CallTest, RawGivesTheBytesAsTheyCame) {
  gateway_.answers["/api/call"] = {200, text_answer("\\u001b[1m{\\\"a\\\":1}"), success_headers};
  EXPECT_EQ(run({"e__t", "--raw"}).out, "\x1b[1m{\"a\":1}");
}

/// A gateway that streams: the script speaks on the connection of POST /api/call.
class StreamingCallTest : public testing::Test {
 protected:
  static constexpr const char* head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

  static ProgramRun run(const hive::test::ScriptedServer& server, std::vector<std::string> words) {
    return run_program(words, {{"MYRMEX_URL", server.url()}, {"MYRMEX_TOKEN", "t"}});
  }
};

TEST_F(StreamingCallTest, PrintsOutputAsItComesAndNothingTwice) {
  std::string request;
  hive::test::ScriptedServer server([&request](hive::test::Peer& peer) {
    request = peer.read_request();
    peer.send(head);
    peer.send(": ping\n\nevent: progress\ndata: {\"progressToken\":\"1\",\"progress\":1,\"message\":\"one\\n\"}\n\n");
    peer.send("event: progress\ndata: {\"progressToken\":\"1\",\"progress\":2,\"message\":\"\\u001b[2J\"}\n\n");
    peer.send("event: result\ndata: " + text_answer("one\\n\\u001b[2Jtwo\\n") + "\n\n");
  });
  ProgramRun called = run(server, {"call", "e__t", "--progress"});
  EXPECT_EQ(called.exit_code, 0) << called.error;
  EXPECT_EQ(called.out, "one\n\\x1b[2Jtwo\n");
  EXPECT_THAT(request, HasSubstr("Accept: text/event-stream\r\n"));
}

TEST_F(StreamingCallTest, JsonOutputIsTheResultAlone) {
  hive::test::ScriptedServer server([](hive::test::Peer& peer) {
    peer.read_request();
    peer.send(head);
    peer.send("event: progress\ndata: {\"message\":\"{\"}\n\n");
    peer.send("event: result\ndata: " + text_answer("{\\\"a\\\":1}") + "\n\n");
  });
  EXPECT_EQ(run(server, {"call", "e__t", "--follow", "-o", "json"}).out, "{\n  \"a\": 1\n}\n");
}

TEST_F(StreamingCallTest, AFailureInTheStreamHasItsExitCode) {
  hive::test::ScriptedServer server([](hive::test::Peer& peer) {
    peer.read_request();
    peer.send(head);
    peer.send("event: progress\ndata: {\"message\":\"partial\\n\"}\n\n");
    peer.send(
        "event: result\ndata: "
        R"({"result":{"content":[{"type":"text","text":"Command failed/rejected: command failed: exit status 1\nOutput:\npartial\n"}],"isError":true,"_meta":{"myrmex-hive/outcome":"failure","myrmex-hive/reason":"exit_status"}}})"
        "\n\n");
  });
  ProgramRun failed = run(server, {"call", "e__t", "--progress"});
  EXPECT_EQ(failed.exit_code, 4);
  EXPECT_EQ(failed.out, "partial\n");
  EXPECT_EQ(failed.error, "myrmex: failed: command failed: exit status 1 (exit_status)\n");
}

TEST_F(StreamingCallTest, AStreamThatEndsWithoutAResultIsUnsettled) {
  hive::test::ScriptedServer server([](hive::test::Peer& peer) {
    peer.read_request();
    peer.send(head);
    peer.send("event: progress\ndata: {\"message\":\"one\\n\"}\n\n");
  });
  ProgramRun broken = run(server, {"call", "e__t", "--progress"});
  EXPECT_EQ(broken.exit_code, 8);
  EXPECT_THAT(broken.error, HasSubstr("audit log"));
}

TEST_F(StreamingCallTest, ARefusalInsteadOfAStreamIsReported) {
  hive::test::ScriptedServer server([](hive::test::Peer& peer) {
    peer.read_request();
    peer.answer(403, R"({"detail":"read-only may not call"})");
  });
  ProgramRun denied = run(server, {"call", "e__t", "--progress"});
  EXPECT_EQ(denied.exit_code, 3);
  EXPECT_THAT(denied.error, HasSubstr("read-only may not call"));
}

TEST_F(StreamingCallTest, AGatewayThatDoesNotStreamStillAnswers) {
  hive::test::ScriptedServer server([](hive::test::Peer& peer) {
    peer.read_request();
    peer.answer(200, text_answer("all at once"));
  });
  EXPECT_EQ(run(server, {"call", "e__t", "--progress"}).out, "all at once\n");
}

TEST_F(StreamingCallTest, AConnectionThatBreaksLeavesTheOutcomeOpen) {
  hive::test::ScriptedServer server([](hive::test::Peer& peer) { peer.read_request(); });
  ProgramRun broken = run(server, {"call", "e__t"});
  EXPECT_EQ(broken.exit_code, 8);
  EXPECT_THAT(broken.error, HasSubstr("unknown"));
}

TEST_F(StreamingCallTest, CtrlCClosesTheConnectionAndSaysSo) {
  std::atomic<bool> saw_close = false;
  hive::test::ScriptedServer server([&saw_close](hive::test::Peer& peer) {
    peer.read_request();
    // The request is here, so the program waits, with its handler in place.
    ::kill(::getpid(), SIGINT);
    peer.wait_for_close();
    saw_close = true;
  });
  ProgramRun cancelled = run(server, {"call", "e__t"});
  EXPECT_EQ(cancelled.exit_code, 130);
  EXPECT_THAT(cancelled.error, HasSubstr("cancelled"));
  for (int tries = 0; tries < 500 && !saw_close; ++tries)
    ::usleep(10'000);
  EXPECT_TRUE(saw_close);
}

}  // namespace
}  // namespace hive::cli
