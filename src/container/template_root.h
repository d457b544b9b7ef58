#pragma once

#include <string>

#include "base/result.h"
#include "container/create.h"

namespace hive::container {

/// Makes the pristine system of a new container in `folder`, which must not exist: from a tree, a tarball or by
/// debootstrap. Then settles what every guest needs: no machine id of its own, no device nodes, a persistent journal,
/// the network by networkd, and the agent's user with a pinned uid.
Result<void> make_template(const RootSource& source, const Record& record, const std::string& folder);

/// Refuses an unpacked system that has something else than a folder where the making of a template goes on by path.
Result<void> check_template(const std::string& folder);

}  // namespace hive::container
