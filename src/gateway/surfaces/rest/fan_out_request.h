#pragma once

#include <string_view>

#include "base/result.h"
#include "gateway/calls/fan_out.h"

namespace hive::rest {

/// The body of POST /api/fan-out, and the arguments of the MCP tool of the same use.
struct FanOutBody {
  calls::FanOutRequest request;  ///< without who asks
  bool dry_run = false;          ///< what would become of each call, instead of the calls
};

/// Strict, as parse_call_request() is.
Result<FanOutBody> parse_fan_out_request(std::string_view body);

/// What parse_fan_out_request() takes, as JSON Schema.
inline constexpr std::string_view fan_out_schema =
    R"({"type":"object","required":["tool"],"additionalProperties":false,"properties":{)"
    R"("tool":{"type":"string","description":"the tool's name without AGENT__"},)"
    R"("arguments":{"type":["object","null"],"description":"the arguments of the tool, the same for every agent"},)"
    R"("agents":{"type":"array","items":{"type":"string"},"maxItems":10000,"description":"ids of agents, or globs with *"},)"
    R"("tags":{"type":"array","items":{"type":"string"},"description":"agents with one of these tags (agent_tags), or globs with *"},)"
    R"("all":{"type":"boolean","description":"every agent that this credential reaches; instead of agents and tags"},)"
    R"("offline":{"type":"boolean","description":"globs, tags and all mean agents that are offline as well"},)"
    R"("concurrency":{"type":"integer","minimum":1,"maximum":256,"default":32,"description":"calls at once"},)"
    R"("timeout_ms":{"type":"integer","minimum":1,"description":"how long each call may take; without it the gateway's default"},)"
    R"("deadline_ms":{"type":"integer","minimum":1,"maximum":86400000,"description":"how long the whole may take"},)"
    R"("stop_after_errors":{"type":"integer","minimum":0,"default":0,"description":"start no more calls once so many did not succeed; 0: never"},)"
    R"("wait_seconds":{"type":"integer","minimum":0,"description":"how long each call may wait for an agent that is offline; implies offline"},)"
    R"("dry_run":{"type":"boolean","description":"only say whom it would ask, and whom the policy would refuse"}}})";

}  // namespace hive::rest
