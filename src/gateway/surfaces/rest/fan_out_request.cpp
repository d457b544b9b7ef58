#include "gateway/surfaces/rest/fan_out_request.h"

#include <array>

#include "gateway/surfaces/rest/members.h"

namespace hive::rest {

namespace {

constexpr std::array<std::string_view, 12> known_members = {
    "tool",        "arguments",         "agents",       "tags",    "all", "offline", "concurrency", "timeout_ms",
    "deadline_ms", "stop_after_errors", "wait_seconds", "dry_run",
};
constexpr std::int64_t max_milliseconds = calls::FanOuts::max_deadline.count();

Result<calls::FanOutTargets> parse_targets(const std::vector<json::Member>& members) {
  calls::FanOutTargets targets;
  targets.agents =
      TRY(optional_texts(members, "agents", calls::FanOuts::max_agents)).value_or(std::vector<std::string>());
  targets.tags = TRY(optional_texts(members, "tags")).value_or(std::vector<std::string>());
  targets.all = TRY(optional_flag(members, "all")).value_or(false);
  targets.with_offline = TRY(optional_flag(members, "offline")).value_or(false);
  return targets;
}

Result<std::chrono::milliseconds> parse_time(const std::vector<json::Member>& members, std::string_view key) {
  return std::chrono::milliseconds(TRY(optional_number(members, key, 1, max_milliseconds)).value_or(0));
}

}  // namespace

Result<FanOutBody> parse_fan_out_request(std::string_view body) {
  std::vector<json::Member> members =
      TRY_CONTEXT("the body is not a JSON object of a call of many agents", parse_members(body, known_members));
  FanOutBody parsed;
  calls::FanOutRequest& request = parsed.request;
  request.tool = TRY(required_text(members, "tool"));
  if (auto arguments = json::find(members, "arguments"); arguments && !json::is_null(*arguments)) {
    if (!json::is_object(*arguments)) return fail(ErrorCode::invalid_argument, "arguments: must be an object");
    request.arguments = *arguments;
  }
  request.targets = TRY(parse_targets(members));
  constexpr auto max_concurrency = static_cast<std::int64_t>(calls::FanOuts::max_concurrency);
  constexpr auto max_agents = static_cast<std::int64_t>(calls::FanOuts::max_agents);
  if (auto number = TRY(optional_number(members, "concurrency", 1, max_concurrency))) {
    request.concurrency = static_cast<std::size_t>(*number);
  }
  if (auto number = TRY(optional_number(members, "stop_after_errors", 0, max_agents))) {
    request.stop_after_errors = static_cast<std::size_t>(*number);
  }
  request.timeout = TRY(parse_time(members, "timeout_ms"));
  constexpr std::int64_t max_wait_seconds = max_milliseconds / 1000;
  request.wait_for_agent =
      std::chrono::seconds(TRY(optional_number(members, "wait_seconds", 0, max_wait_seconds)).value_or(0));
  request.deadline = TRY(parse_time(members, "deadline_ms"));
  parsed.dry_run = TRY(optional_flag(members, "dry_run")).value_or(false);
  return parsed;
}

}  // namespace hive::rest
