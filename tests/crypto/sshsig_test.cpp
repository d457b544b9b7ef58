#include "crypto/sshsig.h"

#include <gtest/gtest.h>

#include "crypto/scratch_folder.h"

namespace hive::crypto {
namespace {

class SshsigTest : public ::testing::Test {
 protected:
  test::ScratchFolder folder_;
  PrivateKey key_ = PrivateKey::generate("signer").value();
};

TEST_F(SshsigTest, StockSshKeygenAcceptsOurSignature) {
  std::string signers = folder_.write("signers", "me " + key_.public_key().to_line() + "\n");
  std::string signature = folder_.write("sig", sshsig_armor(sshsig_sign("hello\n", "file", key_)));
  std::string message = folder_.write("message", "hello\n");
  std::string command = "ssh-keygen -Y verify -f '" + signers + "' -I me -n file -s '" + signature + "' < ";
  auto good = test::run_command(command + "'" + message + "'");
  EXPECT_EQ(good.status, 0) << good.output;
  std::string changed = folder_.write("changed", "hello!\n");
  EXPECT_NE(test::run_command(command + "'" + changed + "'").status, 0);
}

TEST_F(SshsigTest, WeAcceptASignatureOfStockSshKeygen) {
  std::string key = folder_.write("key", key_.to_openssh());
  std::string message = folder_.write("message", "hello\n");
  auto made = test::run_command("ssh-keygen -q -Y sign -f '" + key + "' -n file '" + message + "'");
  ASSERT_EQ(made.status, 0) << made.output;
  auto signature = sshsig_dearmor(test::content_of(message + ".sig"));
  ASSERT_TRUE(signature) << signature.error().message;
  auto verified = sshsig_verify("hello\n", "file", *signature, key_.public_key());
  EXPECT_TRUE(verified) << verified.error().message;
}

TEST_F(SshsigTest, ASignatureHoldsForItsMessagePurposeAndKeyAlone) {
  auto signature = sshsig_sign("hello", "file", key_);
  EXPECT_TRUE(sshsig_verify("hello", "file", signature, key_.public_key()));
  EXPECT_FALSE(sshsig_verify("hallo", "file", signature, key_.public_key()));
  EXPECT_FALSE(sshsig_verify("hello", "email", signature, key_.public_key()));
  EXPECT_FALSE(sshsig_verify("hello", "file", signature, PrivateKey::generate("").value().public_key()));
}

TEST_F(SshsigTest, EveryChangedByteAndEveryCutIsNoticed) {
  auto signature = sshsig_sign("hello", "file", key_);
  for (size_t i = 0; i < signature.size(); ++i) {
    auto changed = signature;
    changed[i] ^= 1;
    EXPECT_FALSE(sshsig_verify("hello", "file", changed, key_.public_key())) << i;
    EXPECT_FALSE(sshsig_verify("hello", "file", std::span(signature).first(i), key_.public_key())) << i;
  }
}

TEST_F(SshsigTest, TextThatIsNoSignatureIsRefused) {
  EXPECT_FALSE(sshsig_dearmor(""));
  EXPECT_FALSE(sshsig_dearmor("-----BEGIN SSH SIGNATURE-----"));
  EXPECT_FALSE(sshsig_dearmor("-----BEGIN SSH SIGNATURE-----\n!!!!\n-----END SSH SIGNATURE-----"));
  EXPECT_FALSE(sshsig_dearmor(std::string(20000, 'x')));
}

}  // namespace
}  // namespace hive::crypto
