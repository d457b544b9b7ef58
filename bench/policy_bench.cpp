// Who may do what: a bearer token is looked up, the tier of the call is found and the four gates of the gateway are
// asked, for growing numbers of tokens and agents. Figures are for one core and count its processor time, so that other
// programs on the machine change little.
// Usage: policy_bench [--quick]

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/policy/authenticator.h"
#include "gateway/policy/policy.h"
#include "process.h"

namespace {

using namespace hive;
using bench::give_up;
using bench::processor_seconds;

constexpr std::size_t prepared_calls = 65'536;

std::string site(std::size_t number) {
  return fmt::format("site-{}", number % 100);
}

// Every other token reaches the agents of one site by their tag, and of the tools two.
config::GatewayConfig configuration(std::size_t tokens, std::size_t agents, int rate_limit) {
  config::GatewayConfig config;
  config.source_path = "gateway.json";
  for (std::size_t i = 0; i < tokens; ++i) {
    config::StaticToken token{config::Secret(fmt::format("{:064x}", i + 1)), "operator", fmt::format("person-{}", i)};
    if (i % 2 == 0) {
      config.tokens.push_back(token);
    } else {
      config.scoped_tokens.push_back({token, {"gate-*"}, {site(i)}, {"get_*", "run_command"}, {}});
    }
  }
  for (std::size_t i = 0; i < agents; ++i)
    config.agent_tags[fmt::format("edge-{}", i)] = {"production", site(i)};
  config.risk_tiers = {{"run_command:uptime", "read"}, {"run_command:chaos.sh", "admin"}};
  config.require_approval_tiers = {"admin"};
  config.rate_limit_per_minute = rate_limit;
  return config;
}

struct PreparedCall {
  std::string header;
  std::string agent;
  std::string tool;
  std::string arguments;
};

// All of them pass, because a refusal ends early and would flatter the figure.
std::vector<PreparedCall> prepare(std::size_t tokens, std::size_t agents) {
  std::mt19937_64 random(1);
  std::vector<PreparedCall> calls(prepared_calls);
  for (PreparedCall& call : calls) {
    std::size_t agent = random() % agents;
    std::size_t token = random() % tokens;
    // Tokens and agents of one site have numbers that are alike in their last two digits, or in all where there are
    // fewer.
    std::size_t step = std::min<std::size_t>({100, tokens, agents});
    token = token - token % step + agent % step;
    call.header = fmt::format("Bearer {:064x}", token + 1);
    call.agent = fmt::format("edge-{}", agent);
    call.tool = random() % 2 == 0 ? "run_command" : "get_metrics";
    call.arguments = call.tool == "run_command" ? R"({"name":"systemctl","args":["restart","nginx"]})" : "{}";
  }
  return calls;
}

double decisions_per_second(std::size_t tokens, std::size_t agents, int rate_limit, double seconds) {
  const config::GatewayConfig config = configuration(tokens, agents, rate_limit);
  auto authenticator = policy::Authenticator::create(config, system_clock());
  if (!authenticator) give_up(authenticator.error().message);
  auto policy = policy::make_policy(config, system_clock());
  const std::vector<PreparedCall> calls = prepare(tokens, agents);

  auto decide = [&](const PreparedCall& call) {
    policy::Credentials credentials;
    credentials.authorization = call.header;
    credentials.peer_address = "192.0.2.1";
    auto principal = (*authenticator)->authenticate(credentials);
    if (!principal) give_up("a token is not accepted");
    policy::Question question{*principal, call.agent, call.tool, call.arguments,
                              policy->tier_of(call.tool, call.arguments)};
    for (auto gate : {&policy::Policy::check_role, &policy::Policy::check_scope, &policy::Policy::check_approval,
                      &policy::Policy::check_rate}) {
      policy::Decision decision = (*policy.*gate)(question);
      if (!decision.allowed()) give_up("a call is refused: " + decision.message);
    }
  };
  double begin = processor_seconds();
  double spent = 0;
  std::size_t decided = 0;
  while (spent < seconds) {
    for (std::size_t i = 0; i < 4096; ++i)
      decide(calls[decided++ % calls.size()]);
    spent = processor_seconds() - begin;
  }
  return static_cast<double>(decided) / spent;
}

void run(double seconds) {
  constexpr std::array<std::size_t, 3> counts = {10, 1000, 10'000};
  // So high that it counts every call and refuses none.
  for (int rate_limit : {0, 1'000'000'000}) {
    double first = 0;
    for (std::size_t count : counts) {
      double rate = decisions_per_second(count, count, rate_limit, seconds);
      if (first == 0) first = rate;
      std::printf("%6zu tokens, %6zu agents, %-20s %9.0f decisions/s  %5.2f of the first\n", count, count,
                  rate_limit == 0 ? "no rate limit" : "with a rate limit", rate, rate / first);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool quick = argc == 2 && std::string_view(argv[1]) == "--quick";
  if (argc > 1 && !quick) {
    std::fprintf(stderr, "usage: %s [--quick]\n", argv[0]);
    return 2;
  }
  run(quick ? 0.3 : 2);
  return 0;
}
