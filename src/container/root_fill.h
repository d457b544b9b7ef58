#pragma once

#include <string_view>

#include "base/result.h"
#include "container/layout.h"

namespace hive::container {

/// Gives a container's root a system to boot: when the root is absent, or holds no more than the skeleton that
/// hive-priv leaves after a switch, it becomes a copy of the container's template, with the machine id that the
/// skeleton had. A root with a system stays as it is. Anything else is refused, never deleted: it may be somebody's
/// data.
///
/// The copy is made beside the root and put in its place by one rename, so that a start that dies in the middle leaves
/// either the old root or the whole new one. Copies by reference where the file system can. Blocks, for seconds.
Result<void> fill_root(std::string_view name, const Layout& layout);

}  // namespace hive::container
