#include "gateway/calls/approval_rows.h"

#include "protocol/json.h"

namespace hive::calls::rows {

namespace {

std::int64_t to_ms(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

WallTime from_ms(std::int64_t ms) {
  return WallTime(std::chrono::milliseconds(ms));
}

std::optional<std::int64_t> to_ms(const std::optional<WallTime>& time) {
  return time ? std::optional(to_ms(*time)) : std::nullopt;
}

std::string encode_list(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const std::string& text : texts) {
    if (list.size() > 1) list += ',';
    json::append_string(list, text);
  }
  return list + "]";
}

std::vector<std::string> decode_list(std::string_view list) {
  std::vector<std::string> texts;
  auto elements = json::parse_array(list);
  if (!elements) return texts;
  for (std::string_view element : *elements)
    texts.push_back(json::decode_string(element).value_or(""));
  return texts;
}

constexpr std::string_view columns =
    "id, digest, status, principal, identity, role, credential, groups, credential_expires_at, on_behalf_of, "
    "after_untrusted_text, agent, agent_key, tool, arguments, tier, policy_version, surface, request_id, call_id, "
    "timeout_ms, needed, created_at, expires_at, ended_at, outcome, reason, target, method";

Error unreadable(std::string_view id, std::string_view column) {
  return {ErrorCode::corrupt, fmt::format("approval {}: {} is not readable", id, column)};
}

Result<Approval> read(const store::Statement& row) {
  Approval approval;
  approval.id = row.text(0);
  approval.digest = row.text(1);
  auto status = approval_status_from_string(row.text(2));
  auto role = policy::role_from_string(row.text(5));
  auto credential = policy::credential_kind_from_string(row.text(6));
  auto tier = protocol::tier_from_string(row.text(15));
  auto surface = surface_from_string(row.text(17));
  if (!status) return std::unexpected(unreadable(approval.id, "status"));
  if (!role) return std::unexpected(unreadable(approval.id, "role"));
  if (!credential) return std::unexpected(unreadable(approval.id, "credential"));
  if (!tier) return std::unexpected(unreadable(approval.id, "tier"));
  if (!surface) return std::unexpected(unreadable(approval.id, "surface"));
  approval.status = *status;
  policy::Grant grant;
  grant.kind = *credential;
  grant.identity = row.text(4);
  grant.groups = decode_list(row.text(7));
  if (!row.is_null(8)) grant.expires_at = from_ms(row.number(8));
  policy::ApprovalSubject& subject = approval.subject;
  subject.principal = row.text(3);
  subject.identity = grant.identity;
  subject.on_behalf_of = row.text(9);
  subject.agent = row.text(11);
  subject.agent_key = row.text(12);
  subject.tool = row.text(13);
  subject.arguments = row.text(14);
  subject.tier = *tier;
  subject.policy_version = row.text(16);
  approval.requester = {subject.principal, *role, std::make_shared<const policy::Grant>(std::move(grant))};
  approval.after_untrusted_text = row.number(10) != 0;
  approval.surface = *surface;
  approval.request_id = row.text(18);
  approval.call_id = row.text(19);
  approval.timeout = std::chrono::milliseconds(row.number(20));
  approval.needed = static_cast<unsigned>(row.number(21));
  approval.created_at = from_ms(row.number(22));
  approval.expires_at = from_ms(row.number(23));
  if (!row.is_null(24)) approval.ended_at = from_ms(row.number(24));
  if (!row.is_null(25)) {
    approval.outcome = protocol::outcome_from_string(row.text(25));
    if (!approval.outcome) return std::unexpected(unreadable(approval.id, "outcome"));
  }
  approval.reason = row.text(26);
  auto target = target_kind_from_string(row.text(27));
  if (!target) return std::unexpected(unreadable(approval.id, "target"));
  approval.target = *target;
  approval.method = row.text(28);
  return approval;
}

Result<void> read_words(store::Connection& connection, Approval& approval) {
  store::Statement query = TRY(connection.prepare(
      "SELECT action, principal, identity, at, comment FROM approval_votes WHERE approval = ? ORDER BY at"));
  query.bind(0, approval.id);
  for (;;) {
    bool found = TRY(query.step());
    if (!found) return {};
    ApprovalVote word{query.text(1), query.text(2), from_ms(query.number(3)), query.text(4)};
    if (query.text(0) == "approve") {
      approval.votes.push_back(std::move(word));
    } else {
      approval.refusal = std::move(word);
    }
  }
}

}  // namespace

Result<void> insert(store::Connection& connection, const Approval& approval) {
  const policy::ApprovalSubject& subject = approval.subject;
  static const policy::Grant no_grant;
  const policy::Grant& grant = approval.requester.grant ? *approval.requester.grant : no_grant;
  store::Statement statement = TRY(connection.prepare(fmt::format(
      "INSERT INTO approvals ({}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", columns)));
  statement.bind(0, approval.id)
      .bind(1, approval.digest)
      .bind(2, to_string(approval.status))
      .bind(3, subject.principal)
      .bind(4, subject.identity)
      .bind(5, policy::to_string(approval.requester.role))
      .bind(6, policy::to_string(grant.kind))
      .bind(7, encode_list(grant.groups))
      .bind(8, to_ms(grant.expires_at))
      .bind(9, subject.on_behalf_of)
      .bind(10, std::int64_t{approval.after_untrusted_text})
      .bind(11, subject.agent)
      .bind(12, subject.agent_key)
      .bind(13, subject.tool)
      .bind(14, subject.arguments)
      .bind(15, protocol::to_string(subject.tier))
      .bind(16, subject.policy_version)
      .bind(17, to_string(approval.surface))
      .bind(18, approval.request_id)
      .bind(19, approval.call_id)
      .bind(20, std::int64_t{approval.timeout.count()})
      .bind(21, std::int64_t{approval.needed})
      .bind(22, to_ms(approval.created_at))
      .bind(23, to_ms(approval.expires_at))
      .bind(24, to_ms(approval.ended_at))
      .bind_null(25)
      .bind(26, approval.reason)
      .bind(27, to_string(approval.target))
      .bind(28, approval.method);
  return statement.run();
}

Result<void> insert_word(store::Connection& connection, std::string_view id, std::string_view action,
                         const ApprovalVote& word) {
  store::Statement statement = TRY(connection.prepare(
      "INSERT INTO approval_votes (approval, action, principal, identity, at, comment) VALUES (?,?,?,?,?,?)"));
  statement.bind(0, id)
      .bind(1, action)
      .bind(2, word.principal)
      .bind(3, word.identity)
      .bind(4, to_ms(word.at))
      .bind(5, word.comment);
  return statement.run();
}

Result<void> update(store::Connection& connection, const Approval& approval, const CallResult* result) {
  store::Statement statement = TRY(
      connection.prepare("UPDATE approvals SET status = ?, outcome = ?, reason = ?, ended_at = ?, result_is_error = ?, "
                         "result_by_gateway = ?, result = ? WHERE id = ?"));
  statement.bind(0, to_string(approval.status))
      .bind_optional(
          1, approval.outcome ? std::optional(std::string(protocol::to_string(*approval.outcome))) : std::nullopt)
      .bind(2, approval.reason)
      .bind(3, to_ms(approval.ended_at))
      .bind(4, result ? std::optional(std::int64_t{result->is_error}) : std::nullopt)
      .bind(5, result ? std::optional(std::int64_t{result->by_gateway}) : std::nullopt)
      .bind_optional(6, result ? std::optional(result->body) : std::nullopt)
      .bind(7, approval.id);
  return statement.run();
}

Result<std::vector<Approval>> load(store::Connection& connection) {
  std::vector<Approval> approvals;
  store::Statement query =
      TRY(connection.prepare(fmt::format("SELECT {} FROM approvals ORDER BY created_at, id", columns)));
  for (;;) {
    bool found = TRY(query.step());
    if (!found) break;
    approvals.push_back(TRY(read(query)));
  }
  for (Approval& approval : approvals)
    TRY(read_words(connection, approval));
  return approvals;
}

Result<std::optional<CallResult>> load_result(store::Connection& connection, std::string_view id) {
  store::Statement query = TRY(connection.prepare(
      "SELECT outcome, reason, result_is_error, result_by_gateway, result FROM approvals WHERE id = ?"));
  query.bind(0, id);
  bool found = TRY(query.step());
  if (!found || query.is_null(4)) return std::nullopt;
  auto outcome = protocol::outcome_from_string(query.text(0));
  if (!outcome) return std::unexpected(unreadable(id, "outcome"));
  CallResult result;
  result.outcome = *outcome;
  result.reason = query.text(1);
  result.is_error = query.number(2) != 0;
  result.by_gateway = query.number(3) != 0;
  result.body = query.text(4);
  return result;
}

Result<void> remove(store::Connection& connection, std::string_view id) {
  store::Statement statement = TRY(connection.prepare("DELETE FROM approvals WHERE id = ?"));
  statement.bind(0, id);
  return statement.run();
}

}  // namespace hive::calls::rows
