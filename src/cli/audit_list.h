#pragma once

#include <string>

#include "cli/context.h"
#include "gateway/audit/reader.h"

namespace hive::cli {

/// Prints the newest entries of a log file that match, the newest last; as JSON the newest first, as the gateway's
/// /api/audit does.
int run_audit_list(const std::string& log, const audit::Query& query, const OutputOptions& format);

/// The same for the log of a gateway, which is asked for it.
ExitCode run_audit_list_of_gateway(Context& context, const audit::Query& query);

}  // namespace hive::cli
