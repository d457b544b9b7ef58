#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/json.h"

namespace hive::rest {

/// Appends members to an object that is open; the caller writes the braces. Keys are plain words of ours.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) {}

  ObjectWriter& raw(std::string_view key, std::string_view value) {
    begin(key);
    out_ += value;
    return *this;
  }
  ObjectWriter& text(std::string_view key, std::string_view value) {
    begin(key);
    json::append_string(out_, value);
    return *this;
  }
  ObjectWriter& boolean(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  ObjectWriter& number(std::string_view key, std::uint64_t value) { return raw(key, std::to_string(value)); }
  ObjectWriter& texts(std::string_view key, const std::vector<std::string>& values) {
    begin(key);
    out_ += '[';
    for (const std::string& value : values) {
      if (!out_.ends_with('[')) out_ += ',';
      json::append_string(out_, value);
    }
    out_ += ']';
    return *this;
  }

 private:
  void begin(std::string_view key) {
    if (!out_.ends_with('{')) out_ += ',';
    json::append_string(out_, key);
    out_ += ':';
  }

  std::string& out_;
};

}  // namespace hive::rest
