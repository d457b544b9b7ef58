#pragma once

#include <string>

#include "protocol/outcome.h"

namespace hive::policy {

/// What people are asked to approve. The approval holds for exactly this, once.
struct ApprovalSubject {
  std::string principal;  ///< of the requester
  std::string identity;   ///< of the requester
  std::string on_behalf_of;
  std::string agent;
  std::string agent_key;  ///< fingerprint of the key by which the agent was connected
  std::string tool;
  std::string arguments;  ///< raw JSON, byte for byte
  protocol::Tier tier = protocol::Tier::write;
  std::string policy_version;

  bool operator==(const ApprovalSubject&) const = default;
};

/// Hexadecimal SHA-256 over all fields, each with its length before it, so that no two subjects share a digest because
/// text moved from one field to the next.
std::string digest_of(const ApprovalSubject& subject);

}  // namespace hive::policy
