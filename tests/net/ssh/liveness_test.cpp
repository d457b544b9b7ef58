#include "net/ssh/liveness.h"

#include <functional>

#include <gmock/gmock.h>

namespace hive::net::ssh {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// A connection in simulated time, checked whenever it asks for that.
class LivenessTest : public testing::Test {
 protected:
  /// Lets time pass until the peer is given up or `limit` is over; `each` plays the peer once a second. Returns how
  /// long it took.
  SteadyTime::duration run(SteadyTime::duration limit, const std::function<void()>& each = {}) {
    const SteadyTime start = now_;
    while (now_ - start < limit && dead_.empty()) {
      now_ += 100ms;
      if (each && (now_ - start) % 1s == 0s) each();
      if (now_ < due_) continue;
      const Liveness::Verdict verdict = liveness_.check(now_, traffic_);
      dead_ = verdict.dead;
      due_ = now_ + verdict.next;
      if (!verdict.probe) continue;
      ++probes_;
      liveness_.probed(now_, traffic_);
      if (answers_) {
        traffic_.received += 100;
        liveness_.heard(now_);
        liveness_.answered();
      }
    }
    return now_ - start;
  }

  SteadyTime now_{1000s};
  SteadyTime due_ = now_;
  Traffic traffic_;
  Liveness liveness_{now_, 15s};
  std::string dead_;
  int probes_ = 0;
  bool answers_ = true;
};

TEST_F(LivenessTest, ProbesOnceAnIntervalAndKeepsAPeerThatAnswers) {
  run(1h);
  EXPECT_EQ(dead_, "");
  EXPECT_NEAR(probes_, 240, 10);
}

TEST_F(LivenessTest, ASilentPeerIsNoticedWithinThreeIntervals) {
  // Whenever it falls silent between two probes.
  for (int second = 0; second < 15; ++second) {
    liveness_ = Liveness(now_, 15s);
    due_ = now_;
    answers_ = true;
    dead_.clear();
    run(100s + std::chrono::seconds(second));
    answers_ = false;
    EXPECT_LE(run(10min), 45s + 200ms) << second;
    EXPECT_THAT(dead_, HasSubstr("nothing heard for"));
  }
}

TEST_F(LivenessTest, APeerWhoseMachineOnlyAcknowledgesIsSilent) {
  // A stopped process: the kernel takes what little is sent, at once.
  answers_ = false;
  EXPECT_LE(run(10min, [&] { traffic_.acked += 40; }), 45s + 200ms);
  EXPECT_NE(dead_, "");
}

TEST_F(LivenessTest, AStoppedPeerIsNoticedInTheMiddleOfBulkOutputToo) {
  answers_ = false;
  traffic_.is_sending = true;
  traffic_.queued = size_t{4} << 20;
  run(20s, [&] { traffic_.acked += 100'000; });
  ASSERT_EQ(dead_, "");
  // Its buffers are full now.
  EXPECT_LE(run(10min), 45s + 200ms);
  EXPECT_NE(dead_, "");
}

TEST_F(LivenessTest, APathThatIsMerelySlowIsNotGivenUp) {
  // Four megabytes at 64 kbit/s: nothing whole arrives for eight minutes, and our ping waits behind it.
  answers_ = false;
  traffic_.is_sending = true;
  traffic_.queued = size_t{4} << 20;
  run(520s, [&] {
    traffic_.acked += 8000;
    traffic_.taken += 8000;
  });
  EXPECT_EQ(dead_, "");
}

TEST_F(LivenessTest, ALongLineThatComesSlowlyIsLife) {
  answers_ = false;
  run(520s, [&] { traffic_.received += 8000; });
  EXPECT_EQ(dead_, "");
}

TEST_F(LivenessTest, APeerThatTalksAndAnswersNothingIsGivenUp) {
  answers_ = false;
  run(10min, [&] {
    traffic_.received += 100;
    liveness_.heard(now_);
  });
  EXPECT_THAT(dead_, HasSubstr("a ping was not answered for 45 s"));
}

TEST_F(LivenessTest, AFloodDoesNotReplaceAnAnswerForEver) {
  answers_ = false;
  const auto lasted = run(10min, [&] {
    traffic_.received += 10'000'000;
    liveness_.heard(now_);
  });
  EXPECT_LT(lasted, 2min);
  EXPECT_THAT(dead_, HasSubstr("a ping was not answered"));
}

TEST_F(LivenessTest, ABurstBeforeTheSilenceBuysNoMoreThanAnInterval) {
  answers_ = false;
  // Megabytes that the peer's machine took; then it only talks.
  run(16s, [&] { traffic_.acked += 300'000; });
  const auto lasted = run(10min, [&] {
    traffic_.received += 100;
    liveness_.heard(now_);
  });
  EXPECT_LE(lasted, 60s + 200ms);
  EXPECT_THAT(dead_, HasSubstr("a ping was not answered"));
}

TEST_F(LivenessTest, APeerThatReadsNothingIsGivenUpAlsoByOneWhoCannotSeeAnswers) {
  traffic_.queued = 1000;
  run(10min, [&] {
    traffic_.received += 50;
    liveness_.answered();
  });
  EXPECT_THAT(dead_, HasSubstr("nothing that was sent has been read for 45 s"));
}

TEST_F(LivenessTest, AfterAPauseOfItsOwnItProbesBeforeItJudges) {
  run(100s);
  answers_ = false;
  probes_ = 0;
  now_ += 1h;
  run(1s);
  EXPECT_EQ(dead_, "");
  EXPECT_EQ(probes_, 1);
  // And then a dead one is found in the usual time.
  EXPECT_LE(run(10min), 45s + 200ms);
  EXPECT_NE(dead_, "");
}

TEST_F(LivenessTest, LessPatienceCountsAtOnce) {
  run(100s);
  answers_ = false;
  liveness_.set_patience(1);
  EXPECT_LE(run(10min), 30s);
  EXPECT_NE(dead_, "");
}

}  // namespace
}  // namespace hive::net::ssh
