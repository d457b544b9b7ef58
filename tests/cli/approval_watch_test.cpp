#include "cli/approval_watch.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/approval_fixture.h"
#include "cli/program_run.h"

namespace hive::cli {
namespace {

using test::approval_json;
using test::first_id;
using test::ProgramRun;
using test::run_program;
using test::second_id;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// What is told of a list of requests, as "ID-BEGINNING what".
class NewsTest : public testing::Test {
 protected:
  std::vector<std::string> take(const std::vector<std::string>& requests) {
    std::vector<ApprovalView> approvals;
    for (const std::string& request : requests)
      approvals.push_back(parse_approval(request).value());
    std::vector<std::string> told;
    for (const ApprovalEvent& event : news_.take(approvals))
      told.push_back(event.approval->id.substr(0, 4) + " " + std::string(event.what));
    return told;
  }

  ApprovalNews news_;
};

TEST_F(NewsTest, TheFirstListTellsOfWhatWaitsAlone) {
  EXPECT_THAT(take({approval_json(first_id), approval_json(second_id, "approved", R"(,"outcome":"success")")}),
              ElementsAre("3f2a new"));
  EXPECT_THAT(take({approval_json(first_id), approval_json(second_id, "approved", R"(,"outcome":"success")")}),
              IsEmpty());
}

TEST_F(NewsTest, TellsEachStepOnce) {
  EXPECT_THAT(take({}), IsEmpty());
  EXPECT_THAT(take({approval_json(second_id), approval_json(first_id)}), ElementsAre("3f2a new", "3f2b new"));
  EXPECT_THAT(take({approval_json(first_id, "pending", R"(,"approvals":[{"by":"x"}])")}), ElementsAre("3f2a vote"));
  EXPECT_THAT(take({approval_json(first_id, "approved", R"(,"approvals":[{"by":"x"},{"by":"y"}])")}),
              ElementsAre("3f2a approved"));
  std::string ended =
      approval_json(first_id, "approved", R"(,"approvals":[{"by":"x"},{"by":"y"}],"outcome":"failure")");
  EXPECT_THAT(take({ended}), ElementsAre("3f2a ended"));
  EXPECT_THAT(take({ended}), IsEmpty());
  EXPECT_THAT(take({}), IsEmpty());
}

TEST_F(NewsTest, TellsOfWhatWasAskedAndDecidedBetweenTwoLooks) {
  take({});
  EXPECT_THAT(take({approval_json(first_id, "rejected", R"(,"outcome":"denied")")}),
              ElementsAre("3f2a new", "3f2a rejected", "3f2a ended"));
  EXPECT_THAT(take({approval_json(second_id, "expired")}), ElementsAre("3f2b new", "3f2b expired"));
}

/// Watches a gateway that shows these lists one after another, and is interrupted when it is asked once more. An empty
/// text is a gateway that cannot answer.
ProgramRun watch(const std::vector<std::string>& lists, std::vector<std::string> words = {}) {
  std::atomic<std::size_t> asked = 0;
  hive::test::ScriptedServer server([&](hive::test::Peer& peer) {
    while (!peer.read_request().empty()) {
      std::size_t at = asked++;
      if (at >= lists.size()) {
        ::kill(::getpid(), SIGINT);
        peer.wait_for_close();
        return;
      }
      peer.answer(lists[at].empty() ? 503 : 200, lists[at]);
    }
  });
  words.insert(words.begin(), {"approvals", "watch"});
  return run_program(words, {{"MYRMEX_URL", server.url()}, {"MYRMEX_TOKEN", "t"}});
}

TEST(ApprovalsWatchTest, PrintsALineForEachStepUntilCtrlC) {
  ProgramRun watched = watch(
      {"[" + approval_json(first_id) + "]",
       "[" + approval_json(first_id, "rejected", R"(,"refusal":{"by":"t","identity":"bob","comment":"no\u001b[2J"})") +
           "]"});
  EXPECT_EQ(watched.exit_code, 130);
  EXPECT_EQ(watched.error, "");
  EXPECT_THAT(watched.out,
              AllOf(HasSubstr("  new        3f2a9c1d  alice asks for edge-1__run_command (tier admin), expires in "),
                    HasSubstr("  rejected   3f2a9c1d  edge-1__run_command for alice, by bob: no\\x1b[2J\n"),
                    Not(HasSubstr("\x1b"))));
}

TEST(ApprovalsWatchTest, JsonIsAnObjectALine) {
  ProgramRun watched =
      watch({"[\n  " + approval_json(first_id, "pending", ",\n \"approvals\" : [ ]") + "\n]"}, {"-o", "json"});
  EXPECT_THAT(watched.out, AllOf(HasSubstr(R"({"event":"new","time":")"), HasSubstr(R"("approval":{"id":"3f2a)"),
                                 HasSubstr(R"("approvals":[]}})")));
  EXPECT_EQ(std::ranges::count(watched.out, '\n'), 1);
}

TEST(ApprovalsWatchTest, AGatewayThatIsAwayIsWaitedForAndSaidOnce) {
  ProgramRun watched = watch({"", "", "[" + approval_json(first_id) + "]"});
  EXPECT_EQ(watched.exit_code, 130);
  EXPECT_THAT(watched.out, HasSubstr("new"));
  EXPECT_THAT(watched.error, AllOf(HasSubstr("trying again"), HasSubstr("answers again")));
  EXPECT_EQ(std::ranges::count(watched.error, '\n'), 2);
}

TEST(ApprovalsWatchTest, ARefusalEndsIt) {
  hive::test::ScriptedServer server([](hive::test::Peer& peer) {
    while (!peer.read_request().empty())
      peer.answer(403, R"({"detail":"read-only may not"})");
  });
  ProgramRun watched = run_program({"approvals", "watch"}, {{"MYRMEX_URL", server.url()}, {"MYRMEX_TOKEN", "t"}});
  EXPECT_EQ(watched.exit_code, 3);
  EXPECT_THAT(watched.error, HasSubstr("read-only may not"));
}

}  // namespace
}  // namespace hive::cli
