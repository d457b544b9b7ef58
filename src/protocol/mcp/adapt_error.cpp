#include <array>

#include "protocol/agent_protocol.h"
#include "protocol/mcp/edit.h"
#include "protocol/mcp/translation.h"

namespace hive::mcp {

namespace {

// What revision 2026-07-28 keeps to itself, and forbids to use in any other sense than its own.
bool is_reserved(std::int64_t code) {
  return code <= header_mismatch_code && code >= -32099;
}
bool is_defined(std::int64_t code) {
  return code <= header_mismatch_code && code >= unsupported_version_code;
}

// Whether it is about the way between us and the server, which is not the client's to mend: a client that took it for
// an answer of ours would change its version or its headers and try again.
bool is_about_us(std::int64_t code) {
  return code == header_mismatch_code || code == unsupported_version_code;
}

std::int64_t modern_code(std::int64_t code) {
  if (code == resource_not_found_code) return protocol::invalid_params_code;
  bool is_forbidden = is_reserved(code) && !is_defined(code);
  return is_forbidden || is_about_us(code) ? protocol::internal_error_code : code;
}

std::int64_t legacy_code(std::int64_t code, std::string_view method, std::string_view raw_data) {
  if (code == protocol::invalid_params_code && method == "resources/read" &&
      json::find(edit::members_of(raw_data), "uri"))
    return resource_not_found_code;
  if (is_about_us(code)) return protocol::internal_error_code;
  // Unknown to legacy clients; JSON-RPC's own code says whose mistake it was.
  return code == missing_capability_code ? protocol::invalid_request_code : code;
}

std::optional<std::int64_t> code_of(std::span<const json::Member> members) {
  return json::decode_integer(json::find(members, "code").value_or(""));
}

}  // namespace

std::string adapt_error(std::string_view raw_error, std::string_view method, Revision revision) {
  std::vector<json::Member> members = edit::members_of(raw_error);
  std::optional<std::int64_t> code = code_of(members);
  if (!code || !json::is_string(json::find(members, "message").value_or("")))
    return fmt::format(R"({{"code":{},"message":"the server answered with an error that has no code or no message"}})",
                       protocol::internal_error_code);
  std::int64_t adapted =
      is_modern(revision) ? modern_code(*code) : legacy_code(*code, method, json::find(members, "data").value_or(""));
  if (adapted == *code) return std::string(raw_error);
  std::string text = std::to_string(adapted);
  return edit::apply(raw_error, members, std::array{MemberChange{.key = "code", .value = text}});
}

unsigned http_status_of_error(std::string_view raw_error) {
  std::int64_t code = code_of(edit::members_of(raw_error)).value_or(0);
  if (code == protocol::method_not_found_code) return 404;
  bool is_refused = code == protocol::parse_error_code || code == protocol::invalid_request_code || is_defined(code);
  return is_refused ? 400 : 200;
}

}  // namespace hive::mcp
