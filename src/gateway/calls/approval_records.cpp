#include "gateway/calls/approval_records.h"

namespace hive::calls {

audit::Record record_of(const Approval& approval, std::string action) {
  audit::Record record;
  record.kind = audit::RecordKind::event;
  record.call_id = approval.call_id;
  record.request_id = approval.request_id;
  record.principal = approval.subject.principal;
  record.role = policy::to_string(approval.requester.role);
  record.surface = to_string(approval.surface);
  record.action = std::move(action);
  record.agent = approval.subject.agent;
  record.tool = approval.subject.tool;
  record.tier = protocol::to_string(approval.subject.tier);
  record.on_behalf_of = approval.subject.on_behalf_of;
  record.after_untrusted_text = approval.after_untrusted_text;
  return record;
}

Approval ended(const Approval& approval, ApprovalStatus status, const CallResult& result, WallTime now) {
  Approval after = approval;
  after.status = status;
  after.outcome = result.outcome;
  after.reason = result.reason;
  after.ended_at = now;
  return after;
}

std::string_view to_string(ApprovalStatus status) {
  switch (status) {
    case ApprovalStatus::pending:
      return "pending";
    case ApprovalStatus::approved:
      return "approved";
    case ApprovalStatus::rejected:
      return "rejected";
    case ApprovalStatus::withdrawn:
      return "withdrawn";
    case ApprovalStatus::expired:
      return "expired";
  }
  return "pending";
}

std::optional<ApprovalStatus> approval_status_from_string(std::string_view name) {
  for (ApprovalStatus status : {ApprovalStatus::pending, ApprovalStatus::approved, ApprovalStatus::rejected,
                                ApprovalStatus::withdrawn, ApprovalStatus::expired}) {
    if (to_string(status) == name) return status;
  }
  return std::nullopt;
}

}  // namespace hive::calls
