#include <cstdlib>
#include <ctime>

#include <gmock/gmock.h>

#include "crypto/ssh_key.h"

namespace hive::crypto {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string new_key(const std::string& comment) {
  return PrivateKey::generate(comment).value().public_key().to_line();
}

// Why the only line of a file is refused; empty if it is not.
std::string refusal(const std::string& line) {
  auto parsed = parse_authorized_keys(line);
  EXPECT_EQ(parsed.keys.size() + parsed.refused.size(), 1u) << line;
  return parsed.refused.empty() ? "" : parsed.refused[0].reason;
}

TEST(AuthorizedKeys, TakesTheAgentIdFromTheComment) {
  auto parsed = parse_authorized_keys("# agents\n\n" + new_key("edge-1") + "\r\n  \t\n" + new_key("edge-2"));
  ASSERT_EQ(parsed.keys.size(), 2u);
  EXPECT_TRUE(parsed.refused.empty());
  EXPECT_EQ(parsed.keys[0].key.comment(), "edge-1");
  EXPECT_EQ(parsed.keys[0].line_number, 3u);
  EXPECT_EQ(parsed.keys[1].key.comment(), "edge-2");
  EXPECT_EQ(parsed.keys[1].line_number, 5u);
}

TEST(AuthorizedKeys, AKeyWithoutAnAgentIdIsRefused) {
  EXPECT_THAT(refusal(new_key("")), HasSubstr("agent id"));
  EXPECT_THAT(refusal(new_key("root@laptop")), HasSubstr("comment"));
  EXPECT_THAT(refusal(new_key("edge 1")), HasSubstr("comment"));
  EXPECT_THAT(refusal(new_key("a__b")), HasSubstr("__"));
}

TEST(AuthorizedKeys, OptionsThatAskForLessAreHonoured) {
  EXPECT_EQ(refusal("restrict " + new_key("a")), "");
  EXPECT_EQ(refusal("no-pty,no-port-forwarding,no-agent-forwarding,no-user-rc,no-X11-forwarding " + new_key("a")), "");
  EXPECT_EQ(refusal("RESTRICT\t" + new_key("a")), "");
}

// Row 88: an escaped quote and a tab as separator; the option itself cannot be honoured.
TEST(AuthorizedKeys, AnOptionThatCannotBeHonouredRefusesItsLineByNumber) {
  auto parsed = parse_authorized_keys("\n# x\ncommand=\"echo \\\"a b\\\"\",no-pty\t" + new_key("me"));
  ASSERT_EQ(parsed.refused.size(), 1u);
  EXPECT_TRUE(parsed.keys.empty());
  EXPECT_EQ(parsed.refused[0].line_number, 3u);
  EXPECT_THAT(parsed.refused[0].reason, HasSubstr("\"command\" cannot be honoured"));
  for (std::string option : {"cert-authority", "environment=\"A=b\"", "permitopen=\"h:1\"", "pty", "principals=\"x\""})
    EXPECT_THAT(refusal(option + " " + new_key("a")), HasSubstr("cannot be honoured")) << option;
  EXPECT_THAT(refusal("no-ptty " + new_key("a")), HasSubstr("unknown option \"no-ptty\""));
}

// Row 89: separators inside quotes are text.
TEST(AuthorizedKeys, CommasHashesAndEqualsSignsInsideQuotesAreText) {
  EXPECT_THAT(refusal("command=\"a,b #c=d\" " + new_key("a")), HasSubstr("\"command\""));
  auto parsed = parse_authorized_keys("from=\"10.0.0.0/8, 192.168.1.?\",no-pty " + new_key("a"));
  ASSERT_EQ(parsed.keys.size(), 1u);
  EXPECT_THAT(parsed.keys[0].from_patterns, ElementsAre("10.0.0.0/8", "192.168.1.?"));
}

TEST(AuthorizedKeys, BrokenOptionsRefuseTheLine) {
  EXPECT_THAT(refusal("from=\"10.0.0.1 " + new_key("a")), HasSubstr("quote is not closed"));
  EXPECT_THAT(refusal("from=10.0.0.1 " + new_key("a")), HasSubstr("double quotes"));
  EXPECT_THAT(refusal("from=\"10.0.0.1\"x " + new_key("a")), HasSubstr("after a quoted"));
  EXPECT_THAT(refusal("from=\"10.0.0.1\",from=\"10.0.0.2\" " + new_key("a")), HasSubstr("twice"));
  EXPECT_THAT(refusal("from=\"\" " + new_key("a")), HasSubstr("empty pattern"));
  EXPECT_THAT(refusal("from=\"gw.example\" " + new_key("a")), HasSubstr("host names are not looked up"));
  EXPECT_THAT(refusal("from=\"10.0.0.1/8\" " + new_key("a")), HasSubstr("host bits"));
  EXPECT_THAT(refusal(",no-pty " + new_key("a")), HasSubstr("without a name"));
  EXPECT_THAT(refusal("restrict=\"x\" " + new_key("a")), HasSubstr("takes no value"));
  EXPECT_THAT(refusal("from " + new_key("a")), HasSubstr("needs a value"));
}

TEST(AuthorizedKeys, OnlyEd25519KeysAreAccepted) {
  std::string rest = new_key("a").substr(11);
  EXPECT_THAT(refusal("ssh-rsa" + rest), HasSubstr("ssh-keygen -t ed25519"));
  EXPECT_THAT(refusal("ssh-ed25519-cert-v01@openssh.com" + rest), HasSubstr("certificates"));
  EXPECT_THAT(refusal("sk-ssh-ed25519@openssh.com" + rest), HasSubstr("not accepted"));
  EXPECT_THAT(refusal("ssh-ed25519 AAAA edge-1"), HasSubstr("algorithm"));
  EXPECT_THAT(refusal("this is no key"), HasSubstr("no key of a known type"));
}

TEST(AuthorizedKeys, TheSameKeyTwiceIsRefusedAndTheFirstLineNamed) {
  std::string key = new_key("edge-1");
  auto parsed = parse_authorized_keys(key + "\nrestrict " + key + "-bis\n");
  ASSERT_EQ(parsed.keys.size(), 1u);
  ASSERT_EQ(parsed.refused.size(), 1u);
  EXPECT_EQ(parsed.refused[0].line_number, 2u);
  EXPECT_THAT(parsed.refused[0].reason, HasSubstr("line 1"));
}

TEST(AuthorizedKeys, TwoKeysMayHaveTheSameAgentIdWhileOneIsReplaced) {
  EXPECT_EQ(parse_authorized_keys(new_key("edge-1") + "\n" + new_key("edge-1")).keys.size(), 2u);
}

TEST(AuthorizedKeys, AVeryLongLineIsRefused) {
  EXPECT_THAT(refusal(new_key("a") + std::string(20000, 'x')), HasSubstr("longer than"));
}

TEST(AuthorizedKeys, ExpiryTimesAreReadAsSshdReadsThem) {
  ASSERT_EQ(::setenv("TZ", "Europe/Berlin", 1), 0);
  ::tzset();
  auto expiry = [](const std::string& value) {
    auto parsed = parse_authorized_keys("expiry-time=\"" + value + "\" " + new_key("a"));
    return parsed.keys.empty() ? std::optional<std::int64_t>() : parsed.keys[0].expiry_unix_seconds;
  };
  EXPECT_EQ(expiry("20260101Z"), 1767225600);
  EXPECT_EQ(expiry("202601011230Z"), 1767225600 + 45000);
  EXPECT_EQ(expiry("20260101123015Z"), 1767225600 + 45015);
  EXPECT_EQ(expiry("20260101"), 1767225600 - 3600);
  for (std::string wrong : {"2026", "20260231Z", "202601012460Z", "20261301Z", "2026010112Z", "x0260101Z", ""})
    EXPECT_EQ(expiry(wrong), std::nullopt) << wrong;
  ::unsetenv("TZ");
  ::tzset();
}

TEST(AuthorizedKeys, TheEarliestOfSeveralExpiryTimesCounts) {
  auto parsed = parse_authorized_keys("expiry-time=\"20270101Z\",expiry-time=\"20260101Z\" " + new_key("a"));
  ASSERT_EQ(parsed.keys.size(), 1u);
  EXPECT_EQ(parsed.keys[0].expiry_unix_seconds, 1767225600);
}

bool matches(std::vector<std::string> patterns, std::string_view address) {
  return address_matches(patterns, address);
}

TEST(AddressPatterns, MatchAddressesWildcardsAndNetworks) {
  EXPECT_TRUE(matches({"10.0.0.1"}, "10.0.0.1"));
  EXPECT_FALSE(matches({"10.0.0.1"}, "10.0.0.10"));
  EXPECT_TRUE(matches({"10.0.*"}, "10.0.255.1"));
  EXPECT_TRUE(matches({"10.0.0.?"}, "10.0.0.9"));
  EXPECT_FALSE(matches({"10.0.0.?"}, "10.0.0.19"));
  EXPECT_TRUE(matches({"10.0.0.0/8"}, "10.255.0.1"));
  EXPECT_FALSE(matches({"10.0.0.0/8"}, "11.0.0.1"));
  EXPECT_TRUE(matches({"0.0.0.0/0"}, "203.0.113.9"));
  EXPECT_TRUE(matches({"2001:db8::/32"}, "2001:db8:1::1"));
  EXPECT_FALSE(matches({"2001:db8::/32"}, "2001:db9::1"));
  EXPECT_TRUE(matches({"2001:DB8::1"}, "2001:db8:0::1"));
  EXPECT_FALSE(matches({}, "10.0.0.1"));
}

TEST(AddressPatterns, ANegatedMatchOverrulesAllOthers) {
  EXPECT_FALSE(matches({"10.0.0.0/8", "!10.0.0.5"}, "10.0.0.5"));
  EXPECT_TRUE(matches({"!10.0.0.5", "10.0.0.0/8"}, "10.0.0.6"));
  EXPECT_FALSE(matches({"!10.0.0.5"}, "10.0.0.6"));
}

// Row 71.
TEST(AddressPatterns, MappedAddressesCompareAsIpv4AndZonesAreIgnored) {
  EXPECT_TRUE(matches({"10.0.0.0/8"}, "::ffff:10.0.0.1"));
  EXPECT_TRUE(matches({"::ffff:10.0.0.0/104"}, "10.0.0.1"));
  EXPECT_TRUE(matches({"fe80::1"}, "fe80::1%eth0"));
}

TEST(AddressPatterns, APatternThatCannotBeUnderstoodMatchesNothing) {
  EXPECT_FALSE(matches({"10.0.0.1", "!bad.example"}, "10.0.0.1"));
  EXPECT_FALSE(matches({"10.0.0.0/33"}, "10.0.0.1"));
  EXPECT_FALSE(matches({"*"}, "not an address"));
  EXPECT_TRUE(matches({"*"}, "10.0.0.1"));
}

}  // namespace
}  // namespace hive::crypto
