#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/check_status.h"

namespace hive::agent {

/// One thing that was looked at.
struct Check {
  std::string name;
  CheckStatus status = CheckStatus::ok;
  std::string detail;  ///< what was found; text from elsewhere in it is escaped when it is printed
  std::string remedy;  ///< what to do about it; empty when nothing
};

/// The checks of one place: this machine, or the way to one gateway.
struct CheckGroup {
  std::string title;
  std::vector<Check> checks;
};

/// How `myrmex-agent doctor` ends; the numbers are those of `myrmex`. Scripts branch on these, so they never change.
enum class DoctorExit : int {
  healthy = 0,
  problem = 1,      ///< a warning, or something on this machine is wrong
  usage = 2,        ///< the command line is wrong
  refused = 3,      ///< the gateway does not accept the key, or has another host key than expected
  unreachable = 5,  ///< no SSH server answers where the gateway should be
};

struct DoctorReport {
  std::string file;
  std::string agent_id;
  std::vector<CheckGroup> groups;
  DoctorExit exit = DoctorExit::healthy;  ///< refused and unreachable before problem, else the first one
};

/// For people, with a line for every check and the remedy below it, as `myrmex doctor` writes it.
std::string as_text(const DoctorReport& report, bool colour);
/// For programs, indented, with a final newline.
std::string as_json(const DoctorReport& report);

}  // namespace hive::agent
