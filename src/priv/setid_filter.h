#pragma once

#include "base/result.h"

namespace hive::priv {

/// Has the kernel refuse, for this program and for good, to give a file the setuid or the setgid bit (seccomp(2)): a
/// second net under the copy of a hostile tree. systemd's RestrictSUIDSGID= would do the same, but takes openat2 away,
/// since no filter can look into its arguments; the modes that hive-priv passes to openat2 are constants without such
/// bits. To be called before the first thread.
Result<void> forbid_setid_bits();

}  // namespace hive::priv
