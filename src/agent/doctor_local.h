#pragma once

#include "agent/doctor.h"

namespace hive::agent {

/// What can be said without a network: the configuration, the allowlist, the key, the file of host keys, the sandbox.
/// `config` becomes the configuration if the agent would start with it.
CheckGroup examine_machine(const DoctorOptions& options, std::optional<config::AgentConfig>& config);

}  // namespace hive::agent
