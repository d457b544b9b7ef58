#pragma once

#include <cstdint>
#include <string>

#include "priv/conf_file.h"
#include "priv/ipv4.h"
#include "priv/refusal.h"
#include "priv/site.h"

namespace hive::priv {

/// The address of a container on its bridge, as LOCAL_ADDRESS wants it ("10.42.0.2/24"): the one in its configuration
/// or on record if it fits the network and nobody else has it, else the lowest free one. Records it, so that a
/// configuration that is written anew by others gets it back.
Outcome<std::string> container_address(const Site& site, const std::string& container, const ConfFile& conf,
                                       const Ipv4Network& network, std::uint32_t gateway);

}  // namespace hive::priv
