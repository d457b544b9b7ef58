#include "agent/arguments.h"

namespace hive::agent {

Result<Arguments> Arguments::parse(std::string_view raw, std::string_view tool, bool may_be_absent) {
  Arguments arguments;
  arguments.tool_ = tool;
  if (raw.empty()) {
    if (may_be_absent) return arguments;
    return fail(ErrorCode::invalid_argument, "{}: \"arguments\" is missing", tool);
  }
  if (json::is_null(raw)) return arguments;
  if (!json::is_object(raw)) {
    return fail(ErrorCode::invalid_argument, "{}: \"arguments\" must be an object", tool);
  }
  arguments.members_ = TRY_CONTEXT(tool, json::parse_object(raw, {.max_bytes = raw.size()}));
  return arguments;
}

std::optional<std::string_view> Arguments::find(std::string_view key) const {
  auto value = json::find(members_, key);
  if (value && json::is_null(*value)) return std::nullopt;
  return value;
}

Result<std::optional<std::string>> Arguments::string(std::string_view key) const {
  auto raw = find(key);
  if (!raw) return std::nullopt;
  auto text = json::decode_string(*raw);
  if (!text) return fail(ErrorCode::invalid_argument, "{}: \"{}\" must be a string", tool_, key);
  return text;
}

Result<std::string> Arguments::required_string(std::string_view key) const {
  std::optional<std::string> text = TRY(string(key));
  if (!text) return fail(ErrorCode::invalid_argument, "{}: \"{}\" is missing", tool_, key);
  return *std::move(text);
}

Result<std::optional<std::int64_t>> Arguments::integer(std::string_view key) const {
  auto raw = find(key);
  if (!raw) return std::nullopt;
  auto number = json::decode_integer(*raw);
  if (!number) return fail(ErrorCode::invalid_argument, "{}: \"{}\" must be an integer", tool_, key);
  return number;
}

Result<bool> Arguments::boolean(std::string_view key) const {
  auto raw = find(key);
  if (!raw) return false;
  auto value = json::decode_boolean(*raw);
  if (!value) return fail(ErrorCode::invalid_argument, "{}: \"{}\" must be true or false", tool_, key);
  return *value;
}

Result<std::vector<std::string>> Arguments::strings(std::string_view key) const {
  std::vector<std::string> texts;
  auto raw = find(key);
  if (!raw) return texts;
  if (!json::is_array(*raw)) {
    return fail(ErrorCode::invalid_argument, "{}: \"{}\" must be an array of strings", tool_, key);
  }
  for (std::string_view element : TRY_CONTEXT(tool_, json::parse_array(*raw, {.max_bytes = raw->size()}))) {
    auto text = json::decode_string(element);
    if (!text) {
      return fail(ErrorCode::invalid_argument, "{}: element {} of \"{}\" must be a string", tool_, texts.size(), key);
    }
    texts.push_back(*std::move(text));
  }
  return texts;
}

}  // namespace hive::agent
