#include "gateway/policy/identity.h"

#include <string>

#include <gtest/gtest.h>

namespace hive::policy {
namespace {

TEST(Identity, NamesOfPeopleAndMachinesAreAccepted) {
  for (const char* name : {"ann", "ann@example.org", "CN=Ann Smith,O=Example", "J\xc3\xb6rg", "\xe6\x9d\x8e",
                           "gateway-2", "tokens", "my token:x", "systematic"})
    EXPECT_TRUE(check_identity(name)) << name;
  EXPECT_TRUE(check_identity(std::string(256, 'a')));
}

TEST(Identity, NamesThatCouldBeMistakenForSomethingElseAreNot) {
  for (const char* name :
       {"", "token:0123456789ab", "Token:x", "token:", "gateway", "Gateway", "system", "SYSTEM", "stdio"})
    EXPECT_FALSE(check_identity(name)) << name;
  EXPECT_FALSE(check_identity(std::string(257, 'a')));
}

TEST(Identity, NamesThatChangeHowALineLooksAreNot) {
  for (std::string_view name :
       {std::string_view("a\nb"), std::string_view("a\0b", 3), std::string_view("a\x7f"), std::string_view("a\xc2\x85"),
        std::string_view("\xff"), std::string_view("a\xc3"), std::string_view("a\xe2\x80\xae"),
        std::string_view("a\xe2\x80\x8b"), std::string_view("a\xe2\x80\xa8"), std::string_view("\xef\xbb\xbf"),
        std::string_view(" ann"), std::string_view("ann ")})
    EXPECT_FALSE(check_identity(name));
}

TEST(Identity, CaseOfAsciiLettersMakesNoSecondPerson) {
  EXPECT_TRUE(equal_ignoring_case("Ann@Example.org", "ann@example.ORG"));
  EXPECT_FALSE(equal_ignoring_case("ann", "ann "));
  EXPECT_FALSE(equal_ignoring_case("[", "{"));
  EXPECT_FALSE(equal_ignoring_case("\xc3\x96", "\xc3\xb6"));
}

}  // namespace
}  // namespace hive::policy
