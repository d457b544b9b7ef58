#pragma once

#include <string>

#include "cli/enrolment_client.h"

namespace hive::cli {

struct BootstrapOptions {
  std::string agent;
  std::string gateway_address;  ///< empty: the host of the gateway's URL, port 2222
  JoinTokenOptions join_token;
  std::string key_path = "id_ed25519";
  std::string config_path = "agent_config.json";
};

/// Makes a machine an agent: a new key, its enrolment, and a configuration that pins the gateway's host key. Writes all
/// of it or nothing, and never over a file that exists.
ExitCode run_bootstrap(Context& context, const BootstrapOptions& options);

}  // namespace hive::cli
