#pragma once

#include <cstdint>
#include <string>

#include "cli/output.h"

namespace hive::cli {

struct AuditProveOptions {
  std::string log;
  std::uint64_t seq = 0;
  std::string out;  ///< empty: standard output
};

struct AuditCheckOptions {
  std::string proof;  ///< "-": standard input
  std::string host_key;
  std::string origin;
};

struct AuditCheckpointOptions {
  std::string log;
  std::string out;  ///< a folder
  std::string host_key;
};

int run_audit_prove(const AuditProveOptions& options);
int run_audit_check(const AuditCheckOptions& options, const OutputOptions& format);
int run_audit_checkpoint(const AuditCheckpointOptions& options);
int run_audit_pubkey(const std::string& host_key);

}  // namespace hive::cli
