#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "priv/layout.h"
#include "priv/refusal.h"
#include "priv/request.h"
#include "priv/settings.h"

namespace hive::priv {

/// Whether the binds that a caller asks for may be written: plain paths, each source at or below a folder that this
/// agent may have and not of the host, each target in an allowed place, no target twice or inside another. Looks at the
/// text alone.
Outcome<void> check_binds(const std::vector<Bind>& binds, std::string_view agent, const Settings& settings,
                          const Layout& layout);

/// Whether a source is a folder that is there, with no link on the way and every folder above it root's alone. nspawn
/// resolves the path again when the container starts; who could change the way could show the guest another folder.
Result<void> check_bind_source(int anchor, const std::string& path);

/// Whether the network that a caller asks for is one that the settings name: an allowed bridge, an address of its
/// network. Without isolation the settings must allow the host's network.
Outcome<void> check_isolation(const std::optional<Isolation>& isolation, const Settings& settings);

}  // namespace hive::priv
