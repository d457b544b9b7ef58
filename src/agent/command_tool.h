#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/tool.h"

namespace hive::agent {

/// Turns the end of a command into a reply; lets a tool add to it or judge it differently.
using Judge = std::move_only_function<ToolReply(const exec::CommandResult& result, ToolReply reply)>;

/// Asks the allowlist (gate 5), runs the command and replies.
CancelHook run_allowlisted(ToolServices& services, ToolCall call, std::string_view name,
                           const std::vector<std::string>& args, Judge judge = {});

/// Replies with a refusal of the allowlist.
ToolReply refusal_reply(const exec::Refusal& refusal);

/// The reply for a command that has ended: reference text, structuredContent, outcome and reason. `max_output_bytes`
/// bounds the output in it; less is kept when JSON escapes would make the answer too long for a line.
ToolReply command_reply(const exec::CommandResult& result, std::size_t max_output_bytes,
                        std::chrono::milliseconds timeout);

/// A text that can stand as an operand of a program: 1 to 256 letters, digits and characters of `punctuation`, starting
/// with a letter or a digit so that no program takes it for an option.
[[nodiscard]] bool is_plain_name(std::string_view text, std::string_view punctuation);

}  // namespace hive::agent
