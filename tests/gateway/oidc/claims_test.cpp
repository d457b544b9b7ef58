#include "gateway/oidc/claims.h"

#include <gtest/gtest.h>

namespace hive::oidc::test {
namespace {

using policy::CredentialFault;
using std::chrono::seconds;

const ClaimRules rules = {"https://id.example", "hive", "groups"};
constexpr long long issued = 1'800'000'000;

WallTime at(long long second) {
  return WallTime(seconds(second));
}

std::string payload(const std::string& more = "", const std::string& exp = "1800000300") {
  return R"({"iss":"https://id.example","aud":"hive","sub":"alice","exp":)" + exp + more + "}";
}

CheckedClaims read(const std::string& text) {
  auto claims = read_claims(text, rules);
  EXPECT_TRUE(claims) << claims.error().detail;
  return claims.value_or(CheckedClaims());
}

void expect_refused(const std::string& text, std::string_view words) {
  auto claims = read_claims(text, rules);
  ASSERT_FALSE(claims) << text;
  EXPECT_EQ(claims.error().fault, CredentialFault::bad_claims);
  EXPECT_NE(claims.error().detail.find(words), std::string::npos) << claims.error().detail;
}

TEST(ReadClaims, ReadsSubjectGroupsAndTimes) {
  CheckedClaims claims = read(payload(R"(,"groups":["admins","ops"],"nbf":1800000000,"iat":1800000001.5,"extra":{})"));
  EXPECT_EQ(claims.identity.subject, "alice");
  EXPECT_EQ(claims.identity.groups, (std::vector<std::string>{"admins", "ops"}));
  EXPECT_EQ(claims.expires_at, at(issued + 300));
  EXPECT_EQ(claims.identity.expires_at, at(issued + 300));
  EXPECT_EQ(claims.not_before, at(issued + 1) + std::chrono::milliseconds(500));
}

TEST(ReadClaims, GroupsMayBeOneTextAListOrAbsent) {
  EXPECT_EQ(read(payload(R"(,"groups":"ops")")).identity.groups, (std::vector<std::string>{"ops"}));
  EXPECT_EQ(read(payload(R"(,"groups":[])")).identity.groups.size(), 0u);
  EXPECT_EQ(read(payload()).identity.groups.size(), 0u);
  for (std::string wrong : {"7", "null", "{}", "[\"a\",7]", "[[\"a\"]]", "true"}) {
    expect_refused(payload(",\"groups\":" + wrong), "neither text nor a list");
  }
}

TEST(ReadClaims, BoundsTheGroups) {
  auto list = [](std::size_t count, const std::string& value) {
    std::string text = ",\"groups\":[";
    for (std::size_t i = 0; i < count; ++i)
      text += (i == 0 ? "\"" : ",\"") + value + "\"";
    return text + "]";
  };
  EXPECT_EQ(read(payload(list(256, "g"))).identity.groups.size(), 256u);
  expect_refused(payload(list(257, "g")), "257 values");
  expect_refused(payload(list(1, std::string(257, 'g'))), "more than 256 bytes");
}

TEST(ReadClaims, TheIssuerIsComparedByteForByte) {
  for (std::string issuer :
       {"https://id.example/", "https://ID.example", "http://id.example", "", "https://evil.example"}) {
    expect_refused(R"({"iss":")" + issuer + R"(","aud":"hive","sub":"a","exp":1800000300})", "issuer");
  }
  expect_refused(R"({"aud":"hive","sub":"a","exp":1800000300})", "no issuer");
  expect_refused(R"({"iss":["https://id.example"],"aud":"hive","sub":"a","exp":1800000300})", "no issuer");
}

TEST(ReadClaims, TheAudienceIsOneOfTheList) {
  auto with_audience = [](const std::string& audience) {
    return R"({"iss":"https://id.example","sub":"a","exp":1800000300,"aud":)" + audience + "}";
  };
  EXPECT_TRUE(read_claims(with_audience(R"(["other","hive"])"), rules));
  for (std::string other : {"\"other\"", "\"hive2\"", "[\"other\"]", "[]", "\"\"", "\"Hive\""}) {
    expect_refused(with_audience(other), "another audience");
  }
  expect_refused(with_audience("7"), "aud");
  expect_refused(with_audience("[7]"), "aud");
  expect_refused(R"({"iss":"https://id.example","sub":"a","exp":1800000300})", "no audience");
}

TEST(ReadClaims, TimesAreNumbers) {
  for (std::string wrong : {"\"1800000300\"", "1e400", "-1", "null", "[1800000300]", "true", "1e300", "253402300800"}) {
    expect_refused(payload("", wrong), "exp");
    expect_refused(payload(",\"nbf\":" + wrong), "nbf");
    expect_refused(payload(",\"iat\":" + wrong), "iat");
  }
  expect_refused(payload("", "NaN"), "not a JSON object");
  expect_refused(R"({"iss":"https://id.example","aud":"hive","sub":"a"})", "no end");
  EXPECT_EQ(read(payload("", "1.8000003005e9")).expires_at, at(issued + 300) + std::chrono::milliseconds(500));
}

TEST(ReadClaims, ASubjectIsNeeded) {
  for (std::string wrong : {"\"\"", "7", "null", "[\"alice\"]"}) {
    expect_refused(R"({"iss":"https://id.example","aud":"hive","exp":1800000300,"sub":)" + wrong + "}", "subject");
  }
  expect_refused(R"({"iss":"https://id.example","aud":"hive","exp":1800000300,"sub":")" + std::string(257, 'a') + "\"}",
                 "longer than 256");
}

TEST(ReadClaims, AClaimThatStandsTwiceIsRefused) {
  expect_refused(payload(R"(,"sub":"bob")"), "not a JSON object");
  expect_refused(payload(R"(,"exp":1900000000)"), "not a JSON object");
  expect_refused("[]", "not a JSON object");
  expect_refused("", "not a JSON object");
}

TEST(CheckTimes, ATokenHoldsUntilItsEndAndNotAMomentLonger) {
  CheckedClaims claims = read(payload());
  EXPECT_FALSE(check_times(claims, at(issued + 299)));
  for (long long late : {0, 1, 5000}) {
    auto fault = check_times(claims, at(issued + 300 + late));
    ASSERT_TRUE(fault) << late;
    EXPECT_EQ(fault->fault, CredentialFault::expired);
    EXPECT_NE(fault->detail.find(std::to_string(late) + " s ago"), std::string::npos) << fault->detail;
  }
}

TEST(CheckTimes, TheIssuersClockMayBeAMinuteAhead) {
  for (std::string name : {"nbf", "iat"}) {
    CheckedClaims claims = read(payload(",\"" + name + "\":1800000000"));
    for (long long early : {-10, 0, 1, 60})
      EXPECT_FALSE(check_times(claims, at(issued - early))) << name << " " << early;
    auto fault = check_times(claims, at(issued - 300));
    ASSERT_TRUE(fault) << name;
    EXPECT_EQ(fault->fault, CredentialFault::bad_claims);
    EXPECT_NE(fault->detail.find("300 s in the future"), std::string::npos) << fault->detail;
  }
}

TEST(CheckTimes, TheLaterOfBothBeginningsCounts) {
  EXPECT_TRUE(check_times(read(payload(R"(,"nbf":1800000200,"iat":1799999999)")), at(issued)));
  EXPECT_TRUE(check_times(read(payload(R"(,"nbf":1799999999,"iat":1800000200)")), at(issued)));
}

}  // namespace
}  // namespace hive::oidc::test
