#include "gateway/surfaces/rest/approval_request.h"

#include <algorithm>
#include <array>
#include <optional>

#include "gateway/surfaces/rest/members.h"

namespace hive::rest {

namespace {

constexpr std::array<std::string_view, 4> known_members = {"id", "decision", "digest", "comment"};
constexpr std::size_t max_comment_bytes = 1000;
constexpr std::size_t digest_digits = 64;

bool is_lower_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<calls::ApprovalAction> action_from(std::string_view name) {
  if (name == "approve") return calls::ApprovalAction::approve;
  if (name == "reject") return calls::ApprovalAction::reject;
  if (name == "withdraw") return calls::ApprovalAction::withdraw;
  return fail(ErrorCode::invalid_argument, "decision: must be approve, reject or withdraw");
}

}  // namespace

bool is_approval_id(std::string_view text) {
  return text.size() == 32 && is_lower_hex(text);
}

Result<ApprovalRequest> parse_approval_request(std::string_view body) {
  std::vector<json::Member> members =
      TRY_CONTEXT("the body is not a JSON object of a decision", parse_members(body, known_members));
  ApprovalRequest request;
  request.id = TRY(required_text(members, "id"));
  std::string decision = TRY(required_text(members, "decision"));
  request.action = TRY(action_from(decision));
  request.digest = TRY(optional_text(members, "digest", digest_digits)).value_or("");
  if (!request.digest.empty() && (request.digest.size() != digest_digits || !is_lower_hex(request.digest))) {
    return fail(ErrorCode::invalid_argument, "digest: must be the {} hexadecimal digits that the request shows",
                digest_digits);
  }
  request.comment = TRY(optional_text(members, "comment", max_comment_bytes)).value_or("");
  return request;
}

}  // namespace hive::rest
