#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "gateway/surfaces/mcp/request_state.h"

namespace hive::mcp_surface {

class UpstreamCall;

/// Calls whose upstream has asked something and whose client, which keeps no connection, is to come back with the
/// answer. Bounded in number, in all and for one identity, and in time. Thread-safe.
class HeldCalls {
 public:
  struct Limits {
    std::size_t max_held = 1000;
    std::size_t max_held_per_identity = 50;
    std::chrono::milliseconds time_to_live = std::chrono::minutes(5);
  };

  HeldCalls(const Clock& clock, Limits limits) : clock_(clock), limits_(limits) {}

  /// Holds a call for one more round and returns the state that its client is to bring. Fails when too many are held.
  Result<std::string> hold(std::shared_ptr<UpstreamCall> call, const StateBinding& binding);
  /// The call that a state belongs to, which stays held; otherwise what is wrong, in one line.
  [[nodiscard]] std::expected<std::shared_ptr<UpstreamCall>, std::string> find(std::string_view state,
                                                                               const StateBinding& binding);
  /// Uses a state up. false: another request was faster.
  bool take(std::string_view state);

  /// Withdraws what nobody came back for.
  void sweep();
  void withdraw_all(std::string_view reason);
  [[nodiscard]] std::size_t size() const;

 private:
  struct Held {
    std::shared_ptr<UpstreamCall> call;
    std::string identity;
    SteadyTime expires_at;
  };

  const Clock& clock_;
  const Limits limits_;
  const RequestStates states_;
  mutable std::mutex mutex_;
  std::map<std::string, Held, std::less<>> held_;  // by state; guarded by mutex_
};

}  // namespace hive::mcp_surface
