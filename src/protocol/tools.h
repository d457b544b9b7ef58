#pragma once

#include <span>
#include <string_view>

#include "protocol/outcome.h"

namespace hive::protocol {

/// One built-in tool of the agent: what it is called, what it may do, what it takes and returns. The agent lists and
/// runs from this table, the gateway takes the tier from it, and the documentation is checked against it.
struct ToolDescription {
  std::string_view name;
  std::string_view title;
  std::string_view description;
  Tier tier = Tier::write;
  std::string_view input_schema;   ///< JSON text
  std::string_view output_schema;  ///< JSON text, of structuredContent
};

/// All nine, in the order in which an agent lists them.
std::span<const ToolDescription> builtin_tools();

/// The description of `name`, or nullptr.
const ToolDescription* find_builtin_tool(std::string_view name);

/// The result of tools/list for all built-in tools: {"tools":[...]}.
std::string tools_list_result();

}  // namespace hive::protocol
