#include "cli/token_commands.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "cli/program_run.h"
#include "crypto/sha256.h"
#include "gateway/policy/authenticator.h"

namespace hive::cli {
namespace {

using test::ProgramRun;
using test::run_program;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* token = "0123456789abcdefghij";

/// Runs with `input` as standard input.
ProgramRun run_with_input(const std::string& input, std::vector<std::string> words) {
  test::TemporaryFolder folder;
  UniqueFd file(::open(folder.write("in", input).c_str(), O_RDONLY | O_CLOEXEC));
  UniqueFd saved(::dup(STDIN_FILENO));
  ::dup2(file.get(), STDIN_FILENO);
  ProgramRun run = run_program(words);
  ::dup2(saved.get(), STDIN_FILENO);
  return run;
}

TEST(TokenNewTest, MakesAnotherTokenEachTimeWithItsHash) {
  ProgramRun first = run_program({"token", "new"});
  EXPECT_EQ(first.exit_code, 0) << first.error;
  std::string made = first.out.substr(11, 64);
  EXPECT_EQ(first.out.substr(0, 11), "token      ");
  EXPECT_THAT(first.out, AllOf(HasSubstr("sha256:" + to_hex(crypto::sha256(made)) + "\n"),
                               HasSubstr(policy::token_principal_name(made) + "\n")));
  EXPECT_EQ(made.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(run_program({"token", "new"}).out, first.out);
}

TEST(TokenNewTest, PrintsTheEntryOfTheConfiguration) {
  EXPECT_THAT(run_program({"token", "new", "--role", "operator", "--identity", "alice"}).out,
              HasSubstr(R"(": {"role": "operator", "identity": "alice"})"));
  ProgramRun json = run_program({"token", "new", "--role", "read-only", "-o", "json"});
  EXPECT_THAT(json.out, AllOf(HasSubstr("\"tokens\": {\n    \"sha256:"), HasSubstr("\": \"read-only\"")));
  EXPECT_EQ(run_program({"token", "new", "--role", "root"}).exit_code, 2);
}

TEST(TokenHashTest, PrintsTheHashAloneOnStandardOutput) {
  std::string hash = "sha256:" + to_hex(crypto::sha256(std::string_view(token)));
  for (const char* end : {"", "\n", "\r\n"}) {
    ProgramRun hashed = run_with_input(std::string(token) + end, {"token", "hash"});
    EXPECT_EQ(hashed.exit_code, 0) << hashed.error;
    EXPECT_EQ(hashed.out, hash + "\n");
    EXPECT_EQ(hashed.error, "in the audit log: " + policy::token_principal_name(token) + "\n");
  }
  EXPECT_EQ(run_with_input(token, {"token", "hash", "-o", "json"}).out,
            "{\n  \"hash\": \"" + hash + "\",\n  \"principal\": \"" + policy::token_principal_name(token) + "\"\n}\n");
}

TEST(TokenHashTest, RefusesWhatIsNoGoodTokenAndNeverRepeatsIt) {
  for (const std::string& wrong :
       {std::string("short"), std::string("two words of a long text"), std::string(""),
        "sha256:" + std::string(64, 'a'), std::string(5000, 'a'), std::string("\xc3\xa4") + token}) {
    ProgramRun refused = run_with_input(wrong, {"token", "hash"});
    EXPECT_NE(refused.exit_code, 0) << wrong;
    EXPECT_EQ(refused.out, "");
    if (!wrong.empty() && wrong != "short") {
      EXPECT_THAT(refused.error, Not(HasSubstr(wrong)));
    }
  }
  EXPECT_EQ(run_with_input("short", {"token", "hash", "--force"}).exit_code, 0);
}

TEST(TokenHashTest, TakesNoTokenFromTheCommandLine) {
  EXPECT_EQ(run_program({"token", "hash", token}).exit_code, 2);
}

}  // namespace
}  // namespace hive::cli
