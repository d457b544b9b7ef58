#include "agent/agent.h"

#include <csignal>

#include <boost/json/serialize.hpp>

#include "agent/command_tool.h"
#include "agent_fixture.h"
#include "base/strings.h"
#include "crypto/sha256.h"
#include "protocol/agent_protocol.h"
#include "protocol/tools.h"

namespace hive::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

pid_t pid_from(const std::string& path) {
  EXPECT_TRUE(eventually([&] { return read_text(path).ends_with('\n'); }));
  return static_cast<pid_t>(parse_int64(trim(read_text(path))).value_or(-1));
}

TEST(ToolTable, EveryDescribedToolHasAHandler) {
  for (const protocol::ToolDescription& tool : protocol::builtin_tools())
    EXPECT_NE(find_tool_handler(tool.name), nullptr) << tool.name;
  EXPECT_EQ(protocol::builtin_tools().size(), 9U);
  EXPECT_EQ(find_tool_handler("no_such_tool"), nullptr);
}

TEST_F(AgentTest, ListsItsToolsInTheReferencesOrder) {
  say(R"({"jsonrpc":"2.0","id":"l","method":"tools/list"})");
  Answer answer = answer_to("\"l\"");
  std::vector<std::string> names;
  for (const auto& tool : answer.result().at("tools").as_array()) {
    names.emplace_back(tool.at("name").as_string());
    EXPECT_EQ(tool.at("schemaVersion").as_string(), "1");
    EXPECT_EQ(tool.at("inputSchema").at("type").as_string(), "object");
  }
  EXPECT_THAT(names, testing::ElementsAre("get_metrics", "run_command", "read_logs", "get_system_info",
                                          "service_control", "container_ps", "k8s_get", "package_query", "file_read"));
}

TEST_F(AgentTest, AnswersPingAndInitialize) {
  say(R"({"jsonrpc":"2.0","id":0,"method":"ping"})");
  EXPECT_EQ(protocol::tools_digest_of(boost::json::serialize(answer_to("0").result())),
            to_hex(crypto::sha256(protocol::tools_list_result())));
  say(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}})");
  Answer answer = answer_to("1");
  EXPECT_EQ(answer.result().at("protocolVersion").as_string(), "2025-03-26");
  EXPECT_EQ(answer.result().at("serverInfo").at("name").as_string(), "myrmex-agent");
}

TEST_F(AgentTest, RefusesWhatIsNoRequest) {
  for (std::string line : {"{", "\xef\xbb\xbf{}", R"({"method":"ping","method":"tools/list","id":1})"}) {
    say(line);
    EXPECT_EQ(answer_to("null").error_code(), -32700) << line;
  }
  for (std::string line : {"[]", "null", "{}", R"({"id":5})", R"({"jsonrpc":"2.0","id":true,"method":"ping"})"}) {
    say(line);
    EXPECT_EQ(answer_to("null").error_code(), -32600) << line;
  }
  say(std::string(3000, '['));
  EXPECT_EQ(answer_to("null").error_code(), -32700);
  say(R"({"jsonrpc":"2.0","id":9,"method":"resources/list"})");
  EXPECT_EQ(answer_to("9").error_code(), -32601);
}

TEST_F(AgentTest, IgnoresNotificationsThatItDoesNotKnow) {
  say(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}})");
  say(R"({"jsonrpc":"2.0","method":"notifications/cancelled"})");
  say("");
  say(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  answer_to("1");
  EXPECT_TRUE(lines().empty());
}

TEST_F(AgentTest, RefusesUnusableCalls) {
  say(R"({"jsonrpc":"2.0","id":1,"method":"tools/call"})");
  EXPECT_EQ(answer_to("1").error_code(), -32602);
  say(R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":[]})");
  EXPECT_EQ(answer_to("2").error_code(), -32602);
  Answer unknown = call("no_such_tool", "{}");
  EXPECT_EQ(unknown.error_code(), -32601);
  EXPECT_THAT(unknown.error_message(), StartsWith("Tool not found"));
  for (std::string tool : {"run_command", "service_control", "k8s_get", "package_query", "file_read"}) {
    Answer missing = call(tool, "");
    EXPECT_EQ(missing.error_code(), -32602) << tool;
    EXPECT_EQ(missing.outcome(), "denied");
  }
  EXPECT_EQ(call("run_command", R"({"name":"echo","args":["a",1]})").error_code(), -32602);
  EXPECT_EQ(call("run_command", R"({"name":7})").error_code(), -32602);
  EXPECT_EQ(call("run_command", R"({"name":"echo","args":"a"})").error_code(), -32602);
  EXPECT_EQ(call("run_command", "[]").error_code(), -32602);
}

TEST_F(AgentTest, AnArgumentThatTheSchemaDoesNotHaveIsRefusedByEveryTool) {
  std::string marker = folder_ / "ran";
  std::string script = allow_script("script", "touch " + marker);
  Answer misspelt = call("run_command", R"({"name":")" + script + R"(","dryrun":true})");
  EXPECT_EQ(misspelt.error_code(), -32602);
  EXPECT_EQ(misspelt.outcome(), "denied");
  EXPECT_EQ(misspelt.reason(), "invalid_arguments");
  EXPECT_EQ(misspelt.error_message(), "unknown argument \"dryrun\"; did you mean \"dry_run\"?");
  EXPECT_FALSE(std::filesystem::exists(marker));
  for (const protocol::ToolDescription& tool : protocol::builtin_tools()) {
    Answer answer = call(std::string(tool.name), R"({"zzzzzzzzzzzz":1})");
    ASSERT_TRUE(answer.is_error()) << tool.name;
    EXPECT_EQ(answer.error_code(), -32602) << tool.name;
    EXPECT_THAT(answer.error_message(), StartsWith("unknown argument \"zzzzzzzzzzzz\"; the tool takes ")) << tool.name;
  }
}

TEST_F(AgentTest, AMissingArgumentIsNamed) {
  EXPECT_EQ(call("run_command", R"({"args":["a"]})").error_message(), "argument \"name\" is missing");
  EXPECT_EQ(call("run_command", R"({"name":null})").error_message(), "argument \"name\" is missing");
  EXPECT_EQ(call("run_command", "null").error_message(), "argument \"name\" is missing");
  EXPECT_EQ(call("service_control", R"({"action":"start"})").error_message(), "argument \"service\" is missing");
  EXPECT_EQ(call("file_read", "{}").error_message(), "argument \"path\" is missing");
}

TEST(EncodeAnswer, WhatDoesNotFitIntoALineBecomesAFailure) {
  std::string small = encode_answer("1", {.text = "fine", .structured = {}, .outcome = {}, .reason = {}});
  EXPECT_THAT(small, HasSubstr("fine"));
  ToolReply reply;
  reply.text = std::string(protocol::default_max_line_bytes, 'x');
  std::string line = encode_answer("\"abc\"", reply);
  EXPECT_LT(line.size(), 1000U);
  EXPECT_THAT(line, testing::AllOf(HasSubstr(R"("id":"abc")"), HasSubstr("result_too_large"), HasSubstr("failure")));
  reply.error_code = protocol::internal_error_code;
  EXPECT_LT(encode_answer("1", reply).size(), 1000U);
}

TEST_F(AgentTest, RunsAnAllowlistedCommand) {
  Answer answer = call("run_command", R"({"name":"echo","args":["hello","world"]})");
  EXPECT_EQ(answer.text(), "hello world\n");
  EXPECT_FALSE(answer.flagged());
  EXPECT_EQ(answer.outcome(), "success");
  EXPECT_EQ(answer.structured().at("exit_code").as_int64(), 0);
  EXPECT_EQ(answer.structured().at("output").as_string(), "hello world\n");
  EXPECT_EQ(answer.structured().at("output_bytes").as_int64(), 12);
  EXPECT_EQ(answer.structured().at("omitted_bytes").as_int64(), 0);
}

TEST_F(AgentTest, ARefusalIsDeniedInFieldsAndInTheReferencesText) {
  Answer answer = call("run_command", R"({"name":"rm","args":["-rf","/"]})");
  EXPECT_THAT(answer.text(), StartsWith("Command failed/rejected: "));
  EXPECT_THAT(answer.text(), HasSubstr("is not in the approved allowlist"));
  EXPECT_THAT(answer.text(), testing::EndsWith("\nOutput:\n"));
  EXPECT_TRUE(answer.flagged());
  EXPECT_EQ(answer.outcome(), "denied");
  EXPECT_EQ(answer.reason(), "not_allowlisted");
  EXPECT_EQ(call("run_command", "null").outcome(), "denied");
  EXPECT_THAT(call("run_command", R"({"name":"echo","args":["UPPER"]})").text(),
              HasSubstr("do not match the approved pattern"));
  EXPECT_THAT(call("run_command", R"({"name":"true","args":[""]})").text(), HasSubstr("does not allow arguments"));
}

TEST_F(AgentTest, AFailureSaysWhatHappenedAndKeepsTheOutput) {
  std::string path = allow_script("fails", "echo partial; exit 3");
  Answer answer = run(path);
  EXPECT_EQ(answer.text(), "Command failed/rejected: command failed: exit status 3\nOutput:\npartial\n");
  EXPECT_EQ(answer.outcome(), "failure");
  EXPECT_TRUE(answer.flagged());
  EXPECT_EQ(answer.structured().at("exit_code").as_int64(), 3);
}

TEST_F(AgentTest, ASignalIsToldApartFromAnExitCode) {
  std::string killed = allow_script("killed", "kill -9 $$");
  std::string exited = allow_script("exited", "exit 137");
  Answer by_signal = run(killed);
  EXPECT_THAT(by_signal.text(), HasSubstr("command failed: signal: 9 (SIGKILL)"));
  EXPECT_EQ(by_signal.structured().at("signal").as_int64(), 9);
  EXPECT_FALSE(by_signal.structured().as_object().contains("exit_code"));
  EXPECT_THAT(run(exited).text(), HasSubstr("exit status 137"));
}

TEST(CommandReply, AnUnknownExitStatusIsAFailureThatSaysSo) {
  exec::CommandResult result;
  result.ending = exec::Ending::unknown;
  result.problem = "exit status unknown: another part of the system took it";
  result.output.head = "done\n";
  result.output.total_bytes = 5;
  ToolReply reply = command_reply(result, 1024, std::chrono::seconds(1));
  EXPECT_EQ(reply.outcome, protocol::Outcome::failure);
  EXPECT_EQ(reply.reason, "exit_status_unknown");
  EXPECT_THAT(reply.text, testing::AllOf(HasSubstr("exit status unknown"), HasSubstr("done")));
  EXPECT_THAT(reply.structured, testing::Not(HasSubstr("exit_code")));
}

TEST_F(AgentTest, AProgramThatIsNotInstalledIsAFailureNotADenial) {
  allow("no-such-program-here");
  Answer answer = call("run_command", R"({"name":"no-such-program-here"})");
  EXPECT_EQ(answer.outcome(), "failure");
  EXPECT_THAT(answer.text(), HasSubstr("failed to resolve command"));
}

TEST_F(AgentTest, ADryRunRunsNothing) {
  Answer answer = call("run_command", R"({"name":"false","dry_run":true})");
  EXPECT_EQ(answer.outcome(), "success");
  EXPECT_THAT(answer.text(), testing::MatchesRegex("\\[dry-run\\] approved.*/false"));
  EXPECT_EQ(call("run_command", R"({"name":"rm","dry_run":true})").outcome(), "denied");
}

TEST_F(AgentTest, ACommandThatIgnoresSigtermIsKilledInTime) {
  std::string pids = folder_ / "pid";
  std::string path =
      allow_script("stubborn", "trap '' TERM; echo $$ > " + pids + "; while :; do sleep 1; done", milliseconds(500));
  Answer answer = run(path);
  EXPECT_EQ(answer.outcome(), "failure");
  EXPECT_EQ(answer.reason(), "timed_out");
  EXPECT_THAT(answer.text(), StartsWith("Command failed/rejected: command timed out: after 0.5 s; ended with SIGKILL"));
  EXPECT_TRUE(answer.structured().at("timed_out").as_bool());
  EXPECT_FALSE(lives(pid_from(pids)));
}

TEST_F(AgentTest, ABackgroundChildThatHoldsTheOutputIsKilledAndCounted) {
  std::string path = allow_script("background", "sleep 600 & echo started");
  Answer answer = run(path);
  EXPECT_EQ(answer.outcome(), "success");
  EXPECT_EQ(answer.text(), "started\n[left-over processes killed: 1]\n");
  EXPECT_EQ(answer.structured().at("leftover_processes_killed").as_int64(), 1);
}

TEST_F(AgentTest, GigabytesOfOutputComeBackBoundedAndTruthful) {
  std::string path = allow_script("flood", "yes | head -c 500000000; echo the end");
  Answer answer = run(path);
  EXPECT_EQ(answer.outcome(), "success");
  EXPECT_EQ(answer.structured().at("output_bytes").as_int64(), 500'000'008);
  EXPECT_GT(answer.structured().at("omitted_bytes").as_int64(), 498'000'000);
  EXPECT_THAT(answer.text(), HasSubstr("bytes omitted]"));
  EXPECT_TRUE(answer.text().ends_with("\nthe end\n"));
  EXPECT_LT(answer.text().size(), (1U << 20) + 200);
}

TEST_F(AgentTest, BrokenUtf8ComesBackAsValidTextWithAFlag) {
  std::string path = allow_script("broken", "printf 'a\\301b \\342\\202'");
  Answer answer = run(path);
  EXPECT_EQ(answer.outcome(), "success");
  EXPECT_EQ(answer.text(),
            "a\xef\xbf\xbd"
            "b \xef\xbf\xbd");
  EXPECT_TRUE(answer.structured().at("invalid_utf8_replaced").as_bool());
}

TEST_F(AgentTest, BinaryOutputComesBackExactly) {
  std::string path = allow_script("binary", "printf 'a\\000b'");
  Answer answer = run(path);
  EXPECT_EQ(answer.structured().at("output_base64").as_string(), "YQBi");
  EXPECT_EQ(answer.structured().at("output_bytes").as_int64(), 3);
}

TEST_F(AgentTest, AnAnswerFitsIntoALineWhateverMustBeEscaped) {
  std::string path = allow_script("escapes", "head -c 1000000 /dev/zero | tr '\\0' '\\001'");
  config_.allowed_commands.back().max_output_bytes = 1'000'000;
  say(request("1", "run_command", R"({"name":")" + path + R"("})"));
  ASSERT_TRUE(eventually([this] { return !lines().empty(); }));
  EXPECT_LT(lines()[0].size(), protocol::default_max_line_bytes);
  Answer answer = answer_to("1");
  EXPECT_EQ(answer.structured().at("output_bytes").as_int64(), 1'000'000);
  EXPECT_GT(answer.structured().at("omitted_bytes").as_int64(), 0);
}

TEST_F(AgentTest, TheCallersDeadlineCountsWhenItIsEarlier) {
  auto begin = std::chrono::steady_clock::now();
  Answer answer = call("run_command", R"({"name":"sleep","args":["600"]})", R"({"myrmex-hive/timeout_ms":300})");
  EXPECT_EQ(answer.reason(), "timed_out");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(60));
}

TEST_F(AgentTest, CancellingSleepEndsItLongBeforeItsTime) {
  std::string pids = folder_ / "pid";
  std::string path = allow_script("long", "echo $$ > " + pids + "; exec sleep 600");
  say(request("\"17\"", "run_command", R"({"name":")" + path + R"("})"));
  pid_t pid = pid_from(pids);
  auto begin = std::chrono::steady_clock::now();
  say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"17","reason":"enough"}})");
  say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"17"}})");
  Answer answer = answer_to("\"17\"");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(60));
  EXPECT_EQ(answer.outcome(), "cancelled");
  EXPECT_THAT(answer.text(), HasSubstr("command cancelled"));
  EXPECT_FALSE(lives(pid));
}

TEST_F(AgentTest, AFaultThatDetachedItselfOutlivesTheCancelledCall) {
  std::string pids = folder_ / "pid";
  std::string path =
      allow_script("chaos", "setsid nohup sh -c 'echo $$ > " + pids + "; exec sleep 600' >/dev/null 2>&1 & sleep 600");
  say(request("1", "run_command", R"({"name":")" + path + R"("})"));
  pid_t detached = pid_from(pids);
  say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  EXPECT_EQ(answer_to("1").outcome(), "cancelled");
  EXPECT_TRUE(lives(detached));
  ::kill(detached, SIGKILL);
}

TEST_F(AgentTest, ProgressComesOnlyToThoseWhoAskAndNeverAfterTheResult) {
  std::string path = allow_script("talks", "echo one; sleep 0.3; echo two");
  say(request("1", "run_command", R"({"name":")" + path + R"("})"));
  answer_to("1");
  EXPECT_TRUE(lines().empty()) << "progress without a token";
  say(request("2", "run_command", R"({"name":")" + path + R"("})", R"({"progressToken":"tok"})"));
  ASSERT_TRUE(eventually([this] { return lines().size() >= 2; }));
  std::vector<std::string> sent = lines();
  EXPECT_THAT(sent[0], HasSubstr(R"("method":"notifications/progress")"));
  EXPECT_THAT(sent[0], HasSubstr(R"("progressToken":"tok")"));
  EXPECT_THAT(sent[0], HasSubstr("one"));
  answer_to("2");
  Answer after = call("run_command", R"({"name":"true"})");
  EXPECT_EQ(after.outcome(), "success");
  EXPECT_TRUE(
      std::ranges::all_of(lines(), [](const std::string& line) { return line.find("progress") != std::string::npos; }));
}

TEST_F(AgentTest, ASecondCallWithAnIdInUseDoesNotDisturbTheFirst) {
  std::string path = allow_script("slow", "sleep 0.4; echo first");
  say(request("7", "run_command", R"({"name":")" + path + R"("})"));
  say(request("7", "run_command", R"({"name":"true"})"));
  EXPECT_EQ(answer_to("7").error_code(), -32600);
  EXPECT_EQ(answer_to("7").text(), "first\n");
}

TEST_F(AgentTest, ManyCallsRunAtOnce) {
  config_.max_concurrent_calls = 100;
  std::string path = allow_script("slow", "sleep 0.5; echo done");
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i)
    say(request(std::to_string(i), "run_command", R"({"name":")" + path + R"("})"));
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(answer_to(std::to_string(i)).text(), "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(45));
}

TEST_F(AgentTest, BeyondTheLimitACallIsRefusedAsBusy) {
  config_.max_concurrent_calls = 2;
  start();
  say(request("1", "run_command", R"({"name":"sleep","args":["600"]})"));
  say(request("2", "run_command", R"({"name":"sleep","args":["600"]})"));
  say(request("3", "run_command", R"({"name":"true"})"));
  Answer refused = answer_to("3");
  EXPECT_EQ(refused.outcome(), "denied");
  EXPECT_EQ(refused.reason(), "busy");
  say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  answer_to("1");
  EXPECT_EQ(call("run_command", R"({"name":"true"})").outcome(), "success");
}

TEST_F(AgentTest, WhenTheChannelClosesItsCallsEnd) {
  std::string pids = folder_ / "pid";
  std::string path = allow_script("long", "echo $$ > " + pids + "; exec sleep 600");
  say(request("1", "run_command", R"({"name":")" + path + R"("})"));
  pid_t pid = pid_from(pids);
  on_worker([this] { channel_->break_down(); });
  EXPECT_TRUE(eventually([&] { return !lives(pid); }, seconds(3)));
  size_t calls = 1;
  EXPECT_TRUE(eventually([&] {
    on_worker([&] { calls = agent_->running_calls(); });
    return calls == 0;
  }));
  connect();
  EXPECT_EQ(call("run_command", R"({"name":"true"})").outcome(), "success");
}

TEST_F(AgentTest, AnswersWaitWhileTheChannelIsFull) {
  start();
  on_worker([this] { channel_->fill(); });
  say(request("1", "run_command", R"({"name":"echo","args":["late"]})"));
  EXPECT_TRUE(eventually([&] {
    size_t calls = 1;
    on_worker([&] { calls = agent_->running_calls(); });
    return calls == 0;
  }));
  EXPECT_TRUE(lines().empty());
  on_worker([this] {
    EXPECT_FALSE(channel_->is_reading()) << "requests must wait while answers do";
    channel_->drain();
    EXPECT_TRUE(channel_->is_reading());
  });
  EXPECT_EQ(answer_to("1").text(), "late\n");
}

TEST_F(AgentTest, StoppingEndsCallsAnswersThemAndClosesTheChannel) {
  say(request("1", "run_command", R"({"name":"sleep","args":["600"]})"));
  std::promise<void> stopped;
  auto begin = std::chrono::steady_clock::now();
  on_worker([&] { agent_->stop([&] { stopped.set_value(); }); });
  say(request("2", "run_command", R"({"name":"true"})"));
  EXPECT_EQ(answer_to("2").reason(), "stopping");
  EXPECT_EQ(answer_to("1").outcome(), "cancelled");
  stopped.get_future().wait();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(60));
  bool open = true;
  on_worker([&] { open = channel_->is_open(); });
  EXPECT_FALSE(open);
}

TEST_F(AgentTest, ABrokenAllowlistStopsTheStart) {
  allow("echo2", "a)|(?:b");
  auto agent = Agent::create(runtime_, runtime_.worker(0), config_);
  ASSERT_FALSE(agent);
  EXPECT_THAT(agent.error().message, StartsWith("agent.json: allowed_commands[4] (\"echo2\")"));
}

}  // namespace
}  // namespace hive::agent
