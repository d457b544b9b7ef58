#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"
#include "cli/gateway_client.h"

namespace hive::cli {

struct McpBridgeOptions {
  int in_fd = 0;
  int out_fd = 1;
  int stop_fd = -1;                                   ///< readable: end without waiting for answers
  std::chrono::milliseconds timeout{0};               ///< of one request; 0: as long as the gateway takes
  std::chrono::milliseconds first_pause{250};         ///< before a request is sent again; doubled from time to time
  std::chrono::milliseconds last_answers{1200};       ///< how long requests may still run when the input has ended
  std::function<void(const std::string& note)> note;  ///< a line for people; never on standard output
};

/// Carries MCP messages, one a line, between a program that started this one and the gateway's HTTP endpoint, in
/// whichever era they speak. Returns when the input ends, the output is closed or `stop_fd` is readable; within 2 s. A
/// gateway that is away is not the end: each request is answered with an error that says so.
Result<void> run_mcp_bridge(const GatewayClient& gateway, const McpBridgeOptions& options);

}  // namespace hive::cli
