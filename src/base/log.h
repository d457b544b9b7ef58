#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

/// Structured logs to standard error: one line an event, key=value fields, text from elsewhere escaped.
/// Never pass a secret; nothing here can know that it is one.
namespace hive::log {

enum class Level { debug, info, warning, error };

/// One key=value pair of a log line. Values are escaped when they are not plain words.
struct Field {
  std::string_view key;
  std::string value;

  template <class T>
  Field(std::string_view field_key, const T& field_value) : key(field_key), value(fmt::format("{}", field_value)) {}
};

/// Sets the lowest level that is written; the default is info.
void set_level(Level level);

/// "debug", "info", "warning" or "error"; anything else leaves the level and returns false.
bool set_level(std::string_view name);

[[nodiscard]] bool enabled(Level level);

/// Writes one line. Thread-safe; does not throw.
void write(Level level, std::string_view message, std::initializer_list<Field> fields = {});

inline void debug(std::string_view message, std::initializer_list<Field> fields = {}) {
  write(Level::debug, message, fields);
}
inline void info(std::string_view message, std::initializer_list<Field> fields = {}) {
  write(Level::info, message, fields);
}
inline void warning(std::string_view message, std::initializer_list<Field> fields = {}) {
  write(Level::warning, message, fields);
}
inline void error(std::string_view message, std::initializer_list<Field> fields = {}) {
  write(Level::error, message, fields);
}

}  // namespace hive::log
