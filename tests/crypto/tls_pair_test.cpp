#include "crypto/tls_pair.h"

#include <gmock/gmock.h>

#include "crypto/scratch_folder.h"

namespace hive::crypto {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TlsPair : public ::testing::Test {
 protected:
  void SetUp() override {
    make("one");
    make("two");
  }

  void make(const std::string& name) const {
    auto made = test::run_command(
        "umask 077; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
        "-subj /CN=test -keyout '" +
        folder_.path(name + ".key") + "' -out '" + folder_.path(name + ".crt") + "'");
    ASSERT_EQ(made.status, 0) << made.output;
  }

  [[nodiscard]] std::string refusal(const std::string& cert, const std::string& key) const {
    auto checked = check_certificate_and_key(folder_.path(cert), folder_.path(key));
    return checked ? "" : checked.error().message;
  }

  test::ScratchFolder folder_;
};

TEST_F(TlsPair, ACertificateAndItsOwnKeyAreGood) {
  EXPECT_EQ(refusal("one.crt", "one.key"), "");
}

TEST_F(TlsPair, TheKeyOfAnotherCertificateIsRefusedAndBothAreNamed) {
  EXPECT_THAT(refusal("one.crt", "two.key"), AllOf(HasSubstr("one.crt"), HasSubstr("two.key"), HasSubstr("another")));
}

TEST_F(TlsPair, FilesThatAreMissingOrNotPemAreNamed) {
  EXPECT_THAT(refusal("none.crt", "one.key"), HasSubstr("none.crt"));
  EXPECT_THAT(refusal("one.crt", "none.key"), HasSubstr("none.key"));
  folder_.write("junk", "junk");
  EXPECT_THAT(refusal("junk", "one.key"), HasSubstr("no certificate"));
  EXPECT_THAT(refusal("one.crt", "junk"), HasSubstr("no private key"));
}

TEST_F(TlsPair, AnEncryptedKeyIsRefusedWithoutAPrompt) {
  auto made = test::run_command("umask 077; openssl pkey -aes256 -passout pass:secret -in '" + folder_.path("one.key") +
                                "' -out '" + folder_.path("locked.key") + "'");
  ASSERT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(refusal("one.crt", "locked.key"), HasSubstr("encrypted"));
}

TEST_F(TlsPair, AKeyThatOthersCanReadIsRefused) {
  folder_.write("loose.key", test::content_of(folder_.path("one.key")), 0644);
  EXPECT_THAT(refusal("one.crt", "loose.key"), HasSubstr("chmod"));
}

}  // namespace
}  // namespace hive::crypto
