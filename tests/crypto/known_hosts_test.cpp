#include "crypto/known_hosts.h"

#include <gmock/gmock.h>

#include "crypto/scratch_folder.h"

namespace hive::crypto {
namespace {

using ::testing::HasSubstr;

class KnownHostsTest : public ::testing::Test {
 protected:
  HostKeyVerdict judge(const std::string& names, std::string_view host, std::uint16_t port = 22) {
    return lookup_known_host(names + " " + key_.to_line() + "\n", host, port).judge(key_);
  }

  PublicKey key_ = PrivateKey::generate("").value().public_key();
  PublicKey other_ = PrivateKey::generate("").value().public_key();
};

TEST_F(KnownHostsTest, AKeyIsKnownChangedOrUnknown) {
  std::string text = "# comment\n\ngw.example " + key_.to_line() + "\n";
  EXPECT_EQ(lookup_known_host(text, "gw.example", 22).judge(key_), HostKeyVerdict::known);
  EXPECT_EQ(lookup_known_host(text, "gw.example", 22).judge(other_), HostKeyVerdict::changed);
  EXPECT_EQ(lookup_known_host(text, "other.example", 22).judge(key_), HostKeyVerdict::unknown);
  EXPECT_EQ(lookup_known_host(text, "gw.example", 22).line_numbers, std::vector<size_t>{3});
}

TEST_F(KnownHostsTest, AHostWithAKeyOfAnotherTypeIsNotNew) {
  std::string text = "gw ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBA==\n";
  EXPECT_EQ(lookup_known_host(text, "gw", 22).judge(key_), HostKeyVerdict::changed);
}

// Rows 91 and 92.
TEST_F(KnownHostsTest, NamesMatchByTheRulesOfOpenssh) {
  EXPECT_EQ(judge("[gw.example]:2222", "gw.example", 2222), HostKeyVerdict::known);
  EXPECT_EQ(judge("[gw.example]:2222", "gw.example"), HostKeyVerdict::unknown);
  EXPECT_EQ(judge("gw.example", "gw.example", 2222), HostKeyVerdict::unknown);
  EXPECT_EQ(judge("*.example,!bad.example", "good.example"), HostKeyVerdict::known);
  EXPECT_EQ(judge("*.example,!bad.example", "bad.example"), HostKeyVerdict::unknown);
  EXPECT_EQ(judge("!bad.example,*.example", "bad.example"), HostKeyVerdict::unknown);
  EXPECT_EQ(judge("gw?", "gw1"), HostKeyVerdict::known);
  EXPECT_EQ(judge("gw2", "gw"), HostKeyVerdict::unknown);
  EXPECT_EQ(judge("gw", "gw2"), HostKeyVerdict::unknown);
  EXPECT_EQ(judge("a,GW.Example,b", "gw.eXample"), HostKeyVerdict::known);
  EXPECT_EQ(judge("2001:db8::1", "2001:db8::1"), HostKeyVerdict::known);
}

TEST_F(KnownHostsTest, HashedNamesMatchLikeOpensshWritesThem) {
  test::ScratchFolder folder;
  std::string path =
      folder.write("known_hosts", "gw.example " + key_.to_line() + "\n[gw.example]:2222 " + other_.to_line() + "\n");
  auto hashed = test::run_command("ssh-keygen -H -f '" + path + "'");
  ASSERT_EQ(hashed.status, 0) << hashed.output;
  std::string text = test::content_of(path);
  ASSERT_THAT(text, HasSubstr("|1|"));
  EXPECT_EQ(lookup_known_host(text, "gw.example", 22).judge(key_), HostKeyVerdict::known);
  EXPECT_EQ(lookup_known_host(text, "gw.example", 2222).judge(other_), HostKeyVerdict::known);
  EXPECT_EQ(lookup_known_host(text, "gw.example", 2222).judge(key_), HostKeyVerdict::changed);
  EXPECT_EQ(lookup_known_host(text, "gw", 22).judge(key_), HostKeyVerdict::unknown);
}

TEST_F(KnownHostsTest, ARevokedKeyIsRevokedWhateverElseTheFileSays) {
  std::string text = "gw " + key_.to_line() + "\n@revoked * " + key_.to_line() + "\n";
  EXPECT_EQ(lookup_known_host(text, "gw", 22).judge(key_), HostKeyVerdict::revoked);
}

TEST_F(KnownHostsTest, ACertificateAuthorityIsNotTakenForAHostKey) {
  auto found = lookup_known_host("@cert-authority *.example " + key_.to_line(), "gw.example", 22);
  EXPECT_TRUE(found.has_certificate_authority);
  EXPECT_EQ(found.judge(key_), HostKeyVerdict::unknown);
}

TEST_F(KnownHostsTest, LinesThatCannotBeUnderstoodMatchNothingAndAreReported) {
  std::string text = "|1|c2hvcnQ=|c2hvcnQ= " + key_.to_line() + "\n|2|a|b " + key_.to_line() + "\n@unknown gw " +
                     key_.to_line() + "\ngw ssh-ed25519 AAAA\ngw\n" + std::string(20000, 'x') + "\n";
  auto found = lookup_known_host(text, "gw", 22);
  EXPECT_EQ(found.judge(key_), HostKeyVerdict::unknown);
  EXPECT_EQ(found.unreadable.size(), 6u);
}

TEST_F(KnownHostsTest, AWrittenLineIsFoundAgainAlsoByOpenssh) {
  test::ScratchFolder folder;
  for (auto [host, port, name] :
       {std::tuple("gw.example", 22, "gw.example"), std::tuple("GW.example", 2222, "[gw.example]:2222"),
        std::tuple("2001:db8::1", 2222, "[2001:db8::1]:2222")}) {
    auto line = format_known_host(host, static_cast<std::uint16_t>(port), key_);
    ASSERT_TRUE(line);
    EXPECT_EQ(lookup_known_host(*line, host, static_cast<std::uint16_t>(port)).judge(key_), HostKeyVerdict::known);
    std::string path = folder.write("known_hosts", *line + "\n");
    auto found = test::run_command("ssh-keygen -F '" + std::string(name) + "' -f '" + path + "'");
    EXPECT_EQ(found.status, 0) << name;
  }
}

TEST_F(KnownHostsTest, AHostThatWouldBeAPatternOrSeveralFieldsIsNotWritten) {
  for (std::string host : {"", "*", "a b", "a,b", "!a", "a\nb", "@revoked", "|1|", "#x", "[a]"})
    EXPECT_FALSE(format_known_host(host, 22, key_)) << host;
}

}  // namespace
}  // namespace hive::crypto
