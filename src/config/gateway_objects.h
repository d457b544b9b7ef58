#pragma once

#include <vector>

#include "config/gateway_keys.h"
#include "config/key_info.h"

namespace hive::config {

/// Objects in lists of the gateway configuration whose features are not built: checked, kept nowhere.
void check_scheduled_tasks(Reader& reader, const Value& value, GatewayDraft& draft);
void check_alert_thresholds(Reader& reader, const Value& value, GatewayDraft& draft);

/// Appends the rows of their tables.
void append_object_keys(std::vector<PlacedKey>& keys);

}  // namespace hive::config
