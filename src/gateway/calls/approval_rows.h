#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "gateway/calls/approvals.h"
#include "gateway/store/database.h"

/// How approvals stand in the database. On the store's thread; every failure is the database's.
namespace hive::calls::rows {

Result<void> insert(store::Connection& connection, const Approval& approval);

/// Adds somebody's word; `action` is "approve", "reject" or "withdraw".
Result<void> insert_word(store::Connection& connection, std::string_view id, std::string_view action,
                         const ApprovalVote& word);

/// Status, outcome, reason and end as `approval` has them, with the result of its call where it has one.
Result<void> update(store::Connection& connection, const Approval& approval, const CallResult* result);

/// All that are kept, the oldest first.
Result<std::vector<Approval>> load(store::Connection& connection);

/// The result of a call, with the outcome and reason of its row; nullopt if none is kept.
Result<std::optional<CallResult>> load_result(store::Connection& connection, std::string_view id);

Result<void> remove(store::Connection& connection, std::string_view id);

}  // namespace hive::calls::rows
