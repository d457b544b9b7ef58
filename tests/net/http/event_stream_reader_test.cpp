#include "net/http/event_stream_reader.h"

#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hive::net::http {
namespace {

using testing::ElementsAre;
using Event = std::tuple<std::string, std::string, std::string>;

struct Collector {
  std::vector<Event> events;
  EventStreamReader reader;
  explicit Collector(std::size_t max_bytes = 1000)
      : reader([this](const StreamEvent& event) { events.emplace_back(event.name, event.data, event.id); }, max_bytes) {
  }
};

TEST(EventStreamReader, ReadsNamesDataAndIds) {
  Collector all;
  EXPECT_TRUE(all.reader.feed("id: 7\nevent: endpoint\ndata: /message?x=1\n\ndata:two\ndata: lines\n\n"));
  EXPECT_THAT(all.events, ElementsAre(Event("endpoint", "/message?x=1", "7"), Event("message", "two\nlines", "7")));
}

TEST(EventStreamReader, DoesNotMindWhereThePiecesEnd) {
  std::string text = "\xEF\xBB\xBF: hello\r\nid: a\r\ndata: {\"x\":1}\r\n\r\nevent: b\rdata: 2\r\r";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    Collector all;
    for (std::size_t at = 0; at < text.size(); at += size)
      EXPECT_TRUE(all.reader.feed(std::string_view(text).substr(at, size)));
    EXPECT_THAT(all.events, ElementsAre(Event("message", "{\"x\":1}", "a"), Event("b", "2", "a"))) << size;
  }
}

TEST(EventStreamReader, HandsOverNoEventWithoutDataAndNoneThatIsIncomplete) {
  Collector all;
  EXPECT_TRUE(all.reader.feed("event: nothing\n\nid: 3\n\ndata: cut"));
  EXPECT_TRUE(all.events.empty());
  EXPECT_EQ(all.reader.last_id(), "3") << "an event without data still moves the position";
}

TEST(EventStreamReader, MovesThePositionOnlyBehindACompleteEvent) {
  Collector all;
  EXPECT_TRUE(all.reader.feed("id: 1\ndata: a\n\nid: 2\ndata: half"));
  EXPECT_EQ(all.reader.last_id(), "1") << "a resumption must bring the half event again";
}

TEST(EventStreamReader, KnowsHowLongTheServerWantsToBeLeftAlone) {
  Collector all;
  EXPECT_TRUE(all.reader.feed("retry: soon\nretry: -5\n"));
  EXPECT_FALSE(all.reader.retry());
  EXPECT_TRUE(all.reader.feed("retry: 250\n\n"));
  EXPECT_EQ(all.reader.retry(), std::chrono::milliseconds(250));
}

TEST(EventStreamReader, StopsAtAnEventThatIsTooLarge) {
  Collector line(100);
  EXPECT_FALSE(line.reader.feed("data: " + std::string(200, 'x')));
  EXPECT_FALSE(line.reader.feed("\n\ndata: y\n\n"));
  EXPECT_TRUE(line.events.empty());
  Collector many(100);
  bool goes_on = true;
  for (int i = 0; i < 100 && goes_on; ++i)
    goes_on = many.reader.feed("data: 0123456789\n");
  EXPECT_FALSE(goes_on) << "many short lines make a large event as well";
}

TEST(EventStreamReader, IgnoresIdsThatNoHeaderCouldCarry) {
  Collector all;
  EXPECT_TRUE(all.reader.feed(std::string("id: a\0b\ndata: x\n\n", 16)));
  EXPECT_EQ(all.reader.last_id(), "");
  Collector longer(10'000);
  EXPECT_TRUE(longer.reader.feed("id: " + std::string(2000, 'i') + "\ndata: x\n\n"));
  EXPECT_EQ(longer.reader.last_id(), "");
}

}  // namespace
}  // namespace hive::net::http
