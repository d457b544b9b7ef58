#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gateway/surfaces/mcp/http_session.h"
#include "gateway/surfaces/rest/mcp_endpoint.h"

namespace hive::mcp_surface {

/// The requests of one POST within a legacy session, as raw messages.
struct LegacyRequests {
  std::vector<std::string> texts = {};
  std::vector<std::string> ids = {};  ///< raw, of each
  bool is_batch = false;              ///< answers that are JSON come as an array
};

/// Gives them to the session and answers the POST: JSON if nothing precedes the answers, otherwise a stream that the
/// client can come back to. A client that goes away has not withdrawn its requests.
///
/// Accept: absent and wildcards count as JSON and streams; a client that admits JSON alone gets what precedes an answer
/// on the stream of its session, if it listens there; one that admits streams alone gets a stream.
void legacy_requests(std::shared_ptr<HttpSession> session, rest::McpRequest request, LegacyRequests requests,
                     std::chrono::milliseconds heartbeat);

/// Gives the initialize request to a new session and answers the POST. `admit` is called when it has been accepted and
/// says whether there is room for the session; then the answer names it.
void legacy_initialize(std::shared_ptr<HttpSession> session, rest::McpRequest request, std::string id,
                       std::function<bool()> admit, std::chrono::milliseconds heartbeat);

}  // namespace hive::mcp_surface
