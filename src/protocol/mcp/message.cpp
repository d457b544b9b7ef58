#include "protocol/mcp/message.h"

#include <utility>

#include "protocol/agent_protocol.h"

namespace hive::mcp {

namespace {

constexpr std::size_t max_id_bytes = 256;
constexpr std::size_t max_method_bytes = 256;
constexpr std::size_t max_batch = 64;

using Members = std::vector<json::Member>;

Fault fault(int code, std::string message) {
  return {.code = code, .message = std::move(message)};
}

Fault no_json(const Error& error, std::string_view text) {
  Fault wrong = fault(protocol::parse_error_code, error.message);
  if (text.starts_with("\xef\xbb\xbf")) wrong.message = "the text begins with a byte order mark; send it without";
  if (text.size() > message_limits.max_bytes) wrong.http_status = 413;
  return wrong;
}

Fault no_message(std::string message, std::string_view id = {}) {
  Fault wrong = fault(protocol::invalid_request_code, std::move(message));
  wrong.id = id;
  return wrong;
}

// A JSON integer has no fraction and no exponent; its size does not matter, as it is only echoed.
bool is_integer(std::string_view raw) {
  if (raw.starts_with('-')) raw.remove_prefix(1);
  return !raw.empty() && raw.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_acceptable_id(std::string_view raw) {
  return raw.size() <= max_id_bytes && (json::is_string(raw) || is_integer(raw));
}

std::expected<Message, Fault> parse_call(const Members& members, std::string_view raw_method,
                                         std::optional<std::string_view> id) {
  Message message{.kind = id ? MessageKind::request : MessageKind::notification, .id = id.value_or("")};
  if (json::find(members, "result") || json::find(members, "error"))
    return std::unexpected(no_message("a message with a method has neither result nor error", message.id));
  std::optional<std::string> method = json::decode_string(raw_method);
  if (!method || method->empty() || method->size() > max_method_bytes)
    return std::unexpected(no_message("\"method\" must be a string of 1 to 256 bytes", message.id));
  message.method = *std::move(method);
  if (auto params = json::find(members, "params")) {
    if (!json::is_object(*params)) {
      Fault wrong = fault(protocol::invalid_params_code, "\"params\" must be an object");
      wrong.id = message.id;
      return std::unexpected(std::move(wrong));
    }
    message.params = *params;
  }
  return message;
}

std::expected<Message, Fault> parse_answer(const Members& members, std::optional<std::string_view> id) {
  std::optional<std::string_view> result = json::find(members, "result");
  std::optional<std::string_view> error = json::find(members, "error");
  if (!result && !error)
    return std::unexpected(no_message("a message needs \"method\", \"result\" or \"error\"", id.value_or("")));
  if (result && error)
    return std::unexpected(no_message("a response has either a result or an error", id.value_or("")));
  std::string_view body = result ? *result : *error;
  if (!json::is_object(body))
    return std::unexpected(
        no_message(result ? "\"result\" must be an object" : "\"error\" must be an object", id.value_or("")));
  if (result && !id) return std::unexpected(no_message("a result needs the id of its request"));
  return Message{
      .kind = result ? MessageKind::response : MessageKind::error_response, .id = id.value_or(""), .body = body};
}

}  // namespace

std::expected<Message, Fault> parse_message(std::string_view text) {
  if (is_batch(text)) {
    if (Result<void> valid = json::validate(text, message_limits); !valid)
      return std::unexpected(no_json(valid.error(), text));
    return std::unexpected(no_message("batches are not part of this revision; send one message at a time"));
  }
  Result<Members> members = json::parse_object(text, message_limits);
  if (!members) {
    // What is JSON, but no object, is no message; only now, as one pass is enough for all that is right.
    if (json::validate(text, message_limits)) return std::unexpected(no_message("a message must be a JSON object"));
    return std::unexpected(no_json(members.error(), text));
  }

  std::optional<std::string_view> id = json::find(*members, "id");
  std::optional<std::string_view> method = json::find(*members, "method");
  if (id && json::is_null(*id) && !method && json::find(*members, "error")) id.reset();
  if (id && !is_acceptable_id(*id))
    return std::unexpected(no_message("\"id\" must be a string or an integer of at most 256 bytes"));
  std::optional<std::string_view> version = json::find(*members, "jsonrpc");
  if (!version || json::decode_string(*version) != "2.0")
    return std::unexpected(no_message("\"jsonrpc\" must be \"2.0\"", id.value_or("")));
  return method ? parse_call(*members, *method, id) : parse_answer(*members, id);
}

bool is_batch(std::string_view text) {
  std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '[';
}

std::expected<std::vector<std::string_view>, Fault> split_batch(std::string_view text) {
  Result<std::vector<std::string_view>> elements = json::parse_array(text, message_limits);
  if (!elements) {
    if (json::validate(text, message_limits)) return std::unexpected(no_message("a batch must be a JSON array"));
    return std::unexpected(no_json(elements.error(), text));
  }
  if (elements->empty()) return std::unexpected(no_message("a batch must not be empty"));
  if (elements->size() > max_batch)
    return std::unexpected(no_message(fmt::format("a batch has at most {} messages", max_batch)));
  return *std::move(elements);
}

std::string id_key(std::string_view raw_id) {
  if (std::optional<std::string> text = json::decode_string(raw_id)) return "s" + *text;
  return raw_id == "-0" ? "i0" : "i" + std::string(raw_id);
}

}  // namespace hive::mcp
