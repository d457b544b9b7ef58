#pragma once

#include <string>

#include "gateway/policy/authenticator.h"

namespace hive::oidc {

/// Why an identity token was not accepted.
struct OidcFault {
  policy::CredentialFault fault = policy::CredentialFault::bad_signature;
  std::string detail;  ///< one line for the audit log; never for the caller, and without the token
};

}  // namespace hive::oidc
