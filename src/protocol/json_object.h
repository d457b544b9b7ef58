#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/json.h"

namespace hive::json {

/// The text of a JSON object, member by member.
class ObjectText {
 public:
  ObjectText& raw(std::string_view key, std::string_view value) {
    if (text_.size() > 1) text_ += ',';
    append_string(text_, key);
    text_ += ':';
    text_ += value;
    return *this;
  }
  ObjectText& text(std::string_view key, std::string_view value) { return raw(key, encode_string(value)); }
  ObjectText& boolean(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  ObjectText& number(std::string_view key, std::integral auto value) { return raw(key, std::to_string(value)); }
  ObjectText& texts(std::string_view key, std::span<const std::string> values) {
    std::string array = "[";
    for (const std::string& value : values) {
      if (array.size() > 1) array += ',';
      append_string(array, value);
    }
    return raw(key, array + ']');
  }
  [[nodiscard]] std::string take() { return std::exchange(text_, "{") + '}'; }

 private:
  std::string text_ = "{";
};

}  // namespace hive::json
