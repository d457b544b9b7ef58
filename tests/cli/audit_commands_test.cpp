#include "cli/audit_commands.h"

#include <cstdlib>
#include <filesystem>
#include <thread>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>

#include "cli/audit_export.h"
#include "gateway/audit/entry.h"
#include "gateway/audit/support.h"
#include "protocol/json.h"

namespace hive::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct CommandRun {
  int exit_code = -1;
  std::string out;
  std::string error;
};

class AuditCommands : public audit::LogTest {
 protected:
  void SetUp() override {
    ::unsetenv("MYRMEX_AUDIT_LOG");
    ::unsetenv("MYRMEX_HOST_KEY");
    public_key_ = folder_.write("host_key.pub", key_.public_key().to_line() + "\n", 0644);
  }

  // `myrmex audit WORDS...`; a wrong command line ends with 2, as in the program.
  CommandRun run(std::vector<std::string> words, bool as_json = false) {
    CommandRun result;
    CLI::App app;
    app.require_subcommand(1);
    Environment environment = [](std::string_view) { return std::nullopt; };
    Output output(STDOUT_FILENO, STDERR_FILENO);
    Context context{environment, output, GlobalOptions{}, OutputOptions{.json = as_json, .color = false}};
    add_audit_commands(app, result.exit_code, context);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    words.insert(words.begin(), "audit");
    std::ranges::reverse(words);
    try {
      app.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
      result.exit_code = 2;
      result.error = error.what();
    }
    result.out = ::testing::internal::GetCapturedStdout();
    result.error += ::testing::internal::GetCapturedStderr();
    return result;
  }

  CommandRun run_here(std::vector<std::string> words, bool as_json = false) {
    words.insert(words.end(), {"--log", options_.path, "--host-key", public_key_});
    return run(std::move(words), as_json);
  }

  void write_calls() {
    auto log = open_good();
    ASSERT_TRUE(log);
    ASSERT_TRUE(log->append(audit::intent("c1")));
    ASSERT_TRUE(log->append(audit::outcome("c1", protocol::Outcome::success)));
    audit::Record denied = audit::outcome("c2", protocol::Outcome::denied);
    denied.agent = "edge-1";
    denied.tool = "run_command";
    denied.principal = "=HYPERLINK(\"http://evil\")";
    denied.detail = "two\nlines, \"quoted\"";
    ASSERT_TRUE(log->append(denied));
  }

  std::string public_key_;
};

TEST_F(AuditCommands, VerifyTellsAGoodLogFromABadOne) {
  write_calls();
  CommandRun good = run_here({"verify"});
  EXPECT_EQ(good.exit_code, 0) << good.error;
  EXPECT_THAT(good.out, AllOf(StartsWith("good"), HasSubstr("3 under"), HasSubstr("denied 1, success 1"),
                              HasSubstr(key_.public_key().fingerprint())));
  std::string text = content();
  text[text.find("edge-1")] = 'E';
  replace_content(text);
  CommandRun bad = run_here({"verify"});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_THAT(bad.out, AllOf(StartsWith("BAD"), HasSubstr("line 5"), HasSubstr("Merkle root")));
}

TEST_F(AuditCommands, VerifyAsJsonIsOneObjectWithTheVerdict) {
  write_calls();
  CommandRun good = run_here({"verify"}, true);
  auto members = json::parse_object(trim(good.out));
  ASSERT_TRUE(members) << good.out;
  EXPECT_EQ(json::find(*members, "good"), "true");
  EXPECT_EQ(json::find(*members, "total_entries"), "3");
  EXPECT_EQ(json::find(*members, "by_outcome"), R"({"denied":1,"success":1})");
  replace_content("");
  CommandRun bad = run_here({"verify"}, true);
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_THAT(bad.out, AllOf(HasSubstr("\"good\":false"), HasSubstr("\"failure\"")));
}

TEST_F(AuditCommands, ARememberedCheckpointIsKeptAndNoticesACutEnd) {
  write_calls();
  std::string seen = folder_.path("seen.note");
  std::string before = content();
  EXPECT_EQ(run_here({"verify", "--remember", seen}).exit_code, 0);
  std::string first_note = test::content_of(seen);
  EXPECT_THAT(first_note, StartsWith("hive.test/audit\n3\n"));
  write_batches(2);
  EXPECT_EQ(run_here({"verify", "--remember", seen}).exit_code, 0);
  std::string second_note = test::content_of(seen);
  EXPECT_THAT(second_note, StartsWith("hive.test/audit\n5\n"));
  replace_content(before);
  CommandRun cut = run_here({"verify", "--remember", seen});
  EXPECT_EQ(cut.exit_code, 1);
  EXPECT_THAT(cut.out, HasSubstr("its end was removed"));
  EXPECT_EQ(test::content_of(seen), second_note);
  EXPECT_EQ(run_here({"verify", "--checkpoint", seen}).exit_code, 1);
  EXPECT_EQ(run_here({"verify", "--min-size", "3"}).exit_code, 0);
  EXPECT_EQ(run_here({"verify", "--min-size", "4"}).exit_code, 1);
}

TEST_F(AuditCommands, ARememberedCheckpointThatIsNotSignedIsAnError) {
  write_calls();
  std::string seen = folder_.write("seen.note", "hive.test/audit\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n");
  CommandRun forged = run_here({"verify", "--remember", seen});
  EXPECT_EQ(forged.exit_code, 1);
  EXPECT_THAT(forged.error, HasSubstr(seen));
}

TEST_F(AuditCommands, TheHostKeyMayBeThePrivateFile) {
  write_calls();
  std::string lonely = folder_.write("lonely", key_.to_openssh());
  CommandRun derived = run({"verify", "--log", options_.path, "--host-key", lonely});
  EXPECT_EQ(derived.exit_code, 0) << derived.error;
  CommandRun printed = run({"pubkey", "--host-key", lonely});
  EXPECT_EQ(printed.exit_code, 0);
  EXPECT_EQ(printed.out, key_.public_key().to_line() + "\n");
}

TEST_F(AuditCommands, PubkeyRefusesWhatIsNoHostKey) {
  CommandRun rsa =
      run({"pubkey", "--host-key", folder_.write("rsa.pub", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQA= x\n")});
  EXPECT_EQ(rsa.exit_code, 1);
  EXPECT_THAT(rsa.error, HasSubstr("ssh-ed25519"));
  EXPECT_EQ(run({"pubkey", "--host-key", folder_.write("junk", "junk\n")}).exit_code, 1);
  EXPECT_EQ(run({"pubkey", "--host-key", folder_.path("missing")}).exit_code, 1);
}

TEST_F(AuditCommands, AWrongCommandLineEndsWithTwoAndNamesWhatIsMissing) {
  EXPECT_EQ(run({}).exit_code, 2);
  EXPECT_EQ(run({"frobnicate"}).exit_code, 2);
  EXPECT_THAT(run({"verify"}).error, HasSubstr("MYRMEX_AUDIT_LOG"));
  EXPECT_THAT(run({"verify", "--log", "x"}).error, HasSubstr("MYRMEX_HOST_KEY"));
  for (std::string command : {"list", "export", "checkpoint"})
    EXPECT_THAT(run({command}).error, HasSubstr("MYRMEX_AUDIT_LOG")) << command;
  EXPECT_EQ(run_here({"watch", "--interval", "0"}).exit_code, 2);
  EXPECT_EQ(run_here({"watch", "--interval", "often"}).exit_code, 2);
  EXPECT_EQ(run_here({"export", "--format", "xml"}).exit_code, 2);
  EXPECT_EQ(run_here({"prove", "-1"}).exit_code, 2);
  EXPECT_EQ(run_here({"list", "--limit", "0"}).exit_code, 2);
}

TEST_F(AuditCommands, TheEnvironmentNamesLogAndKey) {
  write_calls();
  ::setenv("MYRMEX_AUDIT_LOG", options_.path.c_str(), 1);
  ::setenv("MYRMEX_HOST_KEY", public_key_.c_str(), 1);
  EXPECT_EQ(run({"verify"}).exit_code, 0);
  ::unsetenv("MYRMEX_AUDIT_LOG");
  ::unsetenv("MYRMEX_HOST_KEY");
}

TEST_F(AuditCommands, WatchSeesALogGoBadAndRaisesTheAlarm) {
  write_calls();
  std::jthread tamperer([this] {
    // Once the first look is over, which leaves its note, the log is cut behind the watcher's back.
    std::string seen = folder_.path("seen.note");
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!std::filesystem::exists(seen) && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    std::filesystem::resize_file(options_.path, 100);
  });
  CommandRun watched = run_here({"watch", "--interval", "0.01", "--remember", folder_.path("seen.note")});
  EXPECT_EQ(watched.exit_code, 1);
  EXPECT_THAT(watched.out, AllOf(HasSubstr("entries=3"), HasSubstr("status=OK"), HasSubstr("status=FAILED")));
  EXPECT_THAT(watched.error, AllOf(StartsWith("ALERT: "), HasSubstr("shorter")));
}

TEST_F(AuditCommands, WatchTakesAMissingLogForAnAlarm) {
  CommandRun watched = run_here({"watch"});
  EXPECT_EQ(watched.exit_code, 1);
  EXPECT_THAT(watched.error, StartsWith("ALERT: "));
}

TEST_F(AuditCommands, ExportsJsonThatHoldsEveryField) {
  write_calls();
  CommandRun exported = run_here({"export"});
  EXPECT_EQ(exported.exit_code, 0) << exported.error;
  auto entries = json::parse_array(trim(exported.out));
  ASSERT_TRUE(entries) << exported.out;
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_TRUE(audit::EntryView::parse((*entries)[2])->equals(audit::Field::outcome, "denied"));
}

TEST_F(AuditCommands, AnEmptyLogExportsAsAnEmptyArray) {
  write_batches(0);
  EXPECT_EQ(run_here({"export"}).out, "[]\n");
}

TEST_F(AuditCommands, ExportsCsvThatNoSpreadsheetRuns) {
  write_calls();
  std::string out = folder_.path("log.csv");
  CommandRun exported = run_here({"export", "--format", "csv", "--out", out});
  EXPECT_EQ(exported.exit_code, 0) << exported.error;
  EXPECT_THAT(exported.error, HasSubstr("3 entries"));
  std::string csv = test::content_of(out);
  EXPECT_THAT(csv, StartsWith("seq,time,kind,"));
  EXPECT_THAT(csv, HasSubstr("\"'=HYPERLINK(\"\"http://evil\"\")\""));
  EXPECT_THAT(csv, HasSubstr("\"two\nlines, \"\"quoted\"\"\""));
}

TEST_F(AuditCommands, ABadLogLeavesTheExportedFileAsItWas) {
  write_calls();
  std::string text = content();
  text[text.find("edge-1")] = 'E';
  replace_content(text);
  std::string out = folder_.write("out.json", "old");
  CommandRun exported = run_here({"export", "--out", out});
  EXPECT_EQ(exported.exit_code, 1);
  EXPECT_THAT(exported.error, HasSubstr("line 5"));
  EXPECT_EQ(test::content_of(out), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(std::filesystem::path(out).parent_path()), {}), 3);
}

TEST(CsvCell, FollowsRfc4180AndDefusesFormulas) {
  EXPECT_EQ(csv_cell("plain"), "plain");
  EXPECT_EQ(csv_cell(""), "");
  EXPECT_EQ(csv_cell("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_cell("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(csv_cell("a\r\nb"), "\"a\r\nb\"");
  for (std::string_view start : {"=", "+", "-", "@"})
    EXPECT_EQ(csv_cell(std::string(start) + "1"), "'" + std::string(start) + "1");
  EXPECT_EQ(csv_cell("\tx"), "'\tx");
}

TEST_F(AuditCommands, AProofIsMadeAndCheckedWithoutTheLog) {
  write_calls();
  std::string proof = folder_.path("1.proof");
  EXPECT_EQ(run_here({"prove", "1", "--out", proof}).exit_code, 2);  // prove needs no key
  EXPECT_EQ(run({"prove", "1", "--log", options_.path, "--out", proof}).exit_code, 0);
  std::filesystem::remove(options_.path);
  CommandRun checked = run({"check", proof, "--host-key", public_key_});
  EXPECT_EQ(checked.exit_code, 0) << checked.error;
  EXPECT_THAT(checked.out, AllOf(StartsWith("good"), HasSubstr("entry 1"), HasSubstr("\"outcome\":\"success\"")));
  EXPECT_EQ(run({"check", proof, "--host-key", public_key_, "--origin", "another"}).exit_code, 1);

  std::string forged = test::content_of(proof);
  forged.replace(forged.find("success"), 7, "failure");
  CommandRun refused = run({"check", folder_.write("forged", forged), "--host-key", public_key_});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.error, HasSubstr("does not lead to the signed root"));
}

TEST_F(AuditCommands, StockSshKeygenChecksACheckpoint) {
  write_calls();
  std::string out = folder_.path("checkpoint");
  CommandRun written = run_here({"checkpoint", "--out", out});
  ASSERT_EQ(written.exit_code, 0) << written.error;
  std::string command = "cd '" + out +
                        "' && ssh-keygen -Y verify -f allowed_signers -I hive.test/audit -n myrmex-audit-checkpoint -s "
                        "checkpoint.txt.sig < checkpoint.txt";
  auto good = test::run_command(command);
  EXPECT_EQ(good.status, 0) << good.output;
  folder_.write("checkpoint/checkpoint.txt", "hive.test/audit\n4\n");
  EXPECT_NE(test::run_command(command).status, 0);
  CommandRun printed = run({"checkpoint", "--log", options_.path});
  EXPECT_EQ(printed.out, test::content_of(out + "/checkpoint.note"));
}

TEST_F(AuditCommands, ACheckpointOfAnotherKeyIsNotWritten) {
  write_calls();
  std::string other = folder_.write("other.pub", crypto::PrivateKey::generate("").value().public_key().to_line());
  std::string out = folder_.path("checkpoint");
  EXPECT_EQ(run({"checkpoint", "--log", options_.path, "--host-key", other, "--out", out}).exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(out + "/checkpoint.txt"));
}

TEST_F(AuditCommands, ListPrintsRemoteTextEscapedAndTheNewestLast) {
  {
    auto log = open_good();
    ASSERT_TRUE(log);
    audit::Record evil = audit::record("evil\x1b[2J");
    ASSERT_TRUE(log->append(evil));
    ASSERT_TRUE(log->append(audit::record("later")));
  }
  CommandRun listed = run({"list", "--log", options_.path});
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_THAT(listed.out, Not(HasSubstr("\x1b")));
  EXPECT_LT(listed.out.find("evil"), listed.out.find("later"));
  CommandRun filtered = run({"list", "--log", options_.path, "--action", "later"}, true);
  auto members = json::parse_object(trim(filtered.out));
  ASSERT_TRUE(members) << filtered.out;
  EXPECT_EQ(json::parse_array(*json::find(*members, "entries"))->size(), 1u);
  EXPECT_EQ(run({"list", "--log", options_.path, "--since", "yesterday"}).exit_code, 2);
}

TEST_F(AuditCommands, ListSaysOnceThatItDoesNotVerifyAndNotBesideJson) {
  write_calls();
  CommandRun listed = run({"list", "--log", options_.path});
  EXPECT_EQ(listed.error, "not verified; run myrmex audit verify\n");
  EXPECT_EQ(run({"list", "--log", options_.path}, true).error, "");
}

TEST_F(AuditCommands, ListCutsLongArgumentsWithoutATerminalToo) {
  {
    auto log = open_good();
    ASSERT_TRUE(log);
    audit::Record long_one = audit::intent("c1");
    long_one.arguments = std::string(10000, 'x');
    ASSERT_TRUE(log->append(long_one));
  }
  CommandRun listed = run({"list", "--log", options_.path});
  EXPECT_THAT(listed.out, HasSubstr("xxxx"));
  EXPECT_LT(listed.out.size(), 1000u);
  EXPECT_GT(run({"list", "--log", options_.path}, true).out.size(), 10000u);
}

TEST_F(AuditCommands, NothingIsProvedOrSignedForFromATamperedLog) {
  write_calls();
  std::string text = content();
  text[text.find("edge-1")] = 'E';
  replace_content(text);
  std::string proof = folder_.path("0.proof");
  std::string out = folder_.path("checkpoint");
  for (const CommandRun& refused : {run({"prove", "0", "--log", options_.path, "--out", proof}),
                                    run_here({"checkpoint", "--out", out}), run_here({"checkpoint"})}) {
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.error, AllOf(StartsWith("myrmex: BAD "), HasSubstr("line 5"), HasSubstr("Merkle root")));
  }
  EXPECT_FALSE(std::filesystem::exists(proof));
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(AuditCommands, EntriesBehindTheLastCheckpointDoNotStopAProofAndAreTold) {
  write_calls();
  replace_content(content() + R"({"seq":3,"time":"t","kind":"event"})" + "\n");
  CommandRun proved = run({"prove", "1", "--log", options_.path});
  EXPECT_EQ(proved.exit_code, 0) << proved.error;
  EXPECT_THAT(proved.error, HasSubstr("1 entries at the end, which no checkpoint covers"));
  EXPECT_EQ(run({"prove", "3", "--log", options_.path}).exit_code, 1);
}

TEST_F(AuditCommands, ABadVerdictNamesASignerOnlyIfThatOneSigned) {
  write_calls();
  std::string other = folder_.write("other.pub", crypto::PrivateKey::generate("").value().public_key().to_line());
  CommandRun not_signed = run({"verify", "--log", options_.path, "--host-key", other});
  EXPECT_EQ(not_signed.exit_code, 1);
  EXPECT_THAT(not_signed.out,
              AllOf(Not(HasSubstr("  signed by")), HasSubstr("expected key SHA256:"), HasSubstr("not verified")));
  CommandRun as_json = run({"verify", "--log", options_.path, "--host-key", other}, true);
  EXPECT_THAT(as_json.out, HasSubstr("\"signed\":false"));
  CommandRun other_origin = run_here({"verify", "--origin", "elsewhere"});
  EXPECT_EQ(other_origin.exit_code, 1);
  EXPECT_THAT(other_origin.out, AllOf(Not(HasSubstr("  signed by")), HasSubstr("expected     origin elsewhere")));
  CommandRun too_short = run_here({"verify", "--min-size", "100"});
  EXPECT_EQ(too_short.exit_code, 1);
  EXPECT_THAT(too_short.out, HasSubstr("signed by    " + key_.public_key().fingerprint()));
}

TEST_F(AuditCommands, NumbersThatAreNoneAreAWrongCommandLine) {
  write_calls();
  for (const CommandRun& wrong :
       {run({"prove", "--log", options_.path, "--", "-1"}), run({"prove", "1x", "--log", options_.path}),
        run_here({"verify", "--min-size", "-1"}), run_here({"verify", "--min-size=-1"}),
        run({"list", "--log", options_.path, "--before", "-5"}),
        run({"list", "--log", options_.path, "--until", "now"}),
        run({"prove", "--log", options_.path, "18446744073709551616"})}) {
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_THAT(wrong.error, Not(HasSubstr("18446744073709551615")));
  }
}

TEST_F(AuditCommands, AFileThatCannotBeWrittenIsNamedAsItWasGiven) {
  write_calls();
  std::string target = folder_.path("nodir/x");
  for (const CommandRun& failed :
       {run_here({"verify", "--remember", target}), run({"prove", "0", "--log", options_.path, "--out", target})}) {
    EXPECT_EQ(failed.exit_code, 1);
    EXPECT_EQ(failed.error, "myrmex: " + target + ": No such file or directory\n");
  }
}

TEST_F(AuditCommands, TheCommandThatCheckpointPrintsWorksFromWhereTheUserStands) {
  write_calls();
  for (std::string name : {"plain", "with blank", "it's"}) {
    std::string out = folder_.path(name);
    CommandRun written = run_here({"checkpoint", "--out", out});
    ASSERT_EQ(written.exit_code, 0) << written.error;
    auto start = written.error.find("ssh-keygen");
    ASSERT_NE(start, std::string::npos);
    auto checked = test::run_command(written.error.substr(start, written.error.find('\n', start) - start));
    EXPECT_EQ(checked.status, 0) << written.error << checked.output;
  }
}

}  // namespace
}  // namespace hive::cli
