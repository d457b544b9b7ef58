#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/fleet/fleet.h"

namespace hive::calls {

/// The key to the fleet's private door (DESIGN section 2). Only this room may use it; tools/check_layers holds the word
/// against the plan.
class FunnelAccess {
 public:
  static std::uint64_t send(fleet::Fleet& fleet, std::string_view agent, fleet::AgentRequest request) {
    return fleet.send(agent, std::move(request));
  }
  static void cancel(fleet::Fleet& fleet, std::string_view agent, std::uint64_t ticket, std::string reason) {
    fleet.cancel(agent, ticket, std::move(reason));
  }
};

}  // namespace hive::calls
