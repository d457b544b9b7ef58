#include "cli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program_run.h"

namespace hive::cli {
namespace {

using test::FakeGateway;
using test::ProgramRun;
using test::run_program;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class DoctorTest : public testing::Test {
 protected:
  DoctorTest() {
    gateway_.answers["/healthz"] = {200, R"({"status":"ok"})"};
    set_time(std::chrono::seconds(0));
    gateway_.answers["/api/status"] = {200, R"({"agents":[{"id":"e","online":true}]})"};
  }
  void set_time(std::chrono::seconds ahead, const std::string& role = "operator") {
    std::string time = format_rfc3339(system_clock().wall_now() + ahead);
    gateway_.answers["/api/whoami"] = {
        200, R"({"principal":"token:abc","role":")" + role + R"(","time":")" + time + R"("})"};
  }
  ProgramRun run(std::vector<std::string> more = {}) {
    more.insert(more.begin(), "doctor");
    return run_program(more, gateway_.variables());
  }

  FakeGateway gateway_;
};

TEST_F(DoctorTest, SaysThatEverythingIsFine) {
  ProgramRun healthy = run();
  EXPECT_EQ(healthy.exit_code, 0) << healthy.out;
  EXPECT_THAT(healthy.out, AllOf(HasSubstr("token from MYRMEX_TOKEN"), HasSubstr("accepted as token:abc"),
                                 HasSubstr("operator: may call tools"), HasSubstr("the clocks agree"),
                                 HasSubstr("1 online\n"), Not(HasSubstr("secret-token"))));
}

TEST_F(DoctorTest, AnswersInJson) {
  ProgramRun healthy = run({"-o", "json"});
  EXPECT_EQ(healthy.exit_code, 0);
  EXPECT_THAT(healthy.out, AllOf(HasSubstr("\"ok\": true"), HasSubstr("\"name\": \"tcp\"")));
}

TEST_F(DoctorTest, NamesAPortWhereNothingListens) {
  ProgramRun ill = run({"--url", "http://127.0.0.1:1"});
  EXPECT_EQ(ill.exit_code, 5);
  EXPECT_THAT(ill.out, AllOf(ContainsRegex("failed +tcp"), HasSubstr("refused"), HasSubstr("start the gateway"),
                             ContainsRegex("skipped +token +not tried")));
}

TEST_F(DoctorTest, NamesAHostThatDoesNotExist) {
  ProgramRun ill = run({"--url", "https://no-such-host.invalid"});
  EXPECT_EQ(ill.exit_code, 5);
  EXPECT_THAT(ill.out, AllOf(ContainsRegex("failed +name"), HasSubstr("no-such-host.invalid")));
}

TEST_F(DoctorTest, NamesATokenThatIsMissingOrRefused) {
  ProgramRun ill = run_program({"doctor"}, {{"MYRMEX_URL", gateway_.url()}});
  EXPECT_EQ(ill.exit_code, 7);
  EXPECT_THAT(ill.out, AllOf(ContainsRegex("failed +token"), HasSubstr("MYRMEX_TOKEN")));
  gateway_.answers["/api/whoami"] = {401, R"({"detail":"unknown token"})"};
  ill = run();
  EXPECT_EQ(ill.exit_code, 7);
  EXPECT_THAT(ill.out, AllOf(HasSubstr("unknown token"), Not(HasSubstr("secret-token"))));
}

TEST_F(DoctorTest, WarnsOfClocksThatDiffer) {
  set_time(std::chrono::seconds(-90));
  ProgramRun ill = run();
  EXPECT_EQ(ill.exit_code, 1);
  EXPECT_THAT(ill.out, AllOf(ContainsRegex("warning +clock"), HasSubstr("s behind this one"), HasSubstr("NTP")));
  set_time(std::chrono::seconds(20));
  EXPECT_EQ(run().exit_code, 0) << "a difference of 20 s is tolerated";
}

TEST_F(DoctorTest, WarnsWhenNoAgentIsOnline) {
  gateway_.answers["/api/status"] = {200, R"({"agents":[{"id":"e","online":false}]})"};
  ProgramRun ill = run();
  EXPECT_EQ(ill.exit_code, 1);
  EXPECT_THAT(ill.out, ContainsRegex("warning +agents +0 online, 1 offline: e"));
}

TEST_F(DoctorTest, NamesTheAgentsThatAreOffline) {
  gateway_.answers["/api/status"] = {
      200, R"({"agents":[{"id":"agent-1","online":true},{"id":"agent-2","online":false},{"id":"agent-3"}]})"};
  ProgramRun healthy = run();
  EXPECT_EQ(healthy.exit_code, 0) << healthy.out;
  EXPECT_THAT(healthy.out, ContainsRegex("ok +agents +2 online, 1 offline: agent-2\n"));
}

TEST_F(DoctorTest, WorksWithAGatewayThatDoesNotKnowWhoami) {
  gateway_.answers.erase("/api/whoami");
  ProgramRun healthy = run();
  EXPECT_EQ(healthy.exit_code, 0) << healthy.out;
  EXPECT_THAT(healthy.out, ContainsRegex("ok +token +accepted"));
}

TEST_F(DoctorTest, NamesAnotherProgramOnThePort) {
  gateway_.answers["/healthz"] = {404, "nginx"};
  ProgramRun ill = run();
  EXPECT_EQ(ill.exit_code, 5);
  EXPECT_THAT(ill.out, AllOf(ContainsRegex("failed +health"), HasSubstr("HTTP 404")));
}

TEST_F(DoctorTest, NamesAProfileThatIsWrong) {
  ProgramRun ill = run({"--profile", "missing"});
  EXPECT_EQ(ill.exit_code, 2);
  EXPECT_THAT(ill.out, AllOf(ContainsRegex("failed +settings"), HasSubstr("missing")));
}

class DoctorTlsTest : public testing::Test {
 protected:
  static void serve(hive::test::Peer& peer) {
    while (!peer.read_request().empty())
      peer.answer(200, "{}");
  }
  ProgramRun run(const hive::test::TestCertificate& presented, const hive::test::TestCertificate& trusted) {
    hive::test::ScriptedServer server(&serve, &presented);
    std::string ca = folder_.write("ca.pem", trusted.pem());
    return run_program({"doctor", "--url", server.url(), "--cacert", ca}, {{"MYRMEX_TOKEN", "t"}});
  }
  test::TemporaryFolder folder_;
};

TEST_F(DoctorTlsTest, DescribesATrustedCertificate) {
  hive::test::TestCertificate certificate = hive::test::make_certificate("DNS:localhost,IP:127.0.0.1");
  EXPECT_THAT(run(certificate, certificate).out,
              AllOf(ContainsRegex("ok +tls +TLSv1.3"), HasSubstr("localhost, 127.0.0.1"), HasSubstr("days)")));
}

TEST_F(DoctorTlsTest, ShowsTheFingerprintOfAnUntrustedOne) {
  ProgramRun ill = run(hive::test::make_certificate("IP:127.0.0.1"), hive::test::make_certificate("IP:127.0.0.1"));
  EXPECT_EQ(ill.exit_code, 5);
  EXPECT_THAT(ill.out,
              AllOf(ContainsRegex("failed +tls"), ContainsRegex("fingerprint [0-9a-f]{64}"), HasSubstr("--cacert")));
}

TEST_F(DoctorTlsTest, ShowsTheNamesOfOneForAnotherHost) {
  hive::test::TestCertificate certificate = hive::test::make_certificate("DNS:gateway.example");
  ProgramRun ill = run(certificate, certificate);
  EXPECT_EQ(ill.exit_code, 5);
  EXPECT_THAT(ill.out, AllOf(HasSubstr("gateway.example"), HasSubstr("use one of the certificate's names")));
}

TEST_F(DoctorTlsTest, NamesAnExpiredOneAndOneThatEndsSoon) {
  hive::test::TestCertificate expired = hive::test::make_certificate("IP:127.0.0.1", -1);
  EXPECT_THAT(run(expired, expired).out, AllOf(HasSubstr("expired"), HasSubstr("renew the certificate")));
  hive::test::TestCertificate soon = hive::test::make_certificate("IP:127.0.0.1", 5);
  EXPECT_THAT(run(soon, soon).out, ContainsRegex("warning +tls"));
}

TEST_F(DoctorTlsTest, NamesAPortWithoutTls) {
  hive::test::ScriptedServer server([](hive::test::Peer& peer) {
    peer.answer(400, "this is plain HTTP");
    peer.wait_for_close();
  });
  ProgramRun ill =
      run_program({"doctor", "--url", "https://127.0.0.1:" + std::to_string(server.port())}, {{"MYRMEX_TOKEN", "t"}});
  EXPECT_EQ(ill.exit_code, 5);
  EXPECT_THAT(ill.out, ContainsRegex("failed +tls"));
}

TEST_F(DoctorTlsTest, GivesUpOnAServerThatSaysNothing) {
  hive::test::ScriptedServer server([](hive::test::Peer& peer) { peer.wait_for_close(); });
  ProgramRun ill =
      run_program({"doctor", "--timeout", "0.2", "--url", "https://127.0.0.1:" + std::to_string(server.port())},
                  {{"MYRMEX_TOKEN", "t"}});
  EXPECT_EQ(ill.exit_code, 5);
  EXPECT_THAT(ill.out, ContainsRegex("failed +tls +no answer in time"));
}

TEST(ParseRfc3339, ReadsUtcTimes) {
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:10.999Z"), WallTime(std::chrono::seconds(10)));
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:10Z"), WallTime(std::chrono::seconds(10)));
  for (const char* text :
       {"", "1970-01-01", "1970-01-01T00:00:10", "1970-01-01T00:00:10+01:00", "1970-01-01T00:00:10.5Zx"})
    EXPECT_EQ(parse_rfc3339(text), std::nullopt) << text;
}

}  // namespace
}  // namespace hive::cli
