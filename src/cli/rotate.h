#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cli/enrolment_client.h"

namespace hive::cli {

struct RotateOptions {
  std::string config_path = "agent_config.json";  ///< of the agent; names its id and its key
  std::string agent;                              ///< empty, or the id that the configuration must have
  JoinTokenOptions join_token;
  std::int64_t agent_pid = 0;  ///< 0: somebody else tells the agent
  std::chrono::seconds patience{120};
  bool revoke_old = false;
};

/// Gives an agent on this machine a new key without losing a call: enrols it, puts it in the old one's place, waits
/// until the agent is connected by it and, if asked to, until the old connection has finished its calls, and revokes
/// exactly the old key then.
ExitCode run_rotate(Context& context, const RotateOptions& options);

}  // namespace hive::cli
