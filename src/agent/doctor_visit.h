#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/doctor.h"
#include "agent/host_key_trust.h"
#include "net/runtime/runtime.h"

namespace hive::agent {

/// What was seen on the way to one gateway; what is missing was not reached.
struct Sightings {
  std::string addresses;                     ///< of the gateway, or of the proxy
  std::optional<std::string> proxy_address;  ///< the proxy has been connected to
  std::optional<std::string> address;        ///< the SSH server can be spoken to
  std::optional<std::string> software;       ///< keys were exchanged
  std::string host_key;                      ///< fingerprint
  std::string host_key_line;                 ///< for gateway_host_key
  std::optional<Result<HostKeyTrust::Standing>> standing;
  std::optional<std::string> login;  ///< fingerprint of the key that was accepted
  bool asked = false;                ///< the channel for questions is open
  std::optional<Error> error;        ///< what ended it early

  // Of the answer.
  bool answered = false;
  std::optional<std::chrono::milliseconds> clock_difference;  ///< the gateway's clock less ours
  std::string version;
  bool online = false;
  std::string online_from;  ///< address

  std::chrono::microseconds lookup{0}, connect{0}, exchange{0}, authentication{0}, round_trip{0};
};

/// Who goes there, and how.
struct VisitPlan {
  config::GatewayAddress gateway;
  std::optional<config::ProxyAddress> proxy;
  std::string agent_id;
  std::optional<crypto::PrivateKey> key;  ///< none: the visit ends before the login
  std::string key_path;                   ///< where it is from; empty: from a reference
  std::shared_ptr<const HostKeyTrust> trust;
  std::chrono::milliseconds step_timeout{0};
  const Clock* clock = nullptr;
};

/// Connects as the agent would, asks a question over an own channel, and closes. Blocks; `runtime` must run.
Sightings visit(net::Runtime& runtime, net::Worker& worker, const VisitPlan& plan);

}  // namespace hive::agent
