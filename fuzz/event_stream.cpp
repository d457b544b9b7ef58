// A stream of server-sent events: first byte how large the pieces are, the rest the stream. Where the pieces end makes
// no difference, and nothing that is handed over or held is larger than allowed.
#include <string>
#include <vector>

#include "fuzz_target.h"
#include "net/http/event_stream_reader.h"

namespace {

using namespace hive;

constexpr std::size_t max_event_bytes = 256;

struct Reading {
  std::vector<std::string> events;
  std::string last_id;
  bool is_complete = true;
};

Reading read(std::string_view text, std::size_t piece_bytes) {
  Reading reading;
  net::http::EventStreamReader reader(
      [&](const net::http::StreamEvent& event) {
        CHECK(event.data.size() <= max_event_bytes && event.name.size() <= max_event_bytes);
        CHECK(event.id.find_first_of(std::string_view("\0\r\n", 3)) == std::string_view::npos);
        reading.events.push_back(std::string(event.name) + "|" + std::string(event.data) + "|" + std::string(event.id));
      },
      max_event_bytes);
  while (!text.empty() && reading.is_complete) {
    std::string_view piece = text.substr(0, piece_bytes);
    reading.is_complete = reader.feed(piece);
    CHECK(!reading.is_complete || reader.pending_bytes() <= max_event_bytes + 1);
    text.remove_prefix(piece.size());
  }
  if (reader.retry()) CHECK(reader.retry()->count() >= 0);
  reading.last_id = reader.last_id();
  return reading;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view text = fuzz::as_text(data, size).substr(1);
  Reading whole = read(text, text.size());
  Reading pieces = read(text, 1 + data[0] % 16);
  CHECK(whole.events == pieces.events);
  CHECK(whole.last_id == pieces.last_id);
  CHECK(whole.is_complete == pieces.is_complete);
  return 0;
}
