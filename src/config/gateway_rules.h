#pragma once

#include <vector>

#include "config/gateway_keys.h"
#include "config/key_info.h"

namespace hive::config {

/// What may be called: readers of the keys about tiers and approvals.
void read_risk_tiers(Reader& reader, const Value& value, GatewayDraft& draft);
void read_approval_tiers(Reader& reader, const Value& value, GatewayDraft& draft);
void read_approvals_required(Reader& reader, const Value& value, GatewayDraft& draft);
void read_approval_groups(Reader& reader, const Value& value, GatewayDraft& draft);
void read_agent_tags(Reader& reader, const Value& value, GatewayDraft& draft);

/// What must hold across these keys.
void check_rules(Reader& reader, const GatewayDraft& draft);

/// Appends the rows of the table of the objects in `approvals_required`.
void append_rule_keys(std::vector<PlacedKey>& keys);

}  // namespace hive::config
