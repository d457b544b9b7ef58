#pragma once

#include <string>
#include <string_view>

namespace hive::upstreams {

/// SHA-256, in hexadecimal, of what a tool says about itself to people and models: name, title, description, input and
/// output schema, annotations. The same for the same meaning: neither the order of members nor spacing nor escapes
/// count, as some servers write them differently every time. `raw_tool` is a JSON object within mcp::message_limits.
std::string tool_digest(std::string_view raw_tool);

}  // namespace hive::upstreams
