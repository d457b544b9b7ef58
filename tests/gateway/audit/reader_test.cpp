#include "gateway/audit/reader.h"

#include <filesystem>
#include <thread>

#include <gmock/gmock.h>

#include "gateway/audit/entry.h"
#include "gateway/audit/support.h"

namespace hive::audit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AuditReader : public LogTest {
 protected:
  std::vector<std::string> call_ids(const Query& query) {
    auto page = read_entries(options_.path, query);
    EXPECT_TRUE(page) << page.error().message;
    std::vector<std::string> ids;
    if (page) {
      for (const std::string& line : page->entries)
        ids.push_back(EntryView::parse(line)->text(Field::call_id));
    }
    return ids;
  }

  void write_many(int count, size_t arguments_bytes) {
    auto log = open_good();
    ASSERT_TRUE(log);
    for (int i = 0; i < count; ++i) {
      Record made = record("step", std::to_string(i));
      made.agent = i % 10 == 0 ? "rare" : "often";
      made.arguments = std::string(arguments_bytes, 'x');
      ASSERT_TRUE(log->append(made));
      if (i % 100 == 0) {
        ASSERT_TRUE(log->flush());
      }
    }
  }
};

TEST_F(AuditReader, GivesTheNewestFirst) {
  write_batches(5);
  EXPECT_THAT(call_ids({}), ElementsAre("4", "3", "2", "1", "0"));
  EXPECT_THAT(call_ids({.limit = 2}), ElementsAre("4", "3"));
  EXPECT_THAT(call_ids({.limit = 0}), ElementsAre("4"));
}

TEST_F(AuditReader, AnEmptyLogHasAnEmptyPage) {
  write_batches(0);
  auto page = read_entries(options_.path, {});
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->entries.empty());
  EXPECT_FALSE(page->before_seq);
  EXPECT_FALSE(read_entries(folder_.path("missing"), {}));
}

TEST_F(AuditReader, PagesCoverEverythingOnceHoweverLongTheLogIs) {
  write_many(3000, 600);  // some 2 MB, so that both halving and reading in pieces happen
  std::vector<std::string> all;
  Query query{.limit = 700};
  int pages = 0;
  while (true) {
    auto page = read_entries(options_.path, query);
    ASSERT_TRUE(page) << page.error().message;
    ++pages;
    for (const std::string& line : page->entries)
      all.push_back(EntryView::parse(line)->text(Field::call_id));
    if (!page->before_seq) break;
    query.before_seq = page->before_seq;
  }
  EXPECT_EQ(pages, 5);
  ASSERT_EQ(all.size(), 3000u);
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i], std::to_string(2999 - i));
}

TEST_F(AuditReader, StartsAnywhereInTheLog) {
  write_many(3000, 600);
  for (std::uint64_t before : {0, 1, 2, 99, 100, 101, 1500, 2999, 3000, 999999}) {
    auto ids = call_ids({.before_seq = before, .limit = 1});
    if (before == 0) {
      EXPECT_TRUE(ids.empty());
    } else {
      EXPECT_THAT(ids, ElementsAre(std::to_string(std::min<std::uint64_t>(before, 3000) - 1))) << before;
    }
  }
}

TEST_F(AuditReader, FiltersByEveryField) {
  {
    auto log = open_good();
    ASSERT_TRUE(log);
    Record made = record("tool_call", "1");
    made.agent = "edge-1";
    made.tool = "run_command";
    ASSERT_TRUE(log->append(made));
    made = outcome("2", protocol::Outcome::denied);
    made.principal = "bob \"the\" builder";
    made.reason = "own_request";
    ASSERT_TRUE(log->append(made));
    ASSERT_TRUE(log->append(record("agent_online", "3")));
  }
  EXPECT_THAT(call_ids({.principal = "ann"}), ElementsAre("3", "1"));
  EXPECT_THAT(call_ids({.principal = "bob \"the\" builder"}), ElementsAre("2"));
  EXPECT_THAT(call_ids({.agent = "edge-1"}), ElementsAre("1"));
  EXPECT_THAT(call_ids({.action = "agent_online"}), ElementsAre("3"));
  EXPECT_THAT(call_ids({.tool = "run_command"}), ElementsAre("1"));
  EXPECT_THAT(call_ids({.call_id = "2"}), ElementsAre("2"));
  EXPECT_THAT(call_ids({.reason = "own_request"}), ElementsAre("2"));
  EXPECT_THAT(call_ids({.reason = "own"}), ElementsAre());
  EXPECT_THAT(call_ids({.outcome = protocol::Outcome::denied}), ElementsAre("2"));
  EXPECT_THAT(call_ids({.agent = "edge-1", .outcome = protocol::Outcome::denied}), ElementsAre());
}

TEST_F(AuditReader, FiltersByTime) {
  ManualClock clock;
  options_.clock = &clock;
  {
    auto log = open_good();
    ASSERT_TRUE(log);
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(log->append(record("step", std::to_string(i))));  // 08:00:00, 08:20:00, ...
      clock.advance(std::chrono::minutes(20));
    }
  }
  EXPECT_THAT(call_ids({.since = "2027-01-15T08:20:00Z"}), ElementsAre("3", "2", "1"));
  EXPECT_THAT(call_ids({.until = "2027-01-15T08:20:00Z"}), ElementsAre("1", "0"));
  EXPECT_THAT(call_ids({.since = "2027-01-15T08:01", .until = "2027-01-15T08:40"}), ElementsAre("2", "1"));
  EXPECT_THAT(call_ids({.since = "2027-01-16"}), ElementsAre());
  auto wrong = read_entries(options_.path, {.since = "yesterday"});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("since"));
}

TEST_F(AuditReader, LeavesOutWhatNoCheckpointCovers) {
  write_batches(2);
  replace_content(content() + R"({"seq":2,"time":"t","kind":"event","call_id":"2"})" + "\n{\"seq\":3,");
  EXPECT_THAT(call_ids({}), ElementsAre("1", "0"));
}

TEST_F(AuditReader, LinesLongerThanAPieceAreRead) {
  {
    options_.max_arguments_bytes = 131072;
    auto log = open_good();
    ASSERT_TRUE(log);
    for (int i = 0; i < 4; ++i) {
      Record made = record("step", std::to_string(i));
      made.arguments = std::string(30000, '\x01');
      ASSERT_TRUE(log->append(made));
    }
  }
  EXPECT_THAT(call_ids({}), ElementsAre("3", "2", "1", "0"));
  EXPECT_THAT(call_ids({.before_seq = 2}), ElementsAre("1", "0"));
}

TEST_F(AuditReader, ReadsALogThatIsBeingWritten) {
  auto log = open_good();
  ASSERT_TRUE(log);
  std::jthread writer([&](std::stop_token stop) {
    for (int i = 0; !stop.stop_requested(); ++i)
      (void)log->append(record("step", std::to_string(i)));
  });
  for (int i = 0; i < 50; ++i) {
    auto page = read_entries(options_.path, {.limit = 5});
    ASSERT_TRUE(page) << page.error().message;
    for (const std::string& line : page->entries)
      EXPECT_TRUE(EntryView::parse(line));
  }
}

TEST_F(AuditReader, FindsTheNewestSshSignature) {
  write_batches(3);
  auto sealed = read_ssh_signed_checkpoint(options_.path);
  ASSERT_TRUE(sealed) << sealed.error().message;
  EXPECT_EQ(sealed->checkpoint.size, 3u);
  EXPECT_TRUE(verify_checkpoint(*sealed, key_.public_key()));
}

TEST(TimePrefix, IsATimeInUtcOrItsBeginning) {
  for (std::string_view good : {"2026", "2026-11", "2026-11-30", "2026-11-30T12:57", "2026-11-30T12:57:23Z",
                                "2026-11-30T12:57:23.123Z", "2026-11-30T12:57:23.123456789Z"})
    EXPECT_TRUE(is_time_prefix(good)) << good;
  for (std::string_view bad : {"", "Z", "yesterday", "202", "----", "2026/11/30", "2026-11-30 12:57", "20261130",
                               "2026-11-30T12:57:23+01:00", "2026-11-30T12:57:23ZZ", "2026-11-30T12:57:23.1234567890Z"})
    EXPECT_FALSE(is_time_prefix(bad)) << bad;
}

}  // namespace
}  // namespace hive::audit
