#pragma once

#include <expected>
#include <optional>
#include <string>

#include "cli/context.h"
#include "crypto/ssh_key.h"

/// What the enrolment commands ask of the gateway.
namespace hive::cli {

/// Where a join token comes from. At most one may be set; without any, MYRMEX_JOIN_TOKEN.
struct JoinTokenOptions {
  std::string token;  ///< shows in the process list
  std::string file;   ///< "-": standard input
};

/// The join token that options or environment name; nullopt: none, and one must be asked for with an admin's token.
std::expected<std::optional<std::string>, Failure> given_join_token(const JoinTokenOptions& options,
                                                                    const Environment& environment);

struct JoinToken {
  std::string token;
  std::string expires_at;
  std::string body;  ///< the gateway's answer, JSON
};
/// POST /api/enroll/token. `ttl_seconds` nullopt: the gateway's default.
std::expected<JoinToken, Failure> mint_join_token(const GatewayClient& gateway, const std::string& agent,
                                                  std::optional<std::int64_t> ttl_seconds);

struct EnrolledAgent {
  std::string fingerprint;
  std::string gateway_host_key;  ///< a public key as one line; empty when the gateway does not tell
  std::string body;
};
/// POST /api/enroll. Asks again when the answer is lost: the same token with the same key succeeds again.
std::expected<EnrolledAgent, Failure> enroll_key(const GatewayClient& gateway, const std::string& join_token,
                                                 const std::string& agent, const crypto::PublicKey& key);

/// POST /api/agents/revoke; an empty fingerprint revokes the agent. The gateway's answer, JSON.
std::expected<std::string, Failure> revoke_agent(const GatewayClient& gateway, const std::string& agent,
                                                 const std::string& fingerprint);

/// How an agent is connected, of GET /api/fleet.
struct AgentConnection {
  bool online = false;
  std::string key_fingerprint;
  std::int64_t draining_sessions = 0;
};
std::expected<AgentConnection, Failure> connection_of(const GatewayClient& gateway, const std::string& agent);

}  // namespace hive::cli
