#include "cli/mcp_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program_run.h"

namespace hive::cli {
namespace {

using test::run_program;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(McpCommandTest, PrintsAConfigurationWithTheSettingsOfThisShellAndNoToken) {
  test::ProgramRun run =
      run_program({"mcp", "--print-config", "claude-desktop", "--url", "https://gateway.example:8080/"},
                  {{"MYRMEX_TOKEN", "secret-token"}, {"MYRMEX_CACERT", "/etc/hive/ca.pem"}});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, AllOf(HasSubstr("\"mcpServers\": {"), HasSubstr("\"myrmex\": {"), HasSubstr("\"command\": \"/"),
                             HasSubstr("\"--url\""), HasSubstr("\"https://gateway.example:8080/\""),
                             HasSubstr("\"--cacert\""), HasSubstr("\"/etc/hive/ca.pem\"")));
  EXPECT_THAT(run.out + run.error, Not(HasSubstr("secret-token")));
  EXPECT_THAT(run.error, AllOf(HasSubstr("claude_desktop_config.json"), HasSubstr("It holds no token")));
}

TEST(McpCommandTest, VisualStudioCodeHasAFormOfItsOwn) {
  test::TemporaryFolder folder;
  std::string token = folder.write("token", "secret-token");
  test::ProgramRun run = run_program({"mcp", "--print-config", "vscode", "--token-file", token});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, AllOf(HasSubstr("\"servers\": {"), HasSubstr("\"type\": \"stdio\""), HasSubstr(token),
                             Not(HasSubstr("mcpServers"))));
  EXPECT_THAT(run.error, AllOf(HasSubstr(".vscode/mcp.json"), Not(HasSubstr("It holds no token"))));
}

TEST(McpCommandTest, ANamedProfileBringsItsOwnAddress) {
  test::TemporaryFolder folder;
  folder.write("myrmex/config.json", R"({"profiles":{"lab":{"url":"https://lab.example","token":"secret-token"}}})");
  test::ProgramRun run = run_program({"mcp", "--print-config", "cursor", "--profile", "lab"},
                                     {{"XDG_CONFIG_HOME", folder.path()}, {"MYRMEX_URL", "https://elsewhere.example"}});
  EXPECT_EQ(run.exit_code, 0) << run.error;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\"--profile\""), HasSubstr("\"lab\""), Not(HasSubstr("elsewhere"))));
  EXPECT_THAT(run.out + run.error, Not(HasSubstr("secret-token")));
}

TEST(McpCommandTest, AnUnknownClientIsAWrongCommandLine) {
  test::ProgramRun run = run_program({"mcp", "--print-config", "emacs"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.error, HasSubstr("--print-config"));
}

TEST(McpCommandTest, WithoutATokenNothingStarts) {
  EXPECT_EQ(run_program({"mcp"}).exit_code, 7);
}

}  // namespace
}  // namespace hive::cli
