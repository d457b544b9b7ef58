#pragma once

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace hive::exec {

/// Who a command runs as when that is somebody else than the agent.
struct Credentials {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;

  bool operator==(const Credentials&) const = default;
};

/// A user of this machine, with everything that running as that user needs.
struct Account {
  Credentials credentials;
  std::string name;
  std::string home;
};

/// Looks a user up by name. Reads the user database and may block: at load only.
Result<Account> find_account(const std::string& name);
/// The user the agent runs as; falls back to home "/" when the user database does not know it.
Account current_account();

/// The complete environment of a command as NAME=value: a short fixed list without colours, pagers or anything that the
/// agent itself inherited, then `extra`, which wins. Failure names a variable that cannot exist.
Result<std::vector<std::string>> build_environment(const Account& account,
                                                   const std::map<std::string, std::string>& extra);

}  // namespace hive::exec
