#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::rest {

/// The body of POST /api/call.
struct CallRequest {
  std::string name;
  std::string arguments = "{}";          ///< raw JSON object
  std::chrono::milliseconds timeout{0};  ///< 0: not given
  std::chrono::seconds wait{0};          ///< for the agent
};

/// Strict: unknown members are refused with the nearest known name, so that a typing error cannot change what a call
/// does in silence. Messages are one line for the client.
Result<CallRequest> parse_call_request(std::string_view body);

/// Whether an Accept header asks for server-sent events rather than for one JSON document.
bool prefers_event_stream(std::string_view accept);

}  // namespace hive::rest
