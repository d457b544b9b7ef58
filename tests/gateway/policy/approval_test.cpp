#include "gateway/policy/approval.h"

#include <gtest/gtest.h>

namespace hive::policy {
namespace {

ApprovalSubject subject() {
  return {"token:0123456789ab",  "ann", "bob", "edge-1", "SHA256:key", "run_command", R"({"name":"uptime"})",
          protocol::Tier::write, "v1"};
}

TEST(ApprovalDigest, IsTheSameForTheSameRequest) {
  EXPECT_EQ(digest_of(subject()), digest_of(subject()));
  EXPECT_EQ(digest_of(subject()).size(), 64u);
}

TEST(ApprovalDigest, HoldsEveryField) {
  std::string digest = digest_of(subject());
  for (auto field : {&ApprovalSubject::principal, &ApprovalSubject::identity, &ApprovalSubject::on_behalf_of,
                     &ApprovalSubject::agent, &ApprovalSubject::agent_key, &ApprovalSubject::tool,
                     &ApprovalSubject::arguments, &ApprovalSubject::policy_version}) {
    ApprovalSubject other = subject();
    other.*field += ' ';
    EXPECT_NE(digest_of(other), digest);
  }
  ApprovalSubject other = subject();
  other.tier = protocol::Tier::admin;
  EXPECT_NE(digest_of(other), digest);
}

TEST(ApprovalDigest, TextThatMovesFromOneFieldToTheNextChangesIt) {
  ApprovalSubject one = subject();
  one.agent = "a b";
  one.agent_key = "c";
  ApprovalSubject other = subject();
  other.agent = "a";
  other.agent_key = "b c";
  EXPECT_NE(digest_of(one), digest_of(other));
  one.agent = "ab";
  one.agent_key = "";
  other.agent = "";
  other.agent_key = "ab";
  EXPECT_NE(digest_of(one), digest_of(other));
}

}  // namespace
}  // namespace hive::policy
