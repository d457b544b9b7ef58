#include "cli/event_stream.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hive::cli {
namespace {

std::vector<std::string> events_of(std::string_view text, size_t piece_bytes) {
  std::vector<std::string> events;
  EventStreamReader reader([&events](std::string_view name, std::string_view data) {
    events.push_back(std::string(name) + "|" + std::string(data));
  });
  for (size_t at = 0; at < text.size(); at += piece_bytes)
    EXPECT_TRUE(reader.feed(text.substr(at, piece_bytes)));
  return events;
}

TEST(EventStreamReader, ReadsEventsHoweverTheyAreCut) {
  std::string_view text =
      ": heartbeat\n\nevent: progress\ndata: {\"a\":1}\n\n"
      "data:no space\r\ndata: second line\r\n\r\n"
      "event: result\rdata: last\r\rid: 7\nevent: empty\n\n";
  std::vector<std::string> expected = {"progress|{\"a\":1}", "message|no space\nsecond line", "result|last"};
  for (size_t piece_bytes : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, text.size()})
    EXPECT_EQ(events_of(text, piece_bytes), expected) << piece_bytes;
}

TEST(EventStreamReader, AnEventWithoutItsEmptyLineIsNotComplete) {
  EXPECT_TRUE(events_of("event: result\ndata: half", 4).empty());
}

TEST(EventStreamReader, StopsAtAnEventThatIsTooLarge) {
  EventStreamReader reader([](std::string_view, std::string_view) {}, 1000);
  std::string piece(600, 'x');
  EXPECT_TRUE(reader.feed("data: " + piece));
  EXPECT_FALSE(reader.feed(piece));
  EXPECT_FALSE(reader.feed("\n\n")) << "it stays broken";

  EventStreamReader lines([](std::string_view, std::string_view) {}, 1000);
  EXPECT_TRUE(lines.feed("data: " + piece + "\n"));
  EXPECT_FALSE(lines.feed("data: " + piece + "\n"));
}

}  // namespace
}  // namespace hive::cli
