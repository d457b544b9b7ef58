#pragma once

#include <string>

#include "cli/output.h"

namespace hive::cli {

/// What `audit verify` and `audit watch` are asked.
struct AuditVerifyOptions {
  std::string log;
  std::string host_key;
  std::string origin;
  std::string remember;    ///< file with the checkpoint of the last good look; updated after each good look
  std::string checkpoint;  ///< file with a checkpoint that the log must go on from
  std::uint64_t min_size = 0;
  bool every_signature = false;
  double interval_seconds = 30;
};

int run_audit_verify(const AuditVerifyOptions& options, const OutputOptions& format);

/// Verifies again and again, each time only what is new. Ends with 1 at the first failure, otherwise never.
int run_audit_watch(const AuditVerifyOptions& options, const OutputOptions& format);

}  // namespace hive::cli
