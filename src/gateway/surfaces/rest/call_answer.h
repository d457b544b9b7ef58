#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gateway/calls/call.h"
#include "net/http/message.h"

namespace hive::rest {

/// The HTTP status of a call that the gateway itself refused or lost; nullopt where the answer is a JSON-RPC response
/// with status 200, as clients of the reference expect it: whatever an agent said, and agents that are offline.
std::optional<unsigned> refusal_status(const calls::CallResult& result);

/// {"jsonrpc":"2.0","id":"REQUEST","result":...}: the raw body in its envelope, never serialised again.
std::string json_rpc_response(std::string_view request_id, const calls::CallResult& result);

/// The "message" of an error object.
std::string error_message(const calls::CallResult& result);

/// One server-sent event. Line ends in raw JSON can only be white space between tokens; they become blanks, since they
/// would end the event's data.
std::string server_sent_event(std::string_view name, std::string_view raw_json);

}  // namespace hive::rest
