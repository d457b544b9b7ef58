#include "protocol/agent_protocol.h"

#include <array>

#include "base/strings.h"

namespace hive::protocol {

namespace {

// The reference judges by these words; they count only on the line of the marker, never in captured output.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> denied_texts = {{
    {"is not in the approved allowlist", "not_allowlisted"},
    {"do not match the approved pattern", "arguments_not_allowed"},
    {"does not allow arguments", "arguments_not_allowed"},
    {"invalid regex pattern in allowlist config", "invalid_pattern"},
}};

std::string bare_id(std::string_view raw) {
  if (json::is_string(raw)) return json::decode_string(raw).value_or(std::string());
  return std::string(raw);
}

// "text" of the first content block, raw.
std::optional<std::string_view> first_text(std::span<const json::Member> result, std::vector<std::string_view>& blocks,
                                           std::vector<json::Member>& block) {
  auto content = json::find(result, "content");
  if (!content || !json::is_array(*content)) return std::nullopt;
  auto elements = json::parse_array(*content, {.max_bytes = content->size(), .max_values = content->size() + 1});
  if (!elements || elements->empty()) return std::nullopt;
  blocks = *std::move(elements);
  auto members = json::parse_object(blocks[0], {.max_bytes = blocks[0].size(), .max_values = blocks[0].size() + 1});
  if (!members) return std::nullopt;
  block = *std::move(members);
  return json::find(block, "text");
}

Verdict verdict_from_text(std::string_view raw_text) {
  // Enough for the marker's line; decoding a long output for its first line would be waste.
  constexpr size_t enough = 4096;
  std::string line;
  if (!raw_text.starts_with('"')) return {};
  std::string_view inside = raw_text.substr(1, enough);
  if (!inside.starts_with(rejected_marker)) return {};
  line = std::string(inside.substr(0, inside.find("\\n")));
  for (const auto& [text, reason] : denied_texts) {
    if (line.find(text) != std::string::npos) return {Outcome::denied, std::string(reason)};
  }
  if (line.find("command timed out:") != std::string::npos) return {Outcome::failure, "timed_out"};
  return {Outcome::failure, "command_failed"};
}

}  // namespace

Result<AgentRequest> parse_agent_request(std::string_view line, const json::Limits& limits) {
  std::vector<json::Member> members = TRY(json::parse_object(line, limits));
  AgentRequest request;
  auto id = json::find(members, "id");
  request.is_notification = !id;
  request.id = id.value_or("null");
  if (json::is_object(request.id) || json::is_array(request.id) || json::decode_boolean(request.id)) {
    return fail(ErrorCode::invalid_argument, "\"id\" must be a string or a number");
  }
  auto method = json::find(members, "method");
  std::optional<std::string> name = method ? json::decode_string(*method) : std::nullopt;
  if (!name) return fail(ErrorCode::invalid_argument, "\"method\" must be a string");
  request.method = *std::move(name);
  request.params = json::find(members, "params").value_or(std::string_view());
  return request;
}

Result<ToolCallParams> parse_tool_call_params(std::string_view params) {
  if (params.empty()) return fail(ErrorCode::invalid_argument, "\"params\" is missing");
  std::vector<json::Member> members = TRY(json::parse_object(params, {.max_bytes = params.size()}));
  ToolCallParams call;
  auto name = json::find(members, "name");
  std::optional<std::string> decoded = name ? json::decode_string(*name) : std::nullopt;
  if (!decoded) return fail(ErrorCode::invalid_argument, "\"name\" must be a string");
  call.name = *std::move(decoded);
  call.arguments = json::find(members, "arguments").value_or(std::string_view());
  auto meta = json::find(members, "_meta");
  if (!meta) return call;
  std::vector<json::Member> meta_members =
      TRY_CONTEXT("\"_meta\"", json::parse_object(*meta, {.max_bytes = meta->size()}));
  if (auto token = json::find(meta_members, "progressToken")) {
    if (!json::is_string(*token) && !json::decode_integer(*token)) {
      return fail(ErrorCode::invalid_argument, "\"progressToken\" must be a string or an integer");
    }
    call.progress_token = *token;
  }
  if (auto timeout = json::find(meta_members, timeout_meta_key)) {
    auto milliseconds = json::decode_integer(*timeout);
    if (!milliseconds || *milliseconds <= 0) {
      return fail(ErrorCode::invalid_argument, "\"{}\" must be a positive integer", timeout_meta_key);
    }
    call.timeout = std::chrono::milliseconds(*milliseconds);
  }
  return call;
}

Result<AgentMessage> parse_agent_message(std::string_view line, const json::Limits& limits) {
  std::vector<json::Member> members = TRY(json::parse_object(line, limits));
  auto result = json::find(members, "result");
  auto error = json::find(members, "error");
  if (error && json::is_null(*error)) error.reset();
  if (result || error) {
    if (result && error) return fail(ErrorCode::invalid_argument, "both \"result\" and \"error\"");
    auto id = json::find(members, "id");
    if (!id) return fail(ErrorCode::invalid_argument, "a response without \"id\"");
    AgentResponse response;
    response.id = bare_id(*id);
    response.is_error = error.has_value();
    response.body = error ? *error : *result;
    if (response.is_error && !json::is_object(response.body)) {
      return fail(ErrorCode::invalid_argument, "\"error\" must be an object");
    }
    return response;
  }
  auto method = json::find(members, "method");
  std::string name = method ? json::decode_string(*method).value_or("") : "";
  if (name != "notifications/progress") {
    return fail(ErrorCode::invalid_argument, "neither a response nor a progress notification");
  }
  auto params = json::find(members, "params");
  if (!params) return fail(ErrorCode::invalid_argument, "progress without \"params\"");
  std::vector<json::Member> fields = TRY(json::parse_object(*params, {.max_bytes = params->size()}));
  auto token = json::find(fields, "progressToken");
  if (!token) return fail(ErrorCode::invalid_argument, "progress without \"progressToken\"");
  return AgentProgress{bare_id(*token), *params};
}

Verdict classify_result(std::string_view result) {
  json::Limits whole{.max_bytes = result.size(), .max_values = result.size() + 1};
  auto members = json::parse_object(result, whole);
  if (!members) return {Outcome::failure, "malformed_result"};
  bool is_error = json::decode_boolean(json::find(*members, "isError").value_or("false")).value_or(false);
  if (auto meta = json::find(*members, "_meta"); meta && json::is_object(*meta)) {
    auto fields = json::parse_object(*meta, whole);
    auto outcome_field = fields ? json::find(*fields, outcome_meta_key) : std::nullopt;
    if (outcome_field) {
      auto outcome = outcome_from_string(json::decode_string(*outcome_field).value_or(""));
      auto reason_field = json::find(*fields, reason_meta_key);
      std::string reason = reason_field ? json::decode_string(*reason_field).value_or("") : "";
      if (!outcome || (is_error && *outcome == Outcome::success)) return {Outcome::failure, "malformed_outcome"};
      return {*outcome, std::move(reason)};
    }
  }
  if (json::find(*members, "isError")) {
    return is_error ? Verdict{Outcome::failure, "tool_error"} : Verdict{};
  }
  std::vector<std::string_view> blocks;
  std::vector<json::Member> block;
  auto text = first_text(*members, blocks, block);
  return text ? verdict_from_text(*text) : Verdict{};
}

Verdict classify_error(std::string_view error) {
  auto members = json::parse_object(error, {.max_bytes = error.size(), .max_values = error.size() + 1});
  if (!members) return {Outcome::failure, "malformed_error"};
  if (auto data = json::find(*members, "data"); data && json::is_object(*data)) {
    auto fields = json::parse_object(*data, {.max_bytes = data->size(), .max_values = data->size() + 1});
    auto outcome_field = fields ? json::find(*fields, "outcome") : std::nullopt;
    auto outcome = outcome_field ? outcome_from_string(json::decode_string(*outcome_field).value_or("")) : std::nullopt;
    if (outcome && *outcome != Outcome::success) {
      auto reason = json::find(*fields, "reason");
      return {*outcome, reason ? json::decode_string(*reason).value_or("") : ""};
    }
  }
  auto code = json::find(*members, "code");
  switch (code ? json::decode_integer(*code).value_or(0) : 0) {
    // The reference's agents answer these before anything runs.
    case parse_error_code:
    case invalid_request_code:
      return {Outcome::denied, "invalid_request"};
    case method_not_found_code:
      return {Outcome::denied, "tool_not_found"};
    case invalid_params_code:
      return {Outcome::denied, "invalid_arguments"};
    default:
      return {Outcome::failure, "agent_error"};
  }
}

std::string tools_digest_of(std::string_view ping_result) {
  const json::Limits whole{.max_bytes = ping_result.size()};
  auto members = json::parse_object(ping_result, whole);
  auto meta = members ? json::find(*members, "_meta") : std::nullopt;
  if (!meta) return {};
  auto fields = json::parse_object(*meta, whole);
  auto digest = fields ? json::find(*fields, tools_meta_key) : std::nullopt;
  return digest ? json::decode_string(*digest).value_or("") : "";
}

std::string encode_tools_call(std::string_view id, std::string_view tool, std::string_view raw_arguments,
                              bool wants_progress, std::chrono::milliseconds timeout) {
  std::string line;
  line.reserve(160 + tool.size() + raw_arguments.size());
  line += R"({"jsonrpc":"2.0","id":)";
  json::append_string(line, id);
  line += R"(,"method":"tools/call","params":{"name":)";
  json::append_string(line, tool);
  line += R"(,"arguments":)";
  // Line breaks may stand between the values of what a caller sent; inside strings JSON does not allow them.
  if (raw_arguments.find_first_of("\r\n") == std::string_view::npos) {
    line += raw_arguments;
  } else {
    for (char c : raw_arguments)
      line += c == '\n' || c == '\r' ? ' ' : c;
  }
  line += R"(,"_meta":{)";
  if (wants_progress) {
    line += R"("progressToken":)";
    json::append_string(line, id);
    line += ',';
  }
  line += fmt::format(R"("{}":{}}}}}}})", timeout_meta_key, timeout.count());
  return line;
}

std::string encode_request(std::string_view id, std::string_view method) {
  return fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":{}}})", json::encode_string(id),
                     json::encode_string(method));
}

std::string encode_cancelled(std::string_view id, std::string_view reason) {
  return fmt::format(
      R"({{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{},"reason":{}}}}})",
      json::encode_string(id), json::encode_string(reason));
}

std::string encode_result(std::string_view raw_id, std::string_view raw_result) {
  std::string line;
  line.reserve(40 + raw_id.size() + raw_result.size());
  line += R"({"jsonrpc":"2.0","id":)";
  line += raw_id;
  line += R"(,"result":)";
  line += raw_result;
  line += '}';
  return line;
}

std::string encode_error_object(int code, std::string_view message, Outcome outcome, std::string_view reason) {
  return fmt::format(R"({{"code":{},"message":{},"data":{{"outcome":"{}","reason":{}}}}})", code,
                     json::encode_string(message), to_string(outcome), json::encode_string(reason));
}

std::string encode_error(std::string_view raw_id, int code, std::string_view message, Outcome outcome,
                         std::string_view reason) {
  return fmt::format(R"({{"jsonrpc":"2.0","id":{},"error":{}}})", raw_id,
                     encode_error_object(code, message, outcome, reason));
}

std::string encode_ping_result(std::string_view tools_digest) {
  return fmt::format(R"({{"_meta":{{"{}":{}}}}})", tools_meta_key, json::encode_string(tools_digest));
}

std::string encode_progress(std::string_view raw_token, std::uint64_t progress, std::string_view message) {
  return fmt::format(
      R"({{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"progress":{},"message":{}}}}})",
      raw_token, progress, json::encode_string(message));
}

}  // namespace hive::protocol
