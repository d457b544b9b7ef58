#pragma once

#include <string_view>

#include "base/result.h"
#include "container/guest_network.h"
#include "container/layout.h"

/// What the host's network lets a container do: rules of packaging/nftables/hive-containers.nft.
namespace hive::container {

/// Before the container runs: the firewall lets its port send with this address and this MAC, nothing else. What an
/// earlier run has left of the port goes first. Fails when the firewall's table is not there.
Result<void> admit_port(std::string_view name, const GuestNetwork& network, const Layout& layout);

/// Once the port exists: the bridge passes no frame between it and other isolated ports, on whatever address.
Result<void> isolate_port(std::string_view name);

/// After the container has ended: the firewall forgets the port, and the run folder goes. Harmless when repeated.
Result<void> release_port(std::string_view name, const Layout& layout);

}  // namespace hive::container
