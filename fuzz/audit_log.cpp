// The lines of an audit log, as whoever verifies it reads them.
#include "base/strings.h"
#include "fuzz_target.h"
#include "gateway/audit/chain.h"
#include "gateway/audit/entry.h"
#include "protocol/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hive;
  std::string_view text = fuzz::as_text(data, size);
  audit::Chain chain;
  std::uint64_t entries = 0;
  for (std::string_view line : split(text, '\n')) {
    if (Result<audit::EntryView> entry = audit::EntryView::parse(line)) {
      // What we take for an entry, every strict JSON reader takes for the same object.
      Result<std::vector<json::Member>> members = json::parse_object(line);
      CHECK(members.has_value());
      for (std::size_t i = 0; i < audit::field_count; ++i) {
        auto field = static_cast<audit::Field>(i);
        CHECK(json::find(*members, audit::to_string(field)).value_or("") == entry->raw(field));
      }
      for (std::size_t i = 0; i < audit::field_count; ++i) {
        (void)entry->text(static_cast<audit::Field>(i));
      }
    }
    Result<audit::Chain::Line> added = chain.add(line);
    if (!added) break;
    if (*added == audit::Chain::Line::entry) CHECK(chain.entry().seq() == entries++);
    CHECK(chain.entries() == entries);
  }
  return 0;
}
