#include "cli/approval_wait.h"

#include <algorithm>
#include <csignal>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/approval_fixture.h"
#include "cli/program_run.h"

namespace hive::cli {
namespace {

using test::first_id;
using test::ProgramRun;
using test::run_program;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* pending_body =
    R"({"status":"pending_approval","approval_id":"3f2a9c1d00112233445566778899aabb","expires_at":"2036-11-30T12:15:00.000Z","required":1,"tier":"admin"})";
constexpr const char* result_body =
    R"({"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":"restarted"}]}})";
constexpr const char* success_headers = "Content-Type: application/json\r\nMyrmex-Outcome: success\r\n";

/// A gateway whose calls wait for an approval; what it says about the result is scripted.
class WaitingGateway {
 public:
  /// Gets the number of the question, from 1 on, and answers it.
  using ResultScript = std::function<void(hive::test::Peer&, int)>;

  explicit WaitingGateway(ResultScript script)
      : server_([this, script = std::move(script)](hive::test::Peer& peer) {
          for (std::string request = peer.read_request(); !request.empty(); request = peer.read_request()) {
            if (request.starts_with("POST /api/call ")) {
              peer.answer(202, pending_body);
              continue;
            }
            {
              std::lock_guard lock(mutex_);
              questions_.push_back(request.substr(0, request.find('\r')));
            }
            script(peer, static_cast<int>(questions().size()));
          }
        }) {}

  [[nodiscard]] std::vector<std::string> questions() const {
    std::lock_guard lock(mutex_);
    return questions_;
  }
  ProgramRun run(std::vector<std::string> words) const {
    return run_program(words, {{"MYRMEX_URL", server_.url()}, {"MYRMEX_TOKEN", "t"}});
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> questions_;
  hive::test::ScriptedServer server_;
};

TEST(CallThatWaitsTest, HowTheCallEndedIsNoReasonToAskAgainWhateverItsStatus) {
  WaitingGateway gateway([](hive::test::Peer& peer, int) {
    peer.answer(
        503, R"({"status":503,"code":"audit_unavailable","detail":"the approval could not be recorded"})",
        "Content-Type: application/problem+json\r\nMyrmex-Outcome: denied\r\nMyrmex-Reason: audit_unavailable\r\n");
  });
  ProgramRun ended = gateway.run({"call", "e__t", "--wait"});
  EXPECT_EQ(ended.exit_code, 3) << ended.error;
  EXPECT_THAT(ended.error, HasSubstr("the approval could not be recorded"));
  EXPECT_EQ(gateway.questions().size(), 1U);
}

TEST(CallThatWaitsTest, WithoutWaitSaysWhatIsNext) {
  WaitingGateway gateway([](hive::test::Peer&, int) {});
  ProgramRun pending = gateway.run({"call", "e__t"});
  EXPECT_EQ(pending.exit_code, 6);
  EXPECT_EQ(pending.out, "");
  EXPECT_THAT(pending.error,
              AllOf(HasSubstr("a second person"), HasSubstr(first_id), HasSubstr("2036-11-30T12:15:00.000Z"),
                    HasSubstr("tier admin"), HasSubstr("`myrmex approvals approve 3f2a9c1d`"), HasSubstr("result"),
                    HasSubstr("withdraw")));
  EXPECT_EQ(std::ranges::count(pending.error, '\n'), 1);
  EXPECT_THAT(gateway.run({"call", "e__t", "-o", "json"}).out, HasSubstr("\"approval_id\": \"3f2a"));
  EXPECT_TRUE(gateway.questions().empty());
}

TEST(CallThatWaitsTest, WithWaitEndsAsACallThatNeededNoApproval) {
  WaitingGateway gateway([](hive::test::Peer& peer, int question) {
    if (question < 3) {
      peer.answer(202, question == 1 ? R"({"status":"pending"})" : R"({"status":"running"})");
    } else {
      peer.answer(200, result_body, success_headers);
    }
  });
  ProgramRun called = gateway.run({"call", "e__t", "--wait"});
  EXPECT_EQ(called.exit_code, 0) << called.error;
  EXPECT_EQ(called.out, "restarted\n");
  EXPECT_THAT(called.error, AllOf(HasSubstr(first_id), HasSubstr("waiting")));
  EXPECT_EQ(gateway.questions().front(),
            std::string("GET /api/approvals/") + first_id + "/result?wait_ms=25000 HTTP/1.1");
}

TEST(CallThatWaitsTest, ARestartOfTheGatewayInBetweenIsWaitedOut) {
  WaitingGateway gateway([](hive::test::Peer& peer, int question) {
    switch (question) {
      case 1:
        ::shutdown(peer.fd(), SHUT_RDWR);
        return;
      case 2:
        peer.answer(503, R"({"code":"draining"})", "Myrmex-Outcome: denied\r\nMyrmex-Reason: draining\r\n");
        return;
      case 3:
        peer.answer(502, "bad gateway", "Content-Type: text/html\r\n");
        return;
      default:
        peer.answer(200, result_body, success_headers);
    }
  });
  ProgramRun called = gateway.run({"call", "e__t", "--wait=60"});
  EXPECT_EQ(called.exit_code, 0) << called.error;
  EXPECT_EQ(called.out, "restarted\n");
}

TEST(CallThatWaitsTest, TheOutcomeOfTheCallIsTheExitCode) {
  WaitingGateway gateway([](hive::test::Peer& peer, int) {
    peer.answer(200, R"({"jsonrpc":"2.0","id":"1","error":{"code":-32000,"message":"bob said no"}})",
                "Myrmex-Outcome: denied\r\nMyrmex-Reason: rejected\r\n");
  });
  ProgramRun called = gateway.run({"call", "e__t", "--wait", "-o", "json"});
  EXPECT_EQ(called.exit_code, 3);
  EXPECT_THAT(called.out, AllOf(HasSubstr("\"outcome\": \"denied\""), HasSubstr("\"reason\": \"rejected\"")));
  EXPECT_THAT(called.error, HasSubstr("denied, nothing ran: bob said no (rejected)"));
}

TEST(CallThatWaitsTest, ARequestThatIsGoneEndsTheWait) {
  struct Case {
    int status;
    int exit_code;
  };
  for (const Case& each : {Case{410, 8}, Case{404, 1}, Case{403, 3}, Case{401, 7}}) {
    WaitingGateway gateway([&each](hive::test::Peer& peer, int) { peer.answer(each.status, R"({"detail":"why"})"); });
    ProgramRun called = gateway.run({"call", "e__t", "--wait"});
    EXPECT_EQ(called.exit_code, each.exit_code) << each.status;
    EXPECT_THAT(called.error, HasSubstr("why"));
    EXPECT_EQ(gateway.questions().size(), 1U);
  }
}

TEST(CallThatWaitsTest, WaitsNoLongerThanItWasTold) {
  WaitingGateway gateway([](hive::test::Peer& peer, int) { peer.answer(202, R"({"status":"pending"})"); });
  ProgramRun called = gateway.run({"call", "e__t", "--wait=1", "-o", "json"});
  EXPECT_EQ(called.exit_code, 6);
  EXPECT_THAT(called.error, AllOf(HasSubstr("still waits"), HasSubstr("myrmex approvals result")));
  EXPECT_THAT(called.out, AllOf(HasSubstr("\"outcome\": \"unknown\""), HasSubstr("\"reason\": \"pending_approval\"")));
  // It answered at once although it was asked to wait, and was not asked without end.
  EXPECT_LT(gateway.questions().size(), 10U);
}

TEST(CallThatWaitsTest, CtrlCLeavesTheRequestInPlace) {
  WaitingGateway gateway([](hive::test::Peer& peer, int) {
    ::kill(::getpid(), SIGINT);
    peer.wait_for_close();
  });
  ProgramRun called = gateway.run({"call", "e__t", "--wait"});
  EXPECT_EQ(called.exit_code, 130);
  EXPECT_THAT(called.error, AllOf(HasSubstr("the request stays in place"), HasSubstr("approvals result"),
                                  HasSubstr("approvals withdraw"), Not(HasSubstr("the gateway ends the call"))));
}

TEST(CallThatWaitsTest, AnIdThatIsNoneIsNotFollowed) {
  hive::test::ScriptedServer server([](hive::test::Peer& peer) {
    while (!peer.read_request().empty())
      peer.answer(202, R"({"status":"pending_approval","approval_id":"../../\u001b"})");
  });
  ProgramRun pending = run_program({"call", "e__t", "--wait"}, {{"MYRMEX_URL", server.url()}, {"MYRMEX_TOKEN", "t"}});
  EXPECT_EQ(pending.exit_code, 6);
  EXPECT_THAT(pending.error, AllOf(HasSubstr("../../\\x1b"), Not(HasSubstr("waiting"))));
}

TEST(ApprovalsResultTest, AsksOnceUnlessToldToWait) {
  WaitingGateway gateway([](hive::test::Peer& peer, int question) {
    if (question == 1) {
      peer.answer(202, R"({"status":"running"})");
    } else {
      peer.answer(200, result_body, success_headers);
    }
  });
  ProgramRun asked = gateway.run({"approvals", "result", first_id});
  EXPECT_EQ(asked.exit_code, 6);
  EXPECT_THAT(asked.error, HasSubstr("is approved, and its call still runs"));
  EXPECT_THAT(gateway.questions().front(), HasSubstr("wait_ms=0 "));
  EXPECT_EQ(gateway.run({"approvals", "result", first_id, "--wait=30"}).out, "restarted\n");
  EXPECT_EQ(gateway.run({"approvals", "result", first_id, "--raw"}).out, "restarted");
}

TEST(ApprovalsResultTest, AGatewayThatIsAwayIsAskedAgainOnlyWhenWaiting) {
  test::Variables away = {{"MYRMEX_URL", "http://127.0.0.1:1"}, {"MYRMEX_TOKEN", "t"}};
  EXPECT_EQ(run_program({"approvals", "result", first_id}, away).exit_code, 5);
  EXPECT_EQ(run_program({"approvals", "result", first_id, "--wait=1"}, away).exit_code, 5);
}

}  // namespace
}  // namespace hive::cli
