#pragma once

#include <string>
#include <string_view>

#include "gateway/surfaces/mcp/exchange.h"

namespace hive::mcp_surface {

/// The result of tools/call that says in words why there is no other. `outcome` and `reason` are those of every
/// surface and stand in _meta.
std::string tool_error(std::string_view text, std::string_view outcome, std::string_view reason);

/// The text of a result with one text block.
std::string text_result(std::string_view text);

/// Answers tools/call with how the call ended, or that it waits for other people. Errors of upstreams stay errors;
/// whatever the gates or an agent refused becomes a result with isError, which models read.
void answer_tool_call(Exchange& exchange, const calls::CallResult& result, calls::TargetKind target);

/// The same for every other method: what did not succeed is an error, with the reason in its data.
void answer_request(Exchange& exchange, const calls::CallResult& result);

/// The error of a request whose call did not succeed.
void fail_with_reason(Exchange& exchange, const calls::CallResult& result, std::string_view message);

/// The "message" of an error object.
std::string message_of_error(std::string_view raw_error);

}  // namespace hive::mcp_surface
