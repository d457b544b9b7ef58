#include "gateway/surfaces/rest/call_request.h"

#include <array>
#include <optional>

#include "base/strings.h"
#include "net/http/ascii.h"
#include "protocol/json.h"

namespace hive::rest {

namespace {

constexpr std::array<std::string_view, 4> known_members = {"name", "arguments", "timeout_ms", "wait_seconds"};
constexpr std::size_t max_name_bytes = 256;
constexpr std::int64_t max_wait_seconds = 86'400;
constexpr std::int64_t max_timeout_ms = std::int64_t{24} * 3600 * 1000;

/// The weight of a media range, in thousandths; what is malformed weighs nothing.
int quality_of(std::string_view parameters) {
  for (std::string_view parameter : split(parameters, ';')) {
    parameter = trim(parameter);
    if (!parameter.starts_with("q=") && !parameter.starts_with("Q=")) continue;
    std::string_view value = parameter.substr(2);
    if (value.empty() || (value[0] != '0' && value[0] != '1') || value.size() > 5) return 0;
    int thousandths = (value[0] - '0') * 1000;
    if (value.size() > 1 && value[1] != '.') return 0;
    int unit = 100;
    for (char c : value.substr(std::min<std::size_t>(2, value.size()))) {
      if (c < '0' || c > '9') return 0;
      thousandths += (c - '0') * unit;
      unit /= 10;
    }
    return std::min(thousandths, 1000);
  }
  return 1000;
}

}  // namespace

Result<CallRequest> parse_call_request(std::string_view body) {
  std::vector<json::Member> members =
      TRY_CONTEXT("the body is not a JSON object of a call", json::parse_object(body, {.max_bytes = body.size()}));
  CallRequest request;
  for (const json::Member& member : members) {
    if (member.key == "name") {
      std::optional<std::string> name = json::decode_string(member.value);
      if (!name) return fail(ErrorCode::invalid_argument, "name: must be a string, AGENT__TOOL");
      if (name->size() > max_name_bytes) {
        return fail(ErrorCode::invalid_argument, "name: longer than {} bytes", max_name_bytes);
      }
      request.name = *std::move(name);
    } else if (member.key == "arguments") {
      if (json::is_null(member.value)) continue;
      if (!json::is_object(member.value)) return fail(ErrorCode::invalid_argument, "arguments: must be an object");
      request.arguments = member.value;
    } else if (member.key == "timeout_ms") {
      std::optional<std::int64_t> timeout = json::decode_integer(member.value);
      if (!timeout || *timeout < 1 || *timeout > max_timeout_ms) {
        return fail(ErrorCode::invalid_argument, "timeout_ms: must be a whole number from 1 to {}", max_timeout_ms);
      }
      request.timeout = std::chrono::milliseconds(*timeout);
    } else if (member.key == "wait_seconds") {
      std::optional<std::int64_t> wait = json::decode_integer(member.value);
      if (!wait || *wait < 0 || *wait > max_wait_seconds) {
        return fail(ErrorCode::invalid_argument, "wait_seconds: must be a whole number from 0 to {}", max_wait_seconds);
      }
      request.wait = std::chrono::seconds(*wait);
    } else {
      std::optional<std::string_view> nearest = nearest_name(member.key, known_members);
      return fail(ErrorCode::invalid_argument, "{}: unknown member{}", quote(member.key),
                  nearest ? fmt::format("; did you mean \"{}\"?", *nearest)
                          : "; known are name, arguments, timeout_ms, wait_seconds");
    }
  }
  if (request.name.empty()) return fail(ErrorCode::invalid_argument, "name: missing or empty; write AGENT__TOOL");
  return request;
}

bool prefers_event_stream(std::string_view accept) {
  int stream = 0;
  int document = 0;
  for (std::string_view range : split(accept, ',')) {
    std::size_t semicolon = range.find(';');
    std::string_view type = trim(range.substr(0, semicolon));
    int quality = semicolon == std::string_view::npos ? 1000 : quality_of(range.substr(semicolon + 1));
    if (net::http::equal_ignoring_case(type, "text/event-stream")) stream = quality;
    if (net::http::equal_ignoring_case(type, "application/json")) document = quality;
  }
  return stream > document;
}

}  // namespace hive::rest
