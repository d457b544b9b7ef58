#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "config/gateway_config.h"
#include "gateway/policy/policy.h"

/// A second, slow and simple opinion about the gates 1 to 4, to hold the policy against. It shares no code with it: it
/// knows what it made up itself instead of reading configurations, headers or JSON.
namespace hive::policy::model {

struct Token {
  std::string text;
  std::string role;
  std::string identity;
  bool scoped = false;
  std::vector<std::string> agents, tags, tools;
  std::optional<WallTime> expires_at;
};

/// The arguments of a call, and what they mean.
struct Arguments {
  std::string json;
  std::vector<std::string> named_agents;
  bool all_agents = false;
  bool unclear_agents = false;
  std::optional<std::string> command;  ///< "name", where it is a string
  bool unclear_command = false;
};

struct Call {
  std::string header;            ///< Authorization
  const Token* token = nullptr;  ///< whose header it is; null: nobody's
  std::string agent;
  std::string tool;
  Arguments arguments;
};

/// A made-up configuration.
struct World {
  std::vector<Token> tokens;
  std::map<std::string, std::vector<std::string>> tags;           // by agent
  std::map<std::string, std::string> tiers;                       // by tool or run_command:NAME
  std::vector<std::string> asking;                                // tiers that wait
  std::map<std::string, std::vector<std::string>> groups_needed;  // by tier
  std::map<std::string, std::vector<std::string>> members;        // by group
  int rate_limit = 0;
  bool hashed_tokens = false;

  [[nodiscard]] config::GatewayConfig configuration() const;
};

/// What became of accepted calls, for the rate limit.
using History = std::map<std::tuple<std::string, std::string, std::string>, std::vector<SteadyTime>>;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(engine_); }
  bool one_in(std::size_t count) { return below(count) == 0; }
  template <class T>
  const T& of(const std::vector<T>& values) {
    return values[below(values.size())];
  }

 private:
  std::mt19937_64 engine_;
};

World random_world(Random& random, WallTime now);
Call random_call(Random& random, const World& world);

std::string tier_of(const World& world, const Call& call);
bool refused_by_role(const Token& token);
bool refused_by_scope(const World& world, const Token& token, const Call& call);
bool waits(const World& world, const std::string& tier);
bool refused_by_rate(const World& world, const History& history, const Call& call, SteadyTime now);
/// The reason why `approver` may not agree to what `requester` asks; empty: it may.
std::string refusal_of_approver(const World& world, const Token& approver, const Token& requester, const Call& call);

}  // namespace hive::policy::model
