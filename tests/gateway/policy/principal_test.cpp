#include "gateway/policy/principal.h"

#include <gtest/gtest.h>

namespace hive::policy {
namespace {

TEST(Principal, NamesOfRolesAndKindsGoThereAndBack) {
  for (Role role : {Role::read_only, Role::operator_, Role::admin})
    EXPECT_EQ(role_from_string(to_string(role)), role);
  for (auto kind : {CredentialKind::token, CredentialKind::scoped_token, CredentialKind::certificate,
                    CredentialKind::proxy, CredentialKind::oidc, CredentialKind::internal})
    EXPECT_EQ(credential_kind_from_string(to_string(kind)), kind);
  EXPECT_FALSE(role_from_string("Admin"));
  EXPECT_FALSE(role_from_string(""));
  EXPECT_FALSE(credential_kind_from_string("password"));
}

TEST(Principal, IsItselfWhereNothingElseIsKnown) {
  Principal nobody{"token:0123456789ab", Role::operator_};
  EXPECT_EQ(nobody.identity(), nobody.name);
  EXPECT_EQ(nobody.scope(), nullptr);
}

}  // namespace
}  // namespace hive::policy
