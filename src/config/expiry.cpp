#include "config/expiry.h"

#include <algorithm>
#include <chrono>

namespace hive::config {

std::optional<WallTime> parse_utc_time(std::string_view text) {
  constexpr std::string_view shape = "dddd-dd-ddTdd:dd:ddZ";
  auto fits = [](char wanted, char c) { return wanted == 'd' ? c >= '0' && c <= '9' : c == wanted; };
  if (text.size() != shape.size() || !std::ranges::equal(shape, text, fits)) return std::nullopt;
  auto number = [text](std::size_t at, std::size_t digits) {
    int value = 0;
    for (char digit : text.substr(at, digits)) {
      value = value * 10 + (digit - '0');
    }
    return value;
  };
  int year = number(0, 4);
  int hour = number(11, 2);
  int minute = number(14, 2);
  int second = number(17, 2);
  std::chrono::year_month_day day(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                  std::chrono::day(static_cast<unsigned>(number(8, 2))));
  if (!day.ok() || year < 1970 || year > 2200 || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return std::chrono::sys_days(day) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

}  // namespace hive::config
