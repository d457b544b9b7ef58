#include "gateway/store/agent_table.h"

#include <gtest/gtest.h>

#include "crypto/scratch_folder.h"
#include "gateway/store/database.h"

namespace hive::store {
namespace {

class AgentTableTest : public ::testing::Test {
 protected:
  AgentTableTest() {
    auto opened = Database::open(folder_.path("hive.db"));
    EXPECT_TRUE(opened) << opened.error().message;
    database_ = *std::move(opened);
  }

  static AgentRow row(std::string id) {
    AgentRow row;
    row.id = std::move(id);
    row.address = "192.0.2.1";
    row.services = R"(["nginx"])";
    row.first_seen = WallTime(std::chrono::milliseconds(1'800'000'000'123));
    row.connections = 3;
    return row;
  }

  Result<void> write(const std::vector<AgentRow>& rows, const std::vector<std::string>& forgotten) {
    Result<void> written;
    database_->run([&](Connection& connection) { written = AgentTable(connection).write(rows, forgotten); });
    return written;
  }

  std::vector<AgentRow> load() {
    Result<std::vector<AgentRow>> rows;
    database_->run([&](Connection& connection) { rows = AgentTable(connection).load(); });
    EXPECT_TRUE(rows);
    return rows ? *rows : std::vector<AgentRow>();
  }

  test::ScratchFolder folder_;
  std::unique_ptr<Database> database_;
};

TEST_F(AgentTableTest, KeepsEachAgentOnceAsItWasWrittenLast) {
  AgentRow later = row("edge-1");
  later.offline_since = WallTime(std::chrono::milliseconds(1'800'000'000'456));
  later.offline_reason = "gone";
  later.replacements = 7;
  ASSERT_TRUE(write({row("edge-2"), row("edge-1")}, {}));
  ASSERT_TRUE(write({later}, {}));
  std::vector<AgentRow> rows = load();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].id, "edge-1");
  EXPECT_EQ(rows[0].address, "192.0.2.1");
  EXPECT_EQ(rows[0].services, R"(["nginx"])");
  EXPECT_EQ(rows[0].first_seen, later.first_seen);
  EXPECT_EQ(rows[0].offline_since, later.offline_since);
  EXPECT_EQ(rows[0].offline_reason, "gone");
  EXPECT_EQ(rows[0].connections, 3U);
  EXPECT_EQ(rows[0].replacements, 7U);
  EXPECT_FALSE(rows[1].offline_since);
}

TEST_F(AgentTableTest, ForgetsAgents) {
  ASSERT_TRUE(write({row("edge-1"), row("edge-2")}, {}));
  ASSERT_TRUE(write({}, {"edge-1", "edge-9"}));
  ASSERT_EQ(load().size(), 1U);
  EXPECT_EQ(load()[0].id, "edge-2");
}

TEST_F(AgentTableTest, KnowsTheLastSignOfLife) {
  database_->run([](Connection& connection) {
    AgentTable table(connection);
    EXPECT_EQ(*table.last_alive(), std::nullopt);
    for (int second : {5, 7})
      EXPECT_TRUE(table.note_alive(WallTime(std::chrono::seconds(second))));
    EXPECT_EQ(*table.last_alive(), WallTime(std::chrono::seconds(7)));
  });
}

}  // namespace
}  // namespace hive::store
