#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/fleet/fleet.h"
#include "gateway/upstreams/upstreams.h"

namespace hive::calls {

/// The key to the private doors of the fleet and of the upstreams (DESIGN section 2). Only this room may use it;
/// tools/check_layers holds the word against the plan.
class FunnelAccess {
 public:
  static std::uint64_t send(fleet::Fleet& fleet, std::string_view agent, fleet::AgentRequest request) {
    return fleet.send(agent, std::move(request));
  }
  static void cancel(fleet::Fleet& fleet, std::string_view agent, std::uint64_t ticket, std::string reason) {
    fleet.cancel(agent, ticket, std::move(reason));
  }
  static std::uint64_t send(upstreams::Upstreams& upstreams, std::string_view upstream, upstreams::Request request) {
    return upstreams.send(upstream, std::move(request));
  }
  static void cancel(upstreams::Upstreams& upstreams, std::uint64_t ticket, std::string reason) {
    upstreams.cancel(ticket, std::move(reason));
  }
};

}  // namespace hive::calls
