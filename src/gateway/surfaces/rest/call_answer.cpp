#include "gateway/surfaces/rest/call_answer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "protocol/json.h"

namespace hive::rest {

std::optional<unsigned> refusal_status(const calls::CallResult& result) {
  // An agent may use the same words for what it says itself, and must not speak with the gateway's voice.
  if (!result.by_gateway) return std::nullopt;
  static constexpr std::array<std::pair<std::string_view, unsigned>, 22> statuses = {{
      {"role", 403},
      {"scope", 403},
      {"own_request", 403},
      {"group", 403},
      {"approval_required", 403},
      {"approval_rejected", 403},
      {"credential_revoked", 403},
      {"credential_expired", 403},
      {"approval_unknown", 404},
      {"approval_used", 409},
      {"approval_changed", 409},
      {"approval_withdrawn", 409},
      {"agent_key_changed", 409},
      {"policy_changed", 409},
      {"approval_expired", 410},
      {"approvals_full", 429},
      {"rate_limited", 429},
      {"too_many_calls", 429},
      {"too_many_waiting", 429},
      {"audit_unavailable", 503},
      {"draining", 503},
      {"timed_out", 504},
  }};
  const auto* found = std::ranges::find(statuses, result.reason, [](const auto& entry) { return entry.first; });
  if (found == statuses.end()) return std::nullopt;
  return found->second;
}

std::string json_rpc_response(std::string_view request_id, const calls::CallResult& result) {
  std::string body;
  body.reserve(result.body.size() + request_id.size() + 48);
  body += R"({"jsonrpc":"2.0","id":)";
  json::append_string(body, request_id);
  body += result.is_error ? R"(,"error":)" : R"(,"result":)";
  body += result.body;
  body += '}';
  return body;
}

std::string error_message(const calls::CallResult& result) {
  auto members = json::parse_object(result.body, {.max_bytes = result.body.size()});
  auto message = members ? json::find(*members, "message") : std::nullopt;
  return message ? json::decode_string(*message).value_or("") : "";
}

std::string server_sent_event(std::string_view name, std::string_view raw_json) {
  std::string event;
  event.reserve(raw_json.size() + name.size() + 32);
  event += "event: ";
  event += name;
  event += "\ndata: ";
  std::size_t begin = event.size();
  event += raw_json;
  std::replace_if(
      event.begin() + static_cast<std::ptrdiff_t>(begin), event.end(), [](char c) { return c == '\r' || c == '\n'; },
      ' ');
  event += "\n\n";
  return event;
}

}  // namespace hive::rest
