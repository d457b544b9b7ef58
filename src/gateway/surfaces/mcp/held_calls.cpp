#include "gateway/surfaces/mcp/held_calls.h"

#include <algorithm>
#include <vector>

#include "crypto/random.h"
#include "gateway/surfaces/mcp/upstream_call.h"

namespace hive::mcp_surface {

namespace {
constexpr std::size_t nonce_bytes = 16;
}

Result<std::string> HeldCalls::hold(std::shared_ptr<UpstreamCall> call, const StateBinding& binding) {
  sweep();
  SteadyTime expires_at = clock_.steady_now() + limits_.time_to_live;
  std::string state = states_.seal(crypto::random_hex(nonce_bytes), binding, expires_at);
  std::lock_guard lock(mutex_);
  if (held_.size() >= limits_.max_held) {
    return fail(ErrorCode::resource_exhausted, "too many calls wait for answers of their clients; try again later");
  }
  auto of_identity =
      std::ranges::count_if(held_, [&](const auto& each) { return each.second.identity == binding.identity; });
  if (static_cast<std::size_t>(of_identity) >= limits_.max_held_per_identity) {
    return fail(ErrorCode::resource_exhausted,
                "{} calls of {} wait for answers already; answer some or let them expire", of_identity,
                binding.identity);
  }
  held_.emplace(state, Held{std::move(call), binding.identity, expires_at});
  return state;
}

std::expected<std::shared_ptr<UpstreamCall>, std::string> HeldCalls::find(std::string_view state,
                                                                          const StateBinding& binding) {
  auto nonce = states_.open(state, binding, clock_.steady_now());
  if (!nonce) return std::unexpected(std::move(nonce).error());
  std::lock_guard lock(mutex_);
  auto found = held_.find(state);
  if (found == held_.end()) {
    return std::unexpected("requestState was used already; make the request again without it");
  }
  return found->second.call;
}

bool HeldCalls::take(std::string_view state) {
  std::lock_guard lock(mutex_);
  auto found = held_.find(state);
  if (found == held_.end()) return false;
  held_.erase(found);
  return true;
}

void HeldCalls::sweep() {
  std::vector<std::shared_ptr<UpstreamCall>> expired;
  {
    SteadyTime now = clock_.steady_now();
    std::lock_guard lock(mutex_);
    std::erase_if(held_, [&](auto& each) {
      if (each.second.expires_at > now) return false;
      expired.push_back(std::move(each.second.call));
      return true;
    });
  }
  for (const auto& call : expired)
    call->withdraw("the client did not answer in time");
}

void HeldCalls::withdraw_all(std::string_view reason) {
  std::map<std::string, Held, std::less<>> all;
  {
    std::lock_guard lock(mutex_);
    all.swap(held_);
  }
  for (const auto& [state, held] : all)
    held.call->withdraw(reason);
}

std::size_t HeldCalls::size() const {
  std::lock_guard lock(mutex_);
  return held_.size();
}

}  // namespace hive::mcp_surface
