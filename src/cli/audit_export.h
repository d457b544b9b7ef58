#pragma once

#include <string>
#include <string_view>

namespace hive::cli {

struct AuditExportOptions {
  std::string log;
  std::string host_key;  ///< empty: everything but the signature is checked
  std::string out;       ///< empty: standard output
  bool csv = false;
};

/// Writes the entries that a checkpoint covers. A bad log ends with 1, and leaves the file `out` as it was.
int run_audit_export(const AuditExportOptions& options);

/// One cell as RFC 4180 wants it. Text that a spreadsheet would take for a formula gets an apostrophe in front.
std::string csv_cell(std::string_view text);

}  // namespace hive::cli
