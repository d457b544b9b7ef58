#include "cli/app.h"

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
using testing::Not;
using testing::StartsWith;

constexpr const char* status_body =
    R"({"agents":[{"id":"edge-1","ip":"10.0.0.5","os_version":"Debian 12","running_services":["ssh","nginx"],"open_ports":["22","80"],"online":true},)"
    R"({"id":"edge-2","ip":"10.0.0.6","os_version":"","running_services":null,"open_ports":null,"online":false,"last_seen":"2026-11-30T12:00:00Z"}],)"
    R"("upstreams":[{"name":"git","url":"npx server-git","status":"connected"}],"pending_approvals":2})";

constexpr const char* tools_body =
    R"({"tools":[{"name":"edge-1__run_command","description":"Runs an allowed command","inputSchema":{"properties":{"name":{"type":"string"},"args":{"type":"array","items":{"type":"string"}}}}},)"
    R"({"name":"edge-2__get_metrics","description":"Reads metrics"}]})";

std::string text_answer(std::string_view escaped_text) {
  return R"({"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":")" + std::string(escaped_text) +
         R"("}]}})";
}

class AppTest : public testing::Test {
 protected:
  ProgramRun run(const std::vector<std::string>& words) { return run_program(words, gateway_.variables()); }

  FakeGateway gateway_;
};

TEST_F(AppTest, ShowsHelpAndVersionInEverySpelling) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{}, {"help"}, {"-h"}, {"--help"}}) {
    ProgramRun shown = run_program(words);
    EXPECT_EQ(shown.exit_code, 0);
    EXPECT_THAT(shown.out, AllOf(HasSubstr("Exit codes:"), HasSubstr("doctor"), Not(HasSubstr("__complete"))));
    EXPECT_EQ(shown.error, "");
  }
  for (const char* word : {"version", "--version", "-v"}) {
    ProgramRun shown = run_program({word});
    EXPECT_EQ(shown.exit_code, 0);
    EXPECT_THAT(shown.out, StartsWith("myrmex "));
  }
  EXPECT_THAT(run_program({"help", "call"}).out, HasSubstr("key:=JSON"));
  EXPECT_THAT(run_program({"call", "--help"}).out, HasSubstr("key:=JSON"));
  EXPECT_THAT(run_program({"help", "audit", "verify"}).out, HasSubstr("Usage: myrmex audit verify"));
  EXPECT_EQ(run_program({"help", "nonsense"}).exit_code, 2);
}

TEST_F(AppTest, NamesTheNearestCommandAndOption) {
  ProgramRun unknown = run_program({"stauts"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.error, AllOf(HasSubstr("\"stauts\""), HasSubstr("did you mean \"status\"")));
  ProgramRun option = run_program({"status", "--insecur"});
  EXPECT_EQ(option.exit_code, 2);
  EXPECT_THAT(option.error, HasSubstr("did you mean --insecure"));
  EXPECT_THAT(run_program({"ask"}).error, HasSubstr("not part of this version"));
}

TEST_F(AppTest, OptionsWithoutACommandAreNotEnough) {
  ProgramRun empty = run_program({"-o", "json"});
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_THAT(empty.error, HasSubstr("no command"));
}

TEST_F(AppTest, AMisspeltOptionDoesNotShowItsValue) {
  ProgramRun unknown = run_program({"status", "--tokn=secret-token"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.error, AllOf(HasSubstr("--tokn"), Not(HasSubstr("secret-token"))));
}

TEST_F(AppTest, NeedsATokenForTheGatewayOnly) {
  ProgramRun refused = run_program({"status"}, {{"MYRMEX_URL", gateway_.url()}});
  EXPECT_EQ(refused.exit_code, 7);
  EXPECT_THAT(refused.error, AllOf(HasSubstr("MYRMEX_TOKEN"), HasSubstr("--token-file")));
  EXPECT_TRUE(gateway_.requests.empty());
  EXPECT_EQ(run_program({"completion", "bash"}).exit_code, 0);
  EXPECT_EQ(run_program({"audit", "--help"}).exit_code, 0);
}

TEST_F(AppTest, UnderstandsOptionsBeforeAndAfterTheCommandInOldAndNewSpelling) {
  gateway_.answers["/api/status"] = {200, R"({"agents":[],"upstreams":[]})"};
  const std::string url = gateway_.url();
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--url", url, "--token", "t", "status", "-o", "json"},
           {"status", "--url", url, "--token", "t", "-o", "json"},
           {"status", "-url", url, "-token", "t", "-output", "json"},
           {"status", "-url=" + url, "-token=t", "-o=json"},
           {"status", "--url=" + url + "///", "--token=t", "--output=json"},
           {"-o", "json", "--insecure", "status", "--url", url, "--token", "t"},
           {"status", "-insecure", "--url", url, "--token", "t", "-ojson"},
           {"status", "--insecure=false", "--url", url, "--token", "t", "-o", "json"}}) {
    ProgramRun shown = run_program(words);
    EXPECT_EQ(shown.exit_code, 0) << testing::PrintToString(words) << shown.error;
    EXPECT_EQ(shown.out, "{\"agents\":[],\"upstreams\":[]}\n") << testing::PrintToString(words);
  }
}

TEST_F(AppTest, InsecureDoesNotSwallowTheNextWord) {
  gateway_.answers["/api/call"] = {200, text_answer("up")};
  ProgramRun called = run({"call", "--insecure", "edge-1__run_command"});
  EXPECT_EQ(called.exit_code, 0) << called.error;
  EXPECT_EQ(gateway_.last_body(), R"({"name":"edge-1__run_command","arguments":{}})");
}

TEST_F(AppTest, RefusesABadTimeoutOrFormat) {
  for (const char* seconds : {"0", "-1", "abc", "5x", "1e9", "nan", ""})
    EXPECT_EQ(run({"status", "--timeout", seconds}).exit_code, 2) << seconds;
  EXPECT_EQ(run({"status", "-o", "yaml"}).exit_code, 2);
  EXPECT_EQ(run({"status", "extra"}).exit_code, 2);
  EXPECT_TRUE(gateway_.requests.empty());
}

TEST_F(AppTest, StatusShowsAgentsUpstreamsAndCounts) {
  gateway_.answers["/api/status"] = {200, status_body};
  ProgramRun shown = run({"status"});
  EXPECT_EQ(shown.exit_code, 0) << shown.error;
  EXPECT_EQ(shown.out,
            "Edge agents: 1 online, 1 offline\n"
            "AGENT ID   STATE                                IP ADDRESS   OS VERSION   SERVICES\n"
            "edge-1     online                               10.0.0.5     Debian 12    2\n"
            "edge-2     offline since 2026-11-30T12:00:00Z   10.0.0.6                  0\n"
            "\n"
            "Upstream servers: 1\n"
            "SERVER NAME   TRANSPORT/URL    STATUS\n"
            "git           npx server-git   connected\n"
            "\n"
            "Approvals: 2 waiting for a second person\n");
  EXPECT_THAT(gateway_.requests.front(), HasSubstr("Authorization: Bearer secret-token\r\n"));
  EXPECT_EQ(run({"status", "-o", "json"}).out, std::string(status_body) + "\n");
}

TEST_F(AppTest, AgentsAndUpstreamsPrintTheirPartOfTheStatus) {
  gateway_.answers["/api/status"] = {200, status_body};
  EXPECT_THAT(run({"agents"}).out, AllOf(HasSubstr("PORTS"), HasSubstr("22,80"), HasSubstr("ssh, nginx")));
  EXPECT_THAT(run({"agents", "-o", "json"}).out,
              AllOf(StartsWith("[\n  {\n    \"id\": \"edge-1\""), HasSubstr("last_seen")));
  EXPECT_THAT(run({"upstreams"}).out, HasSubstr("npx server-git"));
  EXPECT_THAT(run({"upstreams", "-o", "json"}).out, StartsWith("[\n  {\n    \"name\": \"git\""));
}

TEST_F(AppTest, AgentsAreAskedForPageByPageAndWithTheFilters) {
  gateway_.answers["/api/status?limit=1000&tag=lab%20a&id=edge-%2A&sort=-os"] = {
      200, R"({"agents":[{"id":"edge-1","online":true,"tags":["lab a"]}],"counts":{"total":2},"next_cursor":"c1"})"};
  gateway_.answers["/api/status?limit=1000&tag=lab%20a&id=edge-%2A&sort=-os&cursor=c1"] = {
      200, R"({"agents":[{"id":"edge-2","status":"never_connected","online":false}],"counts":{"total":2}})"};
  std::vector<std::string> words = {"agents", "--tag", "lab a", "--match", "edge-*", "--sort=-os"};
  ProgramRun shown = run(words);
  EXPECT_EQ(shown.exit_code, 0) << shown.error;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("TAGS"), HasSubstr("lab a"), HasSubstr("never connected")));
  words.insert(words.end(), {"-o", "json"});
  EXPECT_THAT(run(words).out, AllOf(HasSubstr("\"edge-1\""), HasSubstr("\"edge-2\"")));
}

TEST_F(AppTest, AnOrderThatThereIsNotIsAWrongCommandLine) {
  ProgramRun refused = run({"agents", "--sort", "foo"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr(R"(--sort: "foo" is not one of id, address)"));
  EXPECT_TRUE(gateway_.requests.empty());
}

TEST_F(AppTest, NoMoreAgentsAreAskedForThanAreWanted) {
  gateway_.answers["/api/status?limit=1"] = {
      200, R"({"agents":[{"id":"edge-1","online":true}],"counts":{"total":9},"next_cursor":"c1"})"};
  EXPECT_THAT(run({"agents", "--limit", "1"}).out, HasSubstr("... and 8 more"));
}

TEST_F(AppTest, AFleetWithoutEndIsAnError) {
  gateway_.answers["/api/status"] = {200, R"({"agents":[{"id":"edge-1"}],"next_cursor":"again"})"};
  EXPECT_EQ(run({"agents"}).exit_code, 1);
}

TEST_F(AppTest, AgentsThatFlapAreShownSo) {
  gateway_.answers["/api/status"] = {
      200,
      R"({"agents":[{"id":"a","online":true,"flapping":{"since":"2026-11-30T12:00:00Z","contested":true}},)"
      R"({"id":"b","online":false,"offline_since":"2026-11-30T12:00:01Z","flapping":{"since":"2026-11-30T11:00:00Z"}}]})"};
  EXPECT_THAT(run({"agents"}).out, AllOf(HasSubstr("online, CONTESTED since 2026-11-30T12:00:00Z"),
                                         HasSubstr("offline since 2026-11-30T12:00:01Z, flapping since")));
  EXPECT_THAT(run({"status"}).out, HasSubstr("1 online, 1 offline, 2 flapping"));
}

TEST_F(AppTest, AStatusOfManyAgentsShowsTheFirst) {
  gateway_.answers["/api/status?limit=50"] = {
      200, R"({"agents":[{"id":"edge-1","online":true}],"counts":{"total":10000,"online":9990,"never_connected":3}})"};
  EXPECT_THAT(run({"status"}).out, AllOf(HasSubstr("9990 online, 7 offline, 3 never connected"),
                                         HasSubstr("... and 9999 more: `myrmex agents` lists them")));
}

TEST_F(AppTest, EmptyListsSayWhatToDo) {
  gateway_.answers["/api/status"] = {200, R"({"agents":null,"upstreams":null})"};
  gateway_.answers["/api/tools"] = {200, R"({"tools":[]})"};
  EXPECT_THAT(run({"status"}).out,
              AllOf(HasSubstr("No agent is connected. Start one"), HasSubstr("No upstream server")));
  EXPECT_THAT(run({"agents"}).out, HasSubstr("No agent is connected"));
  EXPECT_THAT(run({"tools"}).out, HasSubstr("No tool is offered"));
  EXPECT_EQ(run({"agents", "-o", "json"}).out, "[]\n");
}

TEST_F(AppTest, ToolsCanBeFilteredByAgent) {
  gateway_.answers["/api/tools"] = {200, tools_body};
  EXPECT_EQ(run({"tools", "--agent", "edge-2"}).out,
            "TOOL NAME             DESCRIPTION\nedge-2__get_metrics   Reads metrics\n");
  EXPECT_EQ(run({"tools", "--agent", "edge-2", "-o", "json"}).out,
            "{\"tools\":[{\"name\":\"edge-2__get_metrics\",\"description\":\"Reads metrics\"}]}\n");
  EXPECT_EQ(run({"tools", "--agent", "edge-9"}).exit_code, 5);
  EXPECT_EQ(run({"tools", "-o", "json"}).out, std::string(tools_body) + "\n");
}

TEST_F(AppTest, ToolsComePageByPage) {
  gateway_.answers["/api/tools?limit=5000"] = {200, R"({"tools":[{"name":"a__t"}],"next_cursor":"a"})"};
  gateway_.answers["/api/tools?limit=5000&cursor=a"] = {200, R"({"tools":[{"name":"b__t"}],"next_cursor":null})"};
  EXPECT_EQ(run({"tools", "-o", "json"}).out, "{\"tools\":[{\"name\":\"a__t\"},{\"name\":\"b__t\"}]}\n");
}

TEST_F(AppTest, RemoteNamesCannotSteerTheTerminal) {
  gateway_.answers["/api/status"] = {200, R"({"agents":[{"id":"\u001b]52;c;eA==\u0007","ip":"a\rb"}]})"};
  ProgramRun shown = run({"status"});
  EXPECT_THAT(shown.out, AllOf(HasSubstr("\\x1b]52;c;eA==\\x07"), HasSubstr("a\\rb"), Not(HasSubstr("\x1b"))));
}

TEST_F(AppTest, AnAnswerThatIsNoGatewaysIsAnError) {
  gateway_.answers["/api/status"] = {200, "<html>hello</html>", "Content-Type: text/html\r\n"};
  EXPECT_EQ(run({"status"}).exit_code, 1);
  EXPECT_THAT(run({"status"}).error, HasSubstr("is this a gateway?"));
  gateway_.answers["/api/status"] = {200, R"({"agents":{}})"};
  EXPECT_THAT(run({"status"}).error, HasSubstr("\"agents\" is not an array"));
}

TEST_F(AppTest, HttpErrorsBecomeExitCodesWithTheGatewaysReason) {
  gateway_.answers["/api/status"] = {401, R"({"title":"Unauthorized","detail":"unknown token","request_id":"r1"})"};
  ProgramRun refused = run({"status"});
  EXPECT_EQ(refused.exit_code, 7);
  EXPECT_THAT(refused.error, AllOf(HasSubstr("unknown token (request r1)"), Not(HasSubstr("secret-token"))));
  gateway_.answers["/api/status"] = {403, "role not allowed\nsecond \x1b[2J", ""};
  refused = run({"status"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.error, AllOf(HasSubstr("HTTP 403: role not allowed"), Not(HasSubstr("second"))));
  gateway_.answers["/api/status"] = {302, "", "Location: https://elsewhere/\r\n"};
  EXPECT_THAT(run({"status"}).error, HasSubstr("redirects are not followed"));
}

TEST_F(AppTest, AGatewayThatIsNotThereIsUnreachable) {
  ProgramRun refused = run_program({"status", "--url", "http://127.0.0.1:1"}, {{"MYRMEX_TOKEN", "t"}});
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_THAT(refused.error, AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("refused"), HasSubstr("myrmex doctor")));
}

TEST_F(AppTest, AnUntrustedCertificateNamesTheRemedy) {
  hive::test::TestCertificate certificate = hive::test::make_certificate("IP:127.0.0.1");
  hive::test::ScriptedServer server([](hive::test::Peer& peer) { peer.read_request(); }, &certificate);
  ProgramRun refused = run_program({"status", "--url", server.url()}, {{"MYRMEX_TOKEN", "t"}});
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_THAT(refused.error, AllOf(HasSubstr("not trusted"), HasSubstr("MYRMEX_CACERT or --cacert")));
}

TEST_F(AppTest, OutputThatCannotBeWrittenIsNoSuccess) {
  gateway_.answers["/api/status"] = {200, status_body};
  UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  UniqueFd error(::memfd_create("error", MFD_CLOEXEC));
  Output output(full.get(), error.get());
  test::Variables variables = gateway_.variables();
  int exit_code = cli::run(
      {"status"},
      [&](std::string_view name) -> std::optional<std::string> {
        auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      output);
  EXPECT_EQ(exit_code, 1);
  EXPECT_THAT(test::content_of(error), HasSubstr("No space left"));
}

}  // namespace
}  // namespace hive::cli
