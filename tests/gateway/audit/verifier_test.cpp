#include "gateway/audit/verifier.h"

#include <filesystem>
#include <thread>

#include <gmock/gmock.h>

#include "gateway/audit/support.h"

namespace hive::audit {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

class AuditVerifier : public LogTest {
 protected:
  VerifyOptions with_key() {
    VerifyOptions options;
    options.key = key_.public_key();
    options.patience = 0ms;
    return options;
  }

  VerifyReport verify(VerifyOptions options) {
    auto report = verify_log(options_.path, std::move(options));
    EXPECT_TRUE(report) << report.error().message;
    return report.value_or(VerifyReport{});
  }

  std::string failure() { return failure(with_key()); }
  std::string failure(VerifyOptions options) {
    VerifyReport report = verify(std::move(options));
    return report.failure ? report.failure->reason : "";
  }

  void write_lines(const std::vector<std::string>& wanted) {
    std::string text;
    for (const std::string& line : wanted)
      text += line + "\n";
    replace_content(text);
  }

  Checkpoint checkpoint_now() { return verify(with_key()).last_checkpoint->checkpoint; }
};

TEST_F(AuditVerifier, CountsWhatTheLogTells) {
  {
    auto log = open_good();
    ASSERT_TRUE(log);
    ASSERT_TRUE(log->append(record("gateway_start")));
    ASSERT_TRUE(log->append(intent("c1")));
    ASSERT_TRUE(log->append(intent("c2")));
    ASSERT_TRUE(log->append(outcome("c1", protocol::Outcome::success)));
    ASSERT_TRUE(log->append(outcome("c3", protocol::Outcome::denied)));
    ASSERT_TRUE(log->append(outcome("c4", protocol::Outcome::denied)));
  }
  VerifyReport report = verify(with_key());
  ASSERT_TRUE(report.good()) << report.failure->reason;
  EXPECT_EQ(report.entries, 6u);
  EXPECT_EQ(report.by_kind["event"], 1u);
  EXPECT_EQ(report.by_kind["intent"], 2u);
  EXPECT_EQ(report.by_kind["outcome"], 3u);
  EXPECT_EQ(report.by_outcome["success"], 1u);
  EXPECT_EQ(report.by_outcome["denied"], 2u);
  EXPECT_EQ(report.intents_without_outcome, 1u);
  EXPECT_EQ(report.open_call_ids, std::vector<std::string>{"c2"});
  EXPECT_EQ(report.origin, test_origin);
  EXPECT_EQ(report.bytes, content().size());
  EXPECT_LE(report.first_time, report.last_time);
}

TEST_F(AuditVerifier, AnyChangedByteIsNoticed) {
  write_batches(2);
  std::string good = content();
  for (size_t at = 0; at < good.size(); at += 3) {
    std::string changed = good;
    changed[at] ^= 1;
    replace_content(changed);
    VerifyOptions options = with_key();
    options.every_signature = true;
    EXPECT_NE(failure(options), "") << at << " " << changed[at];
  }
}

TEST_F(AuditVerifier, SwappedInsertedAndRemovedLinesAreNoticedWithTheirNumber) {
  write_batches(4);
  const std::vector<std::string> good = lines();  // checkpoint, then entry and checkpoint four times
  ASSERT_GE(good.size(), 9u);
  auto swapped = good;
  std::swap(swapped[1], swapped[3]);
  write_lines(swapped);
  VerifyReport report = verify(with_key());
  ASSERT_FALSE(report.good());
  EXPECT_EQ(report.failure->line, 2u);
  EXPECT_THAT(report.failure->reason, HasSubstr("entry 1 stands where entry 0 belongs"));

  auto inserted = good;
  inserted.insert(inserted.begin() + 3, good[1]);
  write_lines(inserted);
  EXPECT_THAT(failure(), HasSubstr("entry 0 stands where entry 1 belongs"));

  for (size_t i = 1; i < good.size(); ++i) {
    bool is_entry = good[i].starts_with("{\"seq\"");
    if (!is_entry) continue;
    auto removed = good;
    removed.erase(removed.begin() + static_cast<std::ptrdiff_t>(i));
    write_lines(removed);
    EXPECT_NE(failure(), "") << i;
  }
  write_lines({good[0], "", good[1]});
  EXPECT_THAT(failure(), HasSubstr("not an entry"));
}

TEST_F(AuditVerifier, RenumberedEntriesDoNotHelpAForger) {
  write_batches(3);
  auto forged = lines();
  // Entry 1 takes the place of entry 0, number and all; the roots no longer fit.
  forged[1].replace(forged[1].find("\"call_id\":\"0\""), 13, "\"call_id\":\"9\"");
  write_lines(forged);
  VerifyReport report = verify(with_key());
  ASSERT_FALSE(report.good());
  EXPECT_EQ(report.failure->line, 3u);
  EXPECT_THAT(report.failure->reason, HasSubstr("Merkle root"));
}

// Row 152: another key, another log, everything removed, an end without a signature.
TEST_F(AuditVerifier, AnotherKeyAnotherLogAndAnEmptyFileFail) {
  write_batches(2);
  VerifyOptions options = with_key();
  options.key = crypto::PrivateKey::generate("").value().public_key();
  EXPECT_THAT(failure(options), HasSubstr("not signed by key"));
  options = with_key();
  options.origin = "hive.test/other";
  EXPECT_THAT(failure(options), HasSubstr("expected"));
  replace_content("");
  EXPECT_THAT(failure(), HasSubstr("no checkpoint"));
  std::filesystem::remove(options_.path);
  EXPECT_FALSE(verify_log(options_.path, with_key()));
}

TEST_F(AuditVerifier, ALogSignedByAnotherKeyThroughoutFails) {
  write_batches(2);
  crypto::PublicKey expected = key_.public_key();
  std::filesystem::remove(options_.path);
  key_ = crypto::PrivateKey::generate("attacker").value();
  write_batches(2);
  VerifyOptions options = with_key();
  options.key = expected;
  EXPECT_NE(failure(options), "");
}

TEST_F(AuditVerifier, EveryCutIsNoticedWithoutMemoryUnlessItIsAtACheckpoint) {
  write_batches(3);
  std::string good = content();
  for (size_t size = 0; size < good.size(); ++size) {
    replace_content(good.substr(0, size));
    std::string last_line = size == 0 ? "" : good.substr(good.rfind('\n', size - 2) + 1);
    bool at_checkpoint = size > 0 && good[size - 1] == '\n' && last_line.starts_with("{\"checkpoint\"");
    EXPECT_EQ(failure().empty(), at_checkpoint) << size;
  }
}

TEST_F(AuditVerifier, ARememberedCheckpointNoticesACutEndAndARewrittenHistory) {
  write_batches(3);
  Checkpoint early = checkpoint_now();
  std::string early_content = content();
  write_batches(3);
  Checkpoint late = checkpoint_now();
  ASSERT_EQ(late.size, 6u);

  VerifyOptions options = with_key();
  options.remembered = {late, early};
  EXPECT_EQ(failure(options), "");

  replace_content(early_content);
  EXPECT_EQ(failure(), "");
  EXPECT_THAT(failure(options), HasSubstr("its end was removed"));

  // The same gateway key and name, but another past.
  std::filesystem::remove(options_.path);
  write_batches(7);
  EXPECT_EQ(failure(), "");
  EXPECT_THAT(failure(options), HasSubstr("history was rewritten"));
}

TEST_F(AuditVerifier, ARememberedCheckpointOfAnotherLogIsNotCompared) {
  write_batches(3);
  VerifyOptions options = with_key();
  options.remembered = {checkpoint_now()};
  options.remembered[0].origin = "hive.test/other";
  EXPECT_THAT(failure(options), HasSubstr("hive.test/other"));
}

TEST_F(AuditVerifier, AMinimumSizeNoticesACutEnd) {
  write_batches(3);
  VerifyOptions options = with_key();
  options.min_size = 3;
  EXPECT_EQ(failure(options), "");
  options.min_size = 4;
  EXPECT_THAT(failure(options), HasSubstr("fewer than the 4"));
}

TEST_F(AuditVerifier, ABadSignatureInTheMiddleIsFoundWhenAllAreAsked) {
  write_batches(2);
  auto changed = lines();
  // The signature's last characters, not the text.
  size_t at = changed[2].rfind("\\n\"") - 6;
  changed[2][at] = changed[2][at] == 'A' ? 'B' : 'A';
  write_lines(changed);
  EXPECT_EQ(failure(), "");
  VerifyOptions options = with_key();
  options.every_signature = true;
  EXPECT_THAT(failure(options), HasSubstr("signature"));
}

TEST_F(AuditVerifier, LooksOnlyAtWhatIsNew) {
  write_batches(2);
  Verifier verifier(with_key());
  ASSERT_TRUE(verifier.update(options_.path));
  EXPECT_EQ(verifier.report().entries, 2u);
  ASSERT_TRUE(verifier.update(options_.path));
  EXPECT_TRUE(verifier.report().good());
  write_batches(2);
  ASSERT_TRUE(verifier.update(options_.path));
  EXPECT_TRUE(verifier.report().good());
  EXPECT_EQ(verifier.report().entries, 4u);
}

TEST_F(AuditVerifier, NoticesThatAWatchedLogWasReplacedOrMadeShorter) {
  write_batches(3);
  {
    Verifier verifier(with_key());
    ASSERT_TRUE(verifier.update(options_.path));
    std::filesystem::resize_file(options_.path, content().rfind("{\"checkpoint\""));
    ASSERT_TRUE(verifier.update(options_.path));
    ASSERT_FALSE(verifier.report().good());
    EXPECT_THAT(verifier.report().failure->reason, HasSubstr("shorter"));
  }
  std::filesystem::remove(options_.path);
  write_batches(1);
  Verifier verifier(with_key());
  ASSERT_TRUE(verifier.update(options_.path));
  std::string same = content();
  std::filesystem::rename(options_.path, folder_.path("old"));
  replace_content(same);
  ASSERT_TRUE(verifier.update(options_.path));
  ASSERT_FALSE(verifier.report().good());
  EXPECT_THAT(verifier.report().failure->reason, HasSubstr("replaced"));
}

TEST_F(AuditVerifier, ALogThatIsBeingWrittenVerifiesAtAnyMoment) {
  auto log = open_good();
  ASSERT_TRUE(log);
  std::jthread writer([&](std::stop_token stop) {
    while (!stop.stop_requested())
      (void)log->append(record("step"));
  });
  VerifyOptions options = with_key();
  options.patience = 10s;
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(failure(options), "");
}

TEST_F(AuditVerifier, TellsTheLongestSilence) {
  ManualClock clock;
  options_.clock = &clock;
  {
    auto log = open_good();
    ASSERT_TRUE(log);
    clock.advance(3h);
    ASSERT_TRUE(append_and_wait(*log, record("step")));
    clock.advance(1h);
    ASSERT_TRUE(append_and_wait(*log, record("step")));
  }
  EXPECT_EQ(verify(with_key()).longest_silence_seconds, 3 * 3600);
}

// A clock that is stepped back changes no order: the number decides.
TEST_F(AuditVerifier, AClockThatStepsBackIsNoFailure) {
  ManualClock clock;
  options_.clock = &clock;
  {
    auto log = open_good();
    ASSERT_TRUE(log);
    ASSERT_TRUE(append_and_wait(*log, record("step")));
    clock.step_wall(-1h);
    ASSERT_TRUE(append_and_wait(*log, record("step")));
  }
  EXPECT_EQ(failure(), "");
}

}  // namespace
}  // namespace hive::audit
