#pragma once

#include <string_view>

#include "base/result.h"
#include "priv/journal.h"
#include "priv/settings.h"

namespace hive::priv {

/// Who is at the other end of a Unix socket, as the kernel says (SO_PEERCRED).
Result<PeerIds> peer_of(int socket);

/// Whether the peer may use hive-priv: root, or a user or a member of a group that the settings name, and no process of
/// a container, whose root looks like the host's. permission_denied otherwise.
Result<void> check_peer(int socket, const PeerIds& peer, const Settings& settings);

/// Whether the text of /proc/PID/cgroup puts a process into a container or a virtual machine of systemd.
[[nodiscard]] bool is_in_machine(std::string_view cgroups);

}  // namespace hive::priv
