#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gateway/fleet/enrolment.h"

/// The bodies of the enrolment routes. Strict: unknown members are refused, and so are ids that break the grammar.
namespace hive::rest {

/// POST /api/enroll/token
struct JoinTokenRequest {
  std::string agent;
  std::optional<std::chrono::seconds> ttl;
};
Result<JoinTokenRequest> parse_join_token_request(std::string_view body);

/// POST /api/enroll
Result<fleet::EnrolmentRequest> parse_enrolment_request(std::string_view body);

/// POST /api/agents/revoke
struct RevocationRequest {
  std::string agent;
  std::optional<std::string> key;  ///< "SHA256:..."
};
Result<RevocationRequest> parse_revocation_request(std::string_view body);

/// POST /api/keys
struct KeyRequest {
  std::string agent;
  std::string public_key;
};
Result<KeyRequest> parse_key_request(std::string_view body);

}  // namespace hive::rest
