#include "crypto/signed_note.h"

#include <gmock/gmock.h>

#include "base/strings.h"

namespace hive::crypto {
namespace {

constexpr std::string_view text =
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n";

// The example of the Go package golang.org/x/mod/sumdb/note, whose format this is.
TEST(SignedNote, VerifiesTheKnownExample) {
  constexpr std::string_view verifier = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
  auto raw = from_base64(split(verifier, '+')[2]).value();
  std::array<std::uint8_t, 32> public_raw{};
  std::copy(raw.begin() + 1, raw.end(), public_raw.begin());
  PublicKey key = PublicKey::from_ed25519(public_raw);
  EXPECT_EQ(note_verifier_key("PeterNeumann", key), verifier);
  std::string note = std::string(text) +
                     "\n\u2014 PeterNeumann "
                     "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
  auto verified = verify_note(note, "PeterNeumann", key);
  ASSERT_TRUE(verified) << verified.error().message;
  EXPECT_EQ(*verified, text);
}

class OwnNote : public ::testing::Test {
 protected:
  PrivateKey key_ = PrivateKey::generate("").value();
  std::string note_ = sign_note(text, "log.example/a", key_);
};

TEST_F(OwnNote, HoldsForItsKeyAndNameAlone) {
  EXPECT_EQ(verify_note(note_, "log.example/a", key_.public_key()), std::string(text));
  auto other_name = verify_note(note_, "log.example/b", key_.public_key());
  ASSERT_FALSE(other_name);
  EXPECT_EQ(other_name.error().code, ErrorCode::permission_denied);
  auto other_key = verify_note(note_, "log.example/a", PrivateKey::generate("").value().public_key());
  ASSERT_FALSE(other_key);
  EXPECT_EQ(other_key.error().code, ErrorCode::permission_denied);
}

TEST_F(OwnNote, AChangedTextIsNoticed) {
  note_[3] = 'X';
  auto verified = verify_note(note_, "log.example/a", key_.public_key());
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code, ErrorCode::corrupt);
}

TEST_F(OwnNote, SignaturesOfOthersDoNotDisturb) {
  std::string others = sign_note(text, "witness", PrivateKey::generate("").value());
  note_ += others.substr(text.size() + 1);
  EXPECT_TRUE(verify_note(note_, "log.example/a", key_.public_key()));
}

TEST_F(OwnNote, AMalformedNoteIsRefused) {
  for (std::string bad : {std::string(), std::string("text\n"), std::string("text\n\n"),
                          note_.substr(0, note_.size() - 1), note_ + "more\n", std::string(text) + "\n\u2014 name\n",
                          std::string(text) + "\n\u2014 name AAAA\n", std::string(text) + "\n\u2014 na+me AAAAAAAA\n",
                          "\x01" + note_, "\xff" + note_, std::string(70000, 'x') + note_}) {
    EXPECT_FALSE(parse_note(bad)) << bad.substr(0, 100);
  }
  std::string many = note_;
  for (int i = 0; i < 16; ++i)
    many += note_.substr(text.size() + 1);
  EXPECT_FALSE(parse_note(many));
}

TEST(NoteKeyName, IsVisibleAsciiWithoutPlus) {
  EXPECT_TRUE(is_note_key_name("hive.example/audit"));
  for (std::string bad : {"", "a b", "a+b", "a\nb", "\u00e4"})
    EXPECT_FALSE(is_note_key_name(bad)) << bad;
}

}  // namespace
}  // namespace hive::crypto
