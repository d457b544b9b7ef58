#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "agent/doctor_report.h"
#include "base/clock.h"
#include "config/agent_config.h"
#include "config/secret_reference.h"

/// `myrmex-agent doctor`: why an agent does not connect, step by step, with the code that the agent itself connects
/// with.
namespace hive::agent {

struct DoctorOptions {
  std::string config_path;
  std::optional<config::GatewayAddress> gateway;  ///< instead of those of the configuration
  std::chrono::milliseconds step_timeout = std::chrono::seconds(5);
  const config::SecretSources* sources = nullptr;  ///< null: SecretSources::system()
  const Clock* clock = &system_clock();
  /// Where units and their drop-ins are looked for.
  std::string unit_folder = "/etc/systemd/system";
};

/// Looks at the configuration and what it names, then at the way to each gateway, up to a question over an own channel:
/// a running agent keeps its tunnel, and nothing is written, not even a host key. Blocks for a few seconds at most for
/// each gateway.
DoctorReport examine(const DoctorOptions& options);

}  // namespace hive::agent
