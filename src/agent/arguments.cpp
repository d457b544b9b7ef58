#include "agent/arguments.h"

#include "base/strings.h"
#include "base/utf8.h"
#include "protocol/tools.h"

namespace hive::agent {

namespace {

// What a tool's input schema says of its arguments. The views into keys live as long as the object.
struct KnownArguments {
  std::vector<json::Member> properties;
  std::vector<std::string> required;
};

Result<KnownArguments> known_arguments(std::string_view tool) {
  KnownArguments known;
  const protocol::ToolDescription* description = protocol::find_builtin_tool(tool);
  if (description == nullptr) return fail(ErrorCode::internal, "{}: the tool is not described", tool);
  std::vector<json::Member> schema = TRY(json::parse_object(description->input_schema));
  if (auto properties = json::find(schema, "properties")) known.properties = TRY(json::parse_object(*properties));
  if (auto required = json::find(schema, "required")) {
    for (std::string_view name : TRY(json::parse_array(*required)))
      known.required.push_back(json::decode_string(name).value_or(""));
  }
  return known;
}

Error unknown_argument(std::string_view key, const KnownArguments& known) {
  std::vector<std::string_view> names;
  std::string listed;
  for (const json::Member& property : known.properties) {
    names.emplace_back(property.key);
    if (!listed.empty()) listed += ", ";
    listed += property.key;
  }
  std::string message = fmt::format("unknown argument {}", quote(utf8::truncate(key, 100)));
  if (auto meant = key.size() <= 100 ? nearest_name(key, names) : std::nullopt) {
    message += fmt::format("; did you mean \"{}\"?", *meant);
  } else {
    message += names.empty() ? "; the tool takes none" : "; the tool takes " + listed;
  }
  return {ErrorCode::invalid_argument, std::move(message)};
}

}  // namespace

Result<Arguments> Arguments::parse(std::string_view raw, std::string_view tool, bool may_be_absent) {
  Arguments arguments;
  arguments.tool_ = tool;
  if (raw.empty()) {
    if (may_be_absent) return arguments;
    return fail(ErrorCode::invalid_argument, "{}: \"arguments\" is missing", tool);
  }
  if (!json::is_null(raw)) {
    if (!json::is_object(raw)) {
      return fail(ErrorCode::invalid_argument, "{}: \"arguments\" must be an object", tool);
    }
    arguments.members_ = TRY_CONTEXT(tool, json::parse_object(raw, {.max_bytes = raw.size()}));
  }
  KnownArguments known = TRY(known_arguments(tool));
  for (const json::Member& member : arguments.members_) {
    if (!json::find(known.properties, member.key)) return std::unexpected(unknown_argument(member.key, known));
  }
  for (const std::string& name : known.required) {
    if (!arguments.find(name)) return fail(ErrorCode::invalid_argument, "argument \"{}\" is missing", name);
  }
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
  if (!text) return fail(ErrorCode::invalid_argument, "argument \"{}\" is missing", key);
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
