#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "gateway/calls/approvals.h"

namespace hive::rest {

/// So many bytes of a request's arguments are shown in a list.
inline constexpr std::size_t listed_argument_bytes = 4096;

/// Whether whoever has only seen the list has not seen all arguments of a request.
bool list_hides_arguments(const calls::Approval& approval);

enum class ArgumentView {
  complete,
  listed,  ///< cut after listed_argument_bytes; "args_hidden_bytes" tells how much is missing
};

/// A request as the approvals routes show it: the members of the reference (id, token_id, role, agent_id, tool, args,
/// tier, created_at, status) and ours. `args` is a string that holds the raw JSON.
std::string approval_json(const calls::Approval& approval, ArgumentView view);

/// The same, with another word in the place of the status: for a call that runs.
std::string approval_json(const calls::Approval& approval, ArgumentView view, std::string_view status);

}  // namespace hive::rest
