#include "gateway/audit/recovery.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "gateway/audit/support.h"
#include "gateway/audit/verifier.h"

namespace hive::audit {
namespace {

using ::testing::HasSubstr;

class Recovery : public LogTest {
 protected:
  VerifyReport verify() {
    VerifyOptions options;
    options.key = key_.public_key();
    options.patience = std::chrono::milliseconds(0);
    return verify_log(options_.path, std::move(options)).value();
  }

  std::string refusal() {
    auto log = open();
    EXPECT_FALSE(log);
    return log ? "" : log.error().message;
  }

  // The file must stand as it is after a refusal.
  void expect_refused_untouched(const std::string& text, const std::string& why) {
    replace_content(text);
    EXPECT_THAT(refusal(), HasSubstr(why));
    EXPECT_EQ(content(), text);
  }
};

// Row 157: whatever part of the last batch reached the disk.
TEST_F(Recovery, ACutAtEveryByteOfTheLastBatchIsRepairedVisibly) {
  write_batches(2);
  std::string before = content();
  // The batch as a crash would have cut it: one entry and its checkpoint.
  write_batches(1);
  std::string whole = content();
  auto batch_end = whole.find('\n', whole.find("{\"checkpoint\"", before.size())) + 1;
  for (size_t size = before.size(); size < batch_end; ++size) {
    std::string torn = whole.substr(before.size(), size - before.size());
    replace_content(whole.substr(0, size));
    {
      auto log = open();
      ASSERT_TRUE(log) << size << ": " << log.error().message;
      EXPECT_EQ((*log)->recovery().repaired_bytes, torn.size());
      EXPECT_EQ((*log)->size(), torn.empty() ? 2u : 3u);
      if (!torn.empty()) {
        EXPECT_EQ(test::content_of((*log)->recovery().torn_path), torn);
        std::filesystem::remove((*log)->recovery().torn_path);
      }
    }
    VerifyReport report = verify();
    ASSERT_TRUE(report.good()) << size << ": " << report.failure->reason;
    EXPECT_EQ(content().substr(0, before.size()), before);
    ASSERT_EQ(report.recoveries.size(), torn.empty() ? 0u : 1u);
    if (!torn.empty()) {
      EXPECT_THAT(report.recoveries[0].detail, HasSubstr(fmt::format("{} bytes", torn.size())));
    }
  }
}

TEST_F(Recovery, ACrashWhileTheFirstLineIsWrittenLeavesANewLog) {
  write_batches(0);
  std::string first = content();
  for (size_t size = 0; size < first.size(); ++size) {
    replace_content(first.substr(0, size));
    auto log = open();
    ASSERT_TRUE(log) << size << ": " << log.error().message;
    EXPECT_EQ((*log)->recovery().repaired_bytes, size);
    if (size > 0) std::filesystem::remove((*log)->recovery().torn_path);
  }
}

TEST_F(Recovery, ASecondCrashAtTheSameEntryKeepsBothRests) {
  write_batches(1);
  std::string good = content();
  for (std::string_view rest : {"{\"seq\":1,\"ti", "{\"seq\":1,\"time\":\"x"}) {
    replace_content(good + std::string(rest));
    ASSERT_TRUE(open());
  }
  EXPECT_EQ(test::content_of(options_.path + ".torn-1"), "{\"seq\":1,\"ti");
  EXPECT_EQ(test::content_of(options_.path + ".torn-1-2"), "{\"seq\":1,\"time\":\"x");
}

TEST_F(Recovery, BlocksThatThePowerFailureLeftAsZerosAreATornTail) {
  write_batches(1);
  std::string good = content();
  replace_content(good + std::string(5000, '\0'));
  auto log = open();
  ASSERT_TRUE(log) << log.error().message;
  EXPECT_EQ((*log)->recovery().repaired_bytes, 5000u);
}

TEST_F(Recovery, LinesAddedBehindTheLastCheckpointAreNeverSigned) {
  write_batches(1);
  std::string good = content();
  std::string forged = R"({"seq":1,"time":"2026-01-01T00:00:00.000Z","kind":"event","action":"forged"})";
  replace_content(good + forged + "\n");
  ASSERT_TRUE(open());
  EXPECT_EQ(content().find(forged), std::string::npos);
  EXPECT_TRUE(verify().good());
  EXPECT_EQ(test::content_of(options_.path + ".torn-1"), forged + "\n");
}

TEST_F(Recovery, AnyChangedByteOfAnEntryOrASignedTextIsRefused) {
  write_batches(2);
  const std::vector<std::string> good = lines();
  for (size_t i = 0; i + 1 < good.size(); ++i) {
    // Of earlier checkpoints only the text counts: the signature of the last one covers them all.
    size_t end = good[i].starts_with("{\"seq\"") ? good[i].size() : good[i].find("\\ntime");
    for (size_t at = 0; at < end; at += 3) {
      auto changed = good;
      changed[i][at] ^= 1;
      std::string text;
      for (const std::string& line : changed)
        text += line + "\n";
      replace_content(text);
      EXPECT_FALSE(open()) << i << ":" << at;
      EXPECT_EQ(content(), text);
    }
  }
}

TEST_F(Recovery, AChangedLastCheckpointIsRefusedAndNotTakenForATornTail) {
  write_batches(2);
  std::string good = content();
  for (size_t at = good.rfind("{\"checkpoint\"") + 15; at + 4 < good.size(); at += 5) {
    std::string changed = good;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    replace_content(changed);
    EXPECT_FALSE(open()) << at;
    EXPECT_EQ(content(), changed);
  }
}

TEST_F(Recovery, ALogOfAnotherKeyIsRefusedWithWhatToDo) {
  write_batches(1);
  key_ = crypto::PrivateKey::generate("another").value();
  std::string message = refusal();
  EXPECT_THAT(message, HasSubstr("another host key"));
  EXPECT_THAT(message, HasSubstr(key_.public_key().fingerprint()));
  EXPECT_THAT(message, HasSubstr("move the log away"));
}

TEST_F(Recovery, ALogOfAnotherNameIsRefused) {
  write_batches(1);
  options_.origin = "hive.test/other";
  EXPECT_THAT(refusal(), HasSubstr("hive.test/audit"));
}

TEST_F(Recovery, AFileThatIsNoLogOfOursIsLeftAlone) {
  expect_refused_untouched("root:x:0:0::/root:/bin/sh\n", "not an audit log");
  expect_refused_untouched(R"({"timestamp":"2026-01-01T00:00:00Z","token_id":"a","role":"admin"})"
                           "\n",
                           "not an audit log");
  expect_refused_untouched("{\"seq\":0", "not an audit log");
}

TEST_F(Recovery, ALogWhoseCheckpointsWereRemovedIsRefused) {
  write_batches(2);
  std::string entries;
  for (const std::string& line : lines())
    if (line.starts_with("{\"seq\"")) entries += line + "\n";
  expect_refused_untouched(entries, "checkpoints were removed");
}

TEST_F(Recovery, AnEndlessLineIsRefused) {
  write_batches(1);
  expect_refused_untouched(content() + std::string(size_t{2} << 20, 'x'), "longer than");
}

}  // namespace
}  // namespace hive::audit
