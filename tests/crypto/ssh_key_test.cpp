#include "crypto/ssh_key.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "base/strings.h"
#include "crypto/scratch_folder.h"

namespace hive::crypto {
namespace {

using ::testing::HasSubstr;

class SshKeyTest : public ::testing::Test {
 protected:
  // A key made by OpenSSH; returns the path of its private half.
  std::string keygen(const std::string& arguments) {
    std::string path = folder_.path("key");
    auto made = test::run_command("ssh-keygen -q -f '" + path + "' " + arguments);
    EXPECT_EQ(made.status, 0) << made.output;
    return path;
  }

  test::ScratchFolder folder_;
};

TEST_F(SshKeyTest, ReadsWhatOpensshWrites) {
  std::string path = keygen("-t ed25519 -N '' -C edge-1");
  auto key = PrivateKey::load(path);
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_EQ(key->public_key().to_line() + "\n", test::content_of(path + ".pub"));
  EXPECT_EQ(key->public_key().comment(), "edge-1");
  auto listed = test::run_command("ssh-keygen -l -f '" + path + "'");
  EXPECT_THAT(listed.output, HasSubstr(key->public_key().fingerprint()));
}

TEST_F(SshKeyTest, WritesWhatOpensshReads) {
  for (std::string comment : {"", "a", "edge-1", "a comment of some length, to move the padding"}) {
    auto key = PrivateKey::generate(comment).value();
    std::string path = folder_.write("own", key.to_openssh());
    auto derived = test::run_command("ssh-keygen -y -f '" + path + "'");
    EXPECT_EQ(derived.status, 0) << derived.output;
    EXPECT_EQ(derived.output, key.public_key().to_line() + "\n");
  }
}

TEST_F(SshKeyTest, AWrittenKeyComesBackAndSignsTheSame) {
  auto key = PrivateKey::generate("host").value();
  auto again = PrivateKey::from_openssh(key.to_openssh());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->public_key(), key.public_key());
  EXPECT_EQ(again->sign(as_bytes("message")), key.sign(as_bytes("message")));
}

TEST_F(SshKeyTest, ReadsAFileWithWindowsLineEnds) {
  std::string text = PrivateKey::generate("host").value().to_openssh();
  std::string windows;
  for (char c : text)
    windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_TRUE(PrivateKey::from_openssh(windows));
}

TEST_F(SshKeyTest, SignaturesHoldForTheirMessageAndKeyAlone) {
  auto key = PrivateKey::generate("host").value();
  auto signature = key.sign(as_bytes("message"));
  EXPECT_TRUE(key.public_key().verify(as_bytes("message"), signature));
  EXPECT_FALSE(key.public_key().verify(as_bytes("messagf"), signature));
  EXPECT_FALSE(key.public_key().verify(as_bytes("message"), std::span(signature).first(63)));
  EXPECT_FALSE(PrivateKey::generate("other").value().public_key().verify(as_bytes("message"), signature));
  signature[0] ^= 1;
  EXPECT_FALSE(key.public_key().verify(as_bytes("message"), signature));
}

TEST_F(SshKeyTest, ACopyAndAMovedKeySignLikeTheOriginal) {
  auto key = PrivateKey::generate("host").value();
  auto expected = key.sign(as_bytes("message"));
  PrivateKey copy = key;
  PrivateKey moved = std::move(key);
  EXPECT_EQ(copy.sign(as_bytes("message")), expected);
  EXPECT_EQ(moved.sign(as_bytes("message")), expected);
  EXPECT_EQ(PrivateKey::from_openssh(moved.to_openssh()).value().public_key(), copy.public_key());
}

// Row 94 of the field inputs.
TEST_F(SshKeyTest, AKeyWithAPassphraseIsRefusedByTheNameOfItsCipher) {
  for (std::string cipher : {"aes256-ctr", "aes256-cbc", "aes256-gcm@openssh.com"}) {
    std::filesystem::remove(folder_.path("key"));
    std::filesystem::remove(folder_.path("key.pub"));
    auto key = PrivateKey::load(keygen("-t ed25519 -N secret -Z " + cipher));
    ASSERT_FALSE(key);
    EXPECT_THAT(key.error().message, HasSubstr(cipher));
    EXPECT_THAT(key.error().message, HasSubstr("ssh-keygen -p"));
    EXPECT_THAT(key.error().message, HasSubstr(folder_.path("key")));
  }
}

// Row 95: the header is the same for all of them.
TEST_F(SshKeyTest, AKeyOfAnotherTypeIsRefusedByItsName) {
  for (auto [arguments, type] :
       {std::pair("-t rsa -b 2048", "ssh-rsa"), std::pair("-t ecdsa", "ecdsa-sha2-nistp256")}) {
    std::filesystem::remove(folder_.path("key"));
    std::filesystem::remove(folder_.path("key.pub"));
    auto key = PrivateKey::load(keygen(std::string(arguments) + " -N ''"));
    ASSERT_FALSE(key);
    EXPECT_THAT(key.error().message, HasSubstr(type));
  }
}

TEST_F(SshKeyTest, APemKeyAndAPublicKeyEachGetTheirOwnMessage) {
  auto pem = PrivateKey::load(keygen("-t rsa -b 2048 -m PEM -N ''"));
  ASSERT_FALSE(pem);
  EXPECT_THAT(pem.error().message, HasSubstr("PEM"));
  std::string public_line = PrivateKey::generate("x").value().public_key().to_line();
  EXPECT_THAT(PrivateKey::from_openssh(public_line).error().message, HasSubstr("public key"));
  EXPECT_THAT(PrivateKey::from_openssh("").error().message, HasSubstr("not an OpenSSH private key"));
}

TEST_F(SshKeyTest, AKeyFileThatOthersCanReadIsRefusedWithTheRemedy) {
  std::string path = folder_.write("key", PrivateKey::generate("x").value().to_openssh(), 0644);
  auto key = PrivateKey::load(path);
  ASSERT_FALSE(key);
  EXPECT_THAT(key.error().message, HasSubstr("chmod 600 " + path));
}

TEST_F(SshKeyTest, EveryCutAndEveryChangedByteOfAKeyFileIsNoticedOrHarmless) {
  auto original = PrivateKey::generate("x").value();
  std::string text = original.to_openssh();
  for (size_t size = 0; size + 1 < text.size(); ++size)
    EXPECT_FALSE(PrivateKey::from_openssh(std::string_view(text).substr(0, size))) << size;
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    auto key = PrivateKey::from_openssh(changed);
    // Only the random check numbers and the comment can differ in a file that still holds together.
    if (key) {
      EXPECT_EQ(key->public_key(), original.public_key()) << at;
    }
  }
}

TEST(PublicKey, RefusesWhatIsNotExactlyOneKey) {
  auto key = PrivateKey::generate("edge-1").value().public_key();
  std::string line = key.to_line();
  EXPECT_TRUE(PublicKey::from_line(line));
  EXPECT_TRUE(PublicKey::from_line("  " + line + "\n"));
  EXPECT_FALSE(PublicKey::from_line(""));
  EXPECT_FALSE(PublicKey::from_line("ssh-ed25519"));
  EXPECT_FALSE(PublicKey::from_line(line + "\n" + line));
  EXPECT_FALSE(PublicKey::from_line("ssh-rsa" + line.substr(line.find(' '))));
  EXPECT_FALSE(PublicKey::from_line("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA== short"));
  std::vector<std::uint8_t> longer(key.blob().begin(), key.blob().end());
  longer.push_back(0);
  EXPECT_FALSE(PublicKey::from_blob(longer));
  EXPECT_FALSE(PublicKey::from_blob({}));
}

TEST(PublicKey, ComparesKeysAndNotComments) {
  auto key = PrivateKey::generate("edge-1").value().public_key();
  EXPECT_EQ(key, PublicKey::from_ed25519(key.ed25519(), "another"));
  EXPECT_FALSE(key == PrivateKey::generate("edge-1").value().public_key());
}

}  // namespace
}  // namespace hive::crypto
