#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "cli/gateway_client.h"

namespace hive::cli {

/// The words that name a call, as `call` and `explain` take them.
struct CallWords {
  std::vector<std::string> words;  ///< AGENT__TOOL (unless `tool` is given), then key=value
  std::string arguments;           ///< --arguments: JSON, or "-" for standard input; empty: none
  std::string agent;
  std::string tool;
};

/// A call as the command line asks for it, before the words are typed.
struct CallPlan {
  std::string tool;
  std::string base = "{}";
  std::vector<std::string> words;
  bool is_plain = false;  ///< a name without an agent, as servers behind the gateway without a prefix have them
  /// The agent may be offline when the call is made, and then lists no tools: those that every agent has are known.
  bool may_wait = false;
};

/// Whether a text can be AGENT__TOOL.
bool is_tool_name(std::string_view name);

/// Checks the words without asking anybody. `command` stands in front of messages.
Result<CallPlan> make_call_plan(const CallWords& options, std::string_view command);

/// The same for a call of many agents, whose tool is named without an agent.
Result<CallPlan> make_fan_out_plan(const CallWords& options, std::string_view command);

/// The arguments as raw JSON, typed by the tool's schema, which the gateway is asked for when there are words, or when
/// only its list can say whether a plain name is that of a tool.
std::expected<std::string, Failure> planned_arguments(const GatewayClient& gateway, const CallPlan& plan,
                                                      std::string_view command);

}  // namespace hive::cli
