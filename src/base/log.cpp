#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/strings.h"

namespace hive::log {

namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warning:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto created = std::make_shared<spdlog::logger>("hive", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    created->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc);
    created->set_level(spdlog::level::info);
    created->flush_on(spdlog::level::trace);
    return created;
  }();
  return *instance;
}

bool is_plain_word(std::string_view text) {
  if (text.empty()) return false;
  for (char c : text) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 std::string_view("-_./:@+%,[]").find(c) != std::string_view::npos;
    if (!plain) return false;
  }
  return true;
}

}  // namespace

void set_level(Level level) {
  logger().set_level(to_spdlog(level));
}

bool set_level(std::string_view name) {
  for (Level level : {Level::debug, Level::info, Level::warning, Level::error}) {
    constexpr std::string_view names[] = {"debug", "info", "warning", "error"};
    if (names[static_cast<size_t>(level)] == name) {
      set_level(level);
      return true;
    }
  }
  return false;
}

bool enabled(Level level) {
  return logger().should_log(to_spdlog(level));
}

void write(Level level, std::string_view message, std::initializer_list<Field> fields) {
  if (!enabled(level)) return;
  std::string line = escape_for_terminal(message);
  for (const Field& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    if (is_plain_word(field.value)) {
      line += field.value;
    } else {
      line += quote(field.value);
    }
  }
  logger().log(to_spdlog(level), "{}", line);
}

}  // namespace hive::log
