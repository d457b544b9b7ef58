#include "cli/json_fields.h"

namespace hive::cli {

Result<JsonFields> JsonFields::parse(std::string_view text, std::string_view what) {
  auto members = json::parse_object(text, answer_limits);
  if (!members) return fail(ErrorCode::corrupt, "the gateway's {} cannot be read: {}", what, members.error().message);
  return JsonFields(*std::move(members));
}

std::string_view JsonFields::raw(std::string_view key) const {
  auto value = json::find(members_, key);
  return value && !json::is_null(*value) ? *value : std::string_view();
}

std::string JsonFields::text(std::string_view key) const {
  return json::decode_string(raw(key)).value_or("");
}

std::int64_t JsonFields::number(std::string_view key) const {
  return json::decode_integer(raw(key)).value_or(0);
}

bool JsonFields::flag(std::string_view key) const {
  return json::decode_boolean(raw(key)).value_or(false);
}

std::vector<std::string_view> JsonFields::elements(std::string_view key) const {
  std::string_view value = raw(key);
  auto elements = json::is_array(value) ? json::parse_array(value, answer_limits) : std::vector<std::string_view>();
  return elements ? *std::move(elements) : std::vector<std::string_view>();
}

std::vector<std::string> JsonFields::texts(std::string_view key) const {
  std::vector<std::string> texts;
  for (std::string_view element : elements(key)) {
    if (auto text = json::decode_string(element)) texts.push_back(*std::move(text));
  }
  return texts;
}

}  // namespace hive::cli
