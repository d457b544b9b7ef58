#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

#include "gateway/calls/fan_out.h"

namespace hive::calls {

/// The agents of a fan-out.
struct ResolvedTargets {
  std::vector<std::string> agents;
  std::size_t left_out = 0;  ///< offline ones that a glob, a tag or `all` means
};

/// Resolves whom a request means as things are now. A refusal of the whole where it means nobody, too many, or where a
/// glob or a tag matches nothing: what was misspelt must not be left out in silence.
std::expected<ResolvedTargets, CallResult> resolve_targets(const fleet::Fleet& fleet, const policy::Policy& policy,
                                                           const FanOutRequest& request);

}  // namespace hive::calls
