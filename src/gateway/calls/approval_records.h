#pragma once

#include <string>

#include "gateway/audit/record.h"
#include "gateway/calls/approvals.h"

namespace hive::calls {

/// An event of the audit log about a request, as its requester's.
audit::Record record_of(const Approval& approval, std::string action);

/// The request as it is when its call has ended in this way.
Approval ended(const Approval& approval, ApprovalStatus status, const CallResult& result, WallTime now);

}  // namespace hive::calls
