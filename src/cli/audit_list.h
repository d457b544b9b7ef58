#pragma once

#include <string>

#include "cli/output.h"
#include "gateway/audit/reader.h"

namespace hive::cli {

/// Prints the newest entries of a log file that match, the newest last; as JSON the newest first, as the gateway's
/// /api/audit does.
int run_audit_list(const std::string& log, const audit::Query& query, const OutputOptions& format);

}  // namespace hive::cli
