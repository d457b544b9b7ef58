#include "gateway/surfaces/rest/enrolment_request.h"

#include <array>

#include "base/strings.h"
#include "gateway/surfaces/rest/members.h"

namespace hive::rest {

namespace {

constexpr std::size_t max_key_bytes = 16384;
constexpr std::size_t sha256_fingerprint_bytes = 50;  // "SHA256:" and 43 characters of base64

Result<std::string> agent_id_of(std::span<const json::Member> members) {
  std::string agent = TRY(required_text(members, "agent_id"));
  TRY_CONTEXT("agent_id", check_agent_id(agent));
  return agent;
}

Result<std::optional<std::chrono::seconds>> ttl_of(std::span<const json::Member> members) {
  std::optional<std::string_view> raw = json::find(members, "ttl_seconds");
  if (!raw || json::is_null(*raw)) return std::nullopt;
  std::optional<std::int64_t> seconds = json::decode_integer(*raw);
  constexpr std::int64_t max = fleet::Enrolment::max_token_ttl.count();
  if (!seconds || *seconds < 1 || *seconds > max) {
    return fail(ErrorCode::invalid_argument, "ttl_seconds: must be a whole number from 1 to {}", max);
  }
  return std::chrono::seconds(*seconds);
}

}  // namespace

Result<JoinTokenRequest> parse_join_token_request(std::string_view body) {
  static constexpr std::array<std::string_view, 2> known = {"agent_id", "ttl_seconds"};
  std::vector<json::Member> members = TRY(parse_members(body, known));
  JoinTokenRequest request;
  request.agent = TRY(agent_id_of(members));
  request.ttl = TRY(ttl_of(members));
  return request;
}

Result<fleet::EnrolmentRequest> parse_enrolment_request(std::string_view body) {
  static constexpr std::array<std::string_view, 3> known = {"join_token", "agent_id", "public_key"};
  std::vector<json::Member> members = TRY(parse_members(body, known));
  fleet::EnrolmentRequest request;
  request.agent = TRY(agent_id_of(members));
  request.token = TRY(required_text(members, "join_token"));
  request.public_key = TRY(required_text(members, "public_key", max_key_bytes));
  return request;
}

Result<RevocationRequest> parse_revocation_request(std::string_view body) {
  static constexpr std::array<std::string_view, 2> known = {"agent_id", "key"};
  std::vector<json::Member> members = TRY(parse_members(body, known));
  RevocationRequest request;
  request.agent = TRY(agent_id_of(members));
  request.key = TRY(optional_text(members, "key"));
  // A wrong word here must not turn the removal of one key into nothing that looks like success.
  if (request.key && (!request.key->starts_with("SHA256:") || request.key->size() != sha256_fingerprint_bytes)) {
    return fail(ErrorCode::invalid_argument,
                "key: must be a fingerprint, SHA256: and 43 characters, as `ssh-keygen -l` and GET /api/keys show it");
  }
  return request;
}

Result<KeyRequest> parse_key_request(std::string_view body) {
  static constexpr std::array<std::string_view, 3> known = {"agent_id", "public_key", "keys"};
  std::vector<json::Member> members = TRY(parse_members(body, known));
  if (json::find(members, "keys")) {
    return fail(ErrorCode::invalid_argument,
                "keys: the whole file is not replaced here, since that would undo what others changed meanwhile; add "
                "keys one by one with agent_id and public_key, and remove them with POST /api/agents/revoke");
  }
  KeyRequest request;
  request.agent = TRY(agent_id_of(members));
  request.public_key = TRY(required_text(members, "public_key", max_key_bytes));
  return request;
}

}  // namespace hive::rest
