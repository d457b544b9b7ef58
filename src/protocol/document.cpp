#include "protocol/document.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace hive::json {

Result<boost::json::value> parse(std::string_view text, const Limits& limits) {
  TRY(validate(text, limits));
  boost::json::parse_options options;
  options.max_depth = static_cast<unsigned>(limits.max_depth) + 1;
  boost::system::error_code error;
  boost::json::value value = boost::json::parse(boost::json::string_view(text.data(), text.size()), error, {}, options);
  if (error) return fail(ErrorCode::invalid_argument, "not acceptable JSON: {}", error.message());
  return value;
}

namespace {

void append_pretty(std::string& out, const boost::json::value& value, size_t indent) {
  auto new_line = [&out](size_t depth) {
    out += '\n';
    out.append(depth * 2, ' ');
  };
  if (const boost::json::object* object = value.if_object(); object != nullptr && !object->empty()) {
    out += '{';
    bool first = true;
    for (const auto& [key, member] : *object) {
      if (!first) out += ',';
      first = false;
      new_line(indent + 1);
      append_string(out, std::string_view(key.data(), key.size()));
      out += ": ";
      append_pretty(out, member, indent + 1);
    }
    new_line(indent);
    out += '}';
  } else if (const boost::json::array* array = value.if_array(); array != nullptr && !array->empty()) {
    out += '[';
    bool first = true;
    for (const boost::json::value& element : *array) {
      if (!first) out += ',';
      first = false;
      new_line(indent + 1);
      append_pretty(out, element, indent + 1);
    }
    new_line(indent);
    out += ']';
  } else if (const boost::json::string* text = value.if_string()) {
    append_string(out, std::string_view(text->data(), text->size()));
  } else {
    out += boost::json::serialize(value);
  }
}

}  // namespace

std::string to_pretty_text(const boost::json::value& value) {
  std::string text;
  append_pretty(text, value, 0);
  text += '\n';
  return text;
}

}  // namespace hive::json
