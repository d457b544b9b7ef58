#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/json.h"

namespace hive::priv {

/// The text of a JSON object, member by member.
class JsonObject {
 public:
  JsonObject& raw(std::string_view key, std::string_view value) {
    if (text_.size() > 1) text_ += ',';
    json::append_string(text_, key);
    text_ += ':';
    text_ += value;
    return *this;
  }
  JsonObject& text(std::string_view key, std::string_view value) { return raw(key, json::encode_string(value)); }
  JsonObject& number(std::string_view key, std::uint64_t value) { return raw(key, std::to_string(value)); }
  JsonObject& flag(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  [[nodiscard]] std::string take() { return std::exchange(text_, "{") + '}'; }

 private:
  std::string text_ = "{";
};

}  // namespace hive::priv
