#include "gateway/audit/checkpoint.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "crypto/sshsig.h"

namespace hive::audit {
namespace {

class CheckpointTest : public ::testing::Test {
 protected:
  crypto::PrivateKey key_ = crypto::PrivateKey::generate("host").value();
  Checkpoint checkpoint_{"hive.test/audit", 42, crypto::sha256("root"), "2026-11-30T12:00:00.000Z"};
};

TEST_F(CheckpointTest, HasTheFormOfATransparencyLog) {
  EXPECT_EQ(checkpoint_text(checkpoint_),
            "hive.test/audit\n42\n" + to_base64(crypto::sha256("root")) + "\ntime 2026-11-30T12:00:00.000Z\n");
}

TEST_F(CheckpointTest, ALineComesBackAndVerifies) {
  for (bool ssh_signature : {false, true}) {
    std::string line = checkpoint_line(seal(checkpoint_, key_, ssh_signature));
    EXPECT_TRUE(is_checkpoint_line(line));
    EXPECT_EQ(line.find('\n'), std::string::npos);
    auto sealed = parse_checkpoint_line(line);
    ASSERT_TRUE(sealed) << sealed.error().message;
    EXPECT_EQ(sealed->checkpoint.size, 42u);
    EXPECT_EQ(sealed->checkpoint.root, checkpoint_.root);
    EXPECT_EQ(sealed->checkpoint.time, checkpoint_.time);
    EXPECT_EQ(sealed->ssh_signature.empty(), !ssh_signature);
    EXPECT_TRUE(verify_checkpoint(*sealed, key_.public_key()));
  }
}

TEST_F(CheckpointTest, AnotherKeyIsToldFromAChangedText) {
  auto other = verify_checkpoint(seal(checkpoint_, key_, true), crypto::PrivateKey::generate("").value().public_key());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::permission_denied);
  auto sealed = seal(checkpoint_, key_, true);
  sealed.note.replace(sealed.note.find("42"), 2, "43");
  auto changed = verify_checkpoint(sealed, key_.public_key());
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::corrupt);
}

TEST_F(CheckpointTest, ASecondSignatureOfAnotherTextIsRefused) {
  auto sealed = seal(checkpoint_, key_, true);
  Checkpoint other = checkpoint_;
  other.size = 41;
  sealed.ssh_signature = seal(other, key_, true).ssh_signature;
  EXPECT_FALSE(verify_checkpoint(sealed, key_.public_key()));
}

TEST_F(CheckpointTest, ANoteFromElsewhereMustNameTheExpectedLog) {
  std::string note = seal(checkpoint_, key_, false).note;
  EXPECT_TRUE(verify_checkpoint_note(note, "", key_.public_key()));
  EXPECT_TRUE(verify_checkpoint_note(note, "hive.test/audit", key_.public_key()));
  EXPECT_FALSE(verify_checkpoint_note(note, "hive.test/other", key_.public_key()));
}

TEST_F(CheckpointTest, MalformedTextsAreRefused) {
  std::string root = to_base64(crypto::sha256("root"));
  EXPECT_TRUE(parse_checkpoint_text("o\n0\n" + root + "\n"));
  for (const std::string& bad : std::vector<std::string>{
           "", "o\n", "o\n1\n" + root, "o\n-1\n" + root + "\n", "o\n01\n" + root + "\n", "o\n\n" + root + "\n",
           "o\n1 \n" + root + "\n", "o\n99999999999999999999\n" + root + "\n", "o\n1\nAAAA\n", "o\n1\nnot base64\n",
           "a b\n1\n" + root + "\n", "\n1\n" + root + "\n"}) {
    EXPECT_FALSE(parse_checkpoint_text(bad)) << bad;
  }
}

TEST_F(CheckpointTest, MalformedLinesAreRefused) {
  for (std::string bad : {R"({"checkpoint":)", R"({"checkpoint":"x"})", R"({"checkpoint":5})",
                          R"({"checkpoint":"a\n1\nb\n\n"})", R"({"checkpoint":{}})"}) {
    EXPECT_FALSE(parse_checkpoint_line(bad)) << bad;
  }
}

}  // namespace
}  // namespace hive::audit
