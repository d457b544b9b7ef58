#pragma once

#include <string>
#include <string_view>

#include "gateway/calls/call.h"
#include "gateway/fleet/fleet.h"
#include "gateway/upstreams/upstreams.h"

namespace hive::calls {

/// The end of a call that the gateway itself refused: nothing ran.
CallResult refusal(std::string reason, std::string_view message, protocol::Outcome outcome = protocol::Outcome::denied);

/// The end of a call by what its agent, or the tunnel to it, said.
CallResult from_reply(fleet::AgentReply reply);
CallResult from_reply(upstreams::Reply reply);

/// The "message" of an error object, bounded, for the log.
std::string message_of(std::string_view error);

}  // namespace hive::calls
