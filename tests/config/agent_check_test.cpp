#include "config/agent_check.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/temporary_folder.h"
#include "crypto/ssh_key.h"
#include "protocol/json.h"

namespace hive::config {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Checks a configuration with one entry on a machine of its own: a folder of programs and a key.
class AgentCheck : public ::testing::Test {
 protected:
  AgentCheck() {
    folder_.write("id", crypto::PrivateKey::generate("a1")->to_openssh(), 0600);
    options_.search_path = folder_ / "";
    options_.search_path.pop_back();
  }

  std::string command(std::string_view name, std::string_view pattern, std::string_view more = "") {
    if (!name.contains('/')) folder_.write(name, "#!/bin/sh\n", 0755);
    return fmt::format(R"({{"name":"{}","args_regex":{}{}}})", name, json::encode_string(pattern), more);
  }

  CheckReport check_entries(std::string_view entries, std::string_view more = "") {
    std::string path = folder_.write("agent.json",
                                     fmt::format(R"({{"agent_id":"a1","gateway_addr":"gw","private_key_path":"id",
                                                     "allowed_commands":[{}]{}}})",
                                                 entries, more),
                                     0644);
    return check_agent_config(path, options_);
  }

  CheckReport check(std::string_view name, std::string_view pattern, std::string_view more = "") {
    return check_entries(command(name, pattern, more));
  }

  /// The codes of the findings of the first entry.
  std::vector<std::string> codes(std::string_view name, std::string_view pattern, std::string_view more = "") {
    boost::json::value report = boost::json::parse(check(name, pattern, more).json);
    std::vector<std::string> found;
    for (const boost::json::value& finding : report.at("entries").at(0).at("findings").as_array()) {
      found.emplace_back(finding.at("code").as_string().c_str());
    }
    return found;
  }

  TemporaryFolder folder_;
  CheckOptions options_;
};

TEST_F(AgentCheck, FindsNothingInACloselyWrittenEntry) {
  EXPECT_THAT(codes("uptime", "^$"), IsEmpty());
  EXPECT_THAT(codes("df", "-h"), IsEmpty());
  EXPECT_THAT(codes("systemctl", "^(status|restart) (nginx|postgresql)$"), IsEmpty());
  EXPECT_THAT(codes("curl", "-s --max-time [1-9] http://127\\.0\\.0\\.1:8080/healthz"), IsEmpty());
  EXPECT_THAT(codes("systemctl", "status [a-z][a-z0-9-]*"), IsEmpty());
  EXPECT_THAT(codes("journalctl", "-u nginx -n [1-9]\\d{0,3} --no-pager"), IsEmpty());
}

TEST_F(AgentCheck, ExplainsAlternativesThatAreNotAnchoredTogether) {
  CheckReport report = check("systemctl", "^status|logs$");
  ASSERT_EQ(report.warnings.size(), 1U);
  EXPECT_THAT(report.warnings[0],
              AllOf(HasSubstr("exactly \"status\" or \"logs\" is admitted"), HasSubstr("^(...|...)$")));
  EXPECT_THAT(codes("x", "^(a|b)$"), IsEmpty());
  EXPECT_THAT(codes("x", "(a)|(b)"), IsEmpty());
  EXPECT_THAT(codes("x", "^a$|^b$"), IsEmpty());
}

TEST_F(AgentCheck, WarnsOfPatternsThatAdmitAnything) {
  EXPECT_THAT(codes("ls", ".*"), ElementsAre("anything"));
  EXPECT_THAT(codes("ls", "^.+$"), ElementsAre("anything"));
}

TEST_F(AgentCheck, WarnsOfOperandsThatCanBeOptions) {
  EXPECT_THAT(codes("systemctl", "status [a-z-]+"), ElementsAre("option"));
  EXPECT_THAT(codes("systemctl", "status -- [a-z-]+"), IsEmpty());
  EXPECT_THAT(codes("ping", "-c 1 \\S+"), ElementsAre("any_word"));
}

TEST_F(AgentCheck, WarnsOfPathsThatLeaveTheirFolder) {
  EXPECT_THAT(codes("cat", "/var/log/.*"), Contains("path"));
  EXPECT_THAT(codes("cat", "/var/log/\\S+"), Contains("path"));
  EXPECT_THAT(codes("cat", "/var/log/[a-z./]+"), Contains("path"));
  EXPECT_THAT(codes("cat", "/var/log/[a-z]+\\.log"), IsEmpty());
}

TEST_F(AgentCheck, WarnsOfUrlsThatLeadElsewhere) {
  EXPECT_THAT(codes("curl", "https?://\\S+"), Contains("url_host"));
  EXPECT_THAT(codes("curl", "http://127\\.0\\.0\\.1.*"), Contains("url_host"));
  EXPECT_THAT(codes("curl", "https://api.example.com/x"), Contains("url_host"));
  EXPECT_THAT(codes("curl", "http://127\\.0\\.0\\.1/[a-z./]*"), ElementsAre("url_path"));
}

TEST_F(AgentCheck, ShowsTheArgumentLineThatProvesAWarning) {
  CheckReport report = check("cat", "/var/log/[a-z./]+");
  EXPECT_THAT(report.warnings, Contains(HasSubstr("(admitted: /var/log/../../zz)")));
  EXPECT_THAT(report.text, HasSubstr("cat /var/log/../../zz"));
}

TEST_F(AgentCheck, WarnsOfTimeLimitsThatCanBeSwitchedOff) {
  EXPECT_THAT(codes("curl", "-s --max-time \\d{1,2} http://127\\.0\\.0\\.1/"), ElementsAre("no_time_limit"));
  EXPECT_THAT(codes("wget", "-q -T \\d http://127\\.0\\.0\\.1/"), ElementsAre("no_time_limit"));
  EXPECT_THAT(codes("wget", "--timeout=\\d http://127\\.0\\.0\\.1/"), ElementsAre("no_time_limit"));
}

TEST_F(AgentCheck, WarnsOfPortsThatDoNotExist) {
  EXPECT_THAT(codes("curl", "http://127\\.0\\.0\\.1:\\d{1,5}/"), ElementsAre("port"));
  EXPECT_THAT(codes("nc", "-z 127\\.0\\.0\\.1 \\d{1,5}"), ElementsAre("port"));
}

TEST_F(AgentCheck, WarnsOfLocalhostInAProbe) {
  EXPECT_THAT(codes("curl", "http://(localhost|127\\.0\\.0\\.1)/"), ElementsAre("localhost"));
  EXPECT_THAT(codes("nc", "-z localhost 80"), ElementsAre("localhost"));
  EXPECT_THAT(codes("dig", "localhostess\\.example"), IsEmpty());
}

TEST_F(AgentCheck, WarnsOfShellsInterpretersAndProgramsThatRunPrograms) {
  for (std::string_view name : {"sh", "bash", "busybox", "zsh"}) {
    EXPECT_THAT(codes(name, "-c [a-z]+"), ElementsAre("shell")) << name;
  }
  for (std::string_view name : {"python3.11", "perl", "awk", "php8.2", "lua5.4"}) {
    EXPECT_THAT(codes(name, "x"), ElementsAre("interpreter")) << name;
  }
  for (std::string_view name : {"env", "xargs", "find", "sudo", "ssh", "tar", "tcpdump", "docker", "ip"}) {
    EXPECT_THAT(codes(name, "x[a-z]+"), ElementsAre("runs_programs")) << name;
  }
}

TEST_F(AgentCheck, LetsAProgramThatRunsProgramsHaveAClosedListOfArguments) {
  EXPECT_THAT(codes("docker", "ps( -a)?"), IsEmpty());
  EXPECT_THAT(codes("env", ""), IsEmpty());
}

TEST_F(AgentCheck, WarnsOfAnEntryThatIsNeverAsked) {
  CheckReport report = check_entries(command("df", "-h") + "," + command("df", "-i"));
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("allowed_commands[1] df: is never asked")));
}

TEST_F(AgentCheck, WarnsOfAProgramThatIsNotThere) {
  EXPECT_THAT(codes("/nowhere/x", ""), ElementsAre("missing"));
}

TEST_F(AgentCheck, WarnsOfAProgramThatOthersCanChange) {
  std::string path = folder_.write("tool", "", 0775);
  EXPECT_THAT(codes(path, ""), ElementsAre("writable"));
  folder_.write("tool", "", 0755);
  EXPECT_THAT(codes(path, ""), IsEmpty());
}

TEST_F(AgentCheck, WarnsOfAnEnvironmentThatChangesTheProgram) {
  EXPECT_THAT(codes("ls", "", R"(,"env":{"LD_PRELOAD":"/x"})"), ElementsAre("environment"));
}

TEST_F(AgentCheck, WarnsOfAUserWhoDoesNotExist) {
  EXPECT_THAT(codes("ls", "", R"(,"user":"no-such-user-here")"), ElementsAre("user"));
}

TEST_F(AgentCheck, WarnsWhenFileReadReachesThePrivateKey) {
  std::string root = folder_ / "";
  CheckReport report = check_entries("", fmt::format(R"(,"file_read_roots":["{}"])", root));
  EXPECT_THAT(report.warnings, Contains(HasSubstr("holds the agent's private key")));
}

TEST_F(AgentCheck, ExitsWithZeroOnWarningsAndOneOnErrors) {
  CheckReport warned = check("bash", "x");
  EXPECT_THAT(warned.warnings, Not(IsEmpty()));
  EXPECT_EQ(warned.exit_code(), 0);
  CheckReport broken = check("ls", "(");
  EXPECT_THAT(broken.errors, ElementsAre(HasSubstr("allowed_commands[0].args_regex: not a valid RE2 pattern")));
  EXPECT_THAT(broken.text, HasSubstr("error: "));
  EXPECT_EQ(broken.exit_code(), 1);
}

TEST_F(AgentCheck, ListsEveryErrorOfAFile) {
  CheckReport report = check_entries(R"({"name":"./x"},{"nmae":"y"})");
  EXPECT_EQ(report.errors.size(), 3U);
}

TEST_F(AgentCheck, ExplainsTheOtherEntriesOfAFileWithAnError) {
  CheckReport report = check_entries(R"({"name":"./x"},)" + command("bash", "x") + "," + command("df", "("));
  EXPECT_EQ(report.errors.size(), 2U);
  EXPECT_THAT(report.warnings, Contains(HasSubstr("allowed_commands[1] bash")));
  EXPECT_THAT(report.text, AllOf(HasSubstr("2. bash"), HasSubstr("3. df"), HasSubstr("2 errors")));
  EXPECT_THAT(report.text, Not(HasSubstr("no arguments")));  // which the broken pattern does not say
  boost::json::value document = boost::json::parse(report.json);
  EXPECT_FALSE(document.at("ok").as_bool());
  EXPECT_EQ(document.at("entries").as_array().size(), 1U);
}

TEST_F(AgentCheck, AnUnreadableFileIsOneError) {
  CheckReport report = check_agent_config(folder_ / "nowhere.json", options_);
  EXPECT_EQ(report.errors.size(), 1U);
  EXPECT_EQ(report.exit_code(), 1);
  EXPECT_FALSE(boost::json::parse(report.json).at("ok").as_bool());
}

TEST_F(AgentCheck, AKeyThatTheAgentCannotUseIsAnError) {
  std::string sound = crypto::PrivateKey::generate("a1")->to_openssh();
  EXPECT_THAT(check("uptime", "").errors, IsEmpty());
  std::filesystem::remove(folder_ / "id");
  EXPECT_THAT(check("uptime", "").errors, ElementsAre(AllOf(HasSubstr("is not there"), HasSubstr("ssh-keygen"))));
  folder_.write("id", "junk", 0600);
  CheckReport junk = check("uptime", "");
  EXPECT_THAT(junk.errors, ElementsAre(HasSubstr("private_key_path: " + (folder_ / "id"))));
  EXPECT_EQ(junk.exit_code(), 1);
  EXPECT_THAT(junk.text, HasSubstr("1. uptime"));
  folder_.write("id", sound.substr(0, sound.size() / 2), 0600);
  EXPECT_EQ(check("uptime", "").errors.size(), 1U);
  folder_.write("id", sound, 0644);
  EXPECT_THAT(check("uptime", "").errors, ElementsAre(HasSubstr("chmod 600")));
}

TEST_F(AgentCheck, AnEncryptedKeyAndAnRsaKeyAreToldApart) {
  // From ssh-keygen; the passphrase of the first is "secret".
  folder_.write("id", R"(-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABDUvo7SQd
5f0oFGLNvOVFYFAAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIB+tG/w5h3vCl3rJ
Iovpi8qOgvEMRruvB1mqFegPct0qAAAAkDskVWzZcEbx8OUl7OHf+h9vucKj0K/dpWkJp4
0QSQ8TbjA4eMNEI/M68GS5/XXkkMI4ixbqKo69kv1EBaCv0glCRE8HvZ+W3lIRFLrDKZNS
I0z/uuWBiBIHTqrka1xg/o9CzA/ktKkJQq1FKTXFBPJeHPDzpc70OQRvbevK6Qxy6d4/ca
RGDfDIxg6pnTDHbg==
-----END OPENSSH PRIVATE KEY-----
)",
                0600);
  EXPECT_THAT(check("uptime", "").errors, ElementsAre(HasSubstr("passphrase")));
  folder_.write("id", R"(-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAlwAAAAdzc2gtcn
NhAAAAAwEAAQAAAIEAxm8xoSWOfhNtJzu10PzwQwMftMdoQdVIfZXJjGZqnvAS6Vax1EI+
TTkwkn5o+9kAxJ7mFGy53wjHKSlPNDJCz+te5sV4YxFrs6YmnlJMolyjoi0FaGQyajkbgv
9cKO3/0zzr8ElxAlQ9XAt13PmUEgeA7UIZFHOnYyPFcBsLVCkAAAH4N7/frTe/360AAAAH
c3NoLXJzYQAAAIEAxm8xoSWOfhNtJzu10PzwQwMftMdoQdVIfZXJjGZqnvAS6Vax1EI+TT
kwkn5o+9kAxJ7mFGy53wjHKSlPNDJCz+te5sV4YxFrs6YmnlJMolyjoi0FaGQyajkbgv9c
KO3/0zzr8ElxAlQ9XAt13PmUEgeA7UIZFHOnYyPFcBsLVCkAAAADAQABAAAAgDpUu3EUej
OjgEW1Lrg1cmcwhuR8bbBUgw+vtWSZQqRgDB8dhf7QTkIjGp0lnbTS0H/7+cRtRaJDkVAP
PaIpWCwD4oqikr6Hfdhn7A/xOV9dc1wT2fgls/jBpElGMdtncUI16cJIowZZPqxyb42s3c
Yqh9gQF9f5srnHyOKdUHeBAAAAQQCOQd9mUgZtlaOs0tE/ZNgdCWCsgkSH8uyyprP4NNbJ
tkWyoKjlHqnvsKgzHG+Q63h0KO7kZrhRQRgy1HGnWvdZAAAAQQDtgZmItUkbxLcC2h0jzX
1+1zDoLzlXGyxxZHyqZT1yJ6jlxMefP2D0kBC0VUG4gPXvWF7zDZKuYElSjxN5KazZAAAA
QQDV4r42niv2T82qquuNEM2T3aug5c+XjcRsPMXnUhVPvq7WFWqR29qyMoAzLrDNZMQl5f
/9zR4B/wS8MdNBOI/RAAAAAmEx
-----END OPENSSH PRIVATE KEY-----
)",
                0600);
  EXPECT_THAT(check("uptime", "").errors, ElementsAre(HasSubstr("ssh-rsa")));
}

TEST_F(AgentCheck, DescribesWhatAnEntryAdmits) {
  EXPECT_THAT(check("uptime", "").text, HasSubstr("admits     no arguments"));
  EXPECT_THAT(check("df", "-h").text, AllOf(HasSubstr("exactly these arguments"), HasSubstr("df -h")));
  std::string text = check("x", "(-s (reload|quit))?").text;
  EXPECT_THAT(text, AllOf(HasSubstr("3 argument lines"), HasSubstr("x -s reload"), HasSubstr("x (no arguments)")));
  EXPECT_THAT(check("x", "a[0-9]+b").text, HasSubstr("e.g."));
}

TEST_F(AgentCheck, SaysTheSameInJsonAndInText) {
  CheckReport report = check("cat", "/var/log/.*");
  boost::json::value document = boost::json::parse(report.json);
  EXPECT_TRUE(document.at("ok").as_bool());
  EXPECT_EQ(document.at("warnings").as_array().size(), report.warnings.size());
  EXPECT_EQ(document.at("entries").at(0).at("args_regex").as_string(), "/var/log/.*");
  EXPECT_EQ(document.at("entries").at(0).at("timeout_seconds").as_int64(), 30);
  EXPECT_THAT(report.text, HasSubstr(fmt::format("0 errors, {} warnings", report.warnings.size())));
}

TEST_F(AgentCheck, UsesColoursOnlyWhenAsked) {
  EXPECT_THAT(check("bash", "x").text, Not(HasSubstr("\x1b")));
  options_.colour = true;
  EXPECT_THAT(check("bash", "x").text, HasSubstr("\x1b[33m"));
}

TEST_F(AgentCheck, EscapesWhatTheFileHoldsForTheTerminal) {
  EXPECT_THAT(check("x", "\u202e[a-z]").text, AllOf(HasSubstr("\\u{202e}"), Not(HasSubstr("\u202e"))));
}

}  // namespace
}  // namespace hive::config
