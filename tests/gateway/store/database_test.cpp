#include "gateway/store/database.h"

#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crypto/scratch_folder.h"

namespace hive::store {
namespace {

using ::testing::HasSubstr;

class DatabaseTest : public ::testing::Test {
 protected:
  std::unique_ptr<Database> open() {
    auto opened = Database::open(path_);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }

  static Result<void> execute(Database& database, std::string_view sql) {
    Result<void> done;
    database.run([&](Connection& connection) { done = connection.execute(sql); });
    return done;
  }

  static std::int64_t count(Database& database, std::string_view sql) {
    std::int64_t number = -1;
    database.run([&](Connection& connection) {
      auto query = connection.prepare(sql);
      ASSERT_TRUE(query) << query.error().message;
      auto row = query->step();
      ASSERT_TRUE(row && *row);
      number = query->number(0);
    });
    return number;
  }

  test::ScratchFolder folder_;
  std::string path_ = folder_.path("hive.db");
};

TEST_F(DatabaseTest, IsReadableByItsOwnerAlone) {
  auto database = open();
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(path_).parent_path())) {
    struct stat status{};
    ASSERT_EQ(::stat(file.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U) << file.path();
  }
}

TEST_F(DatabaseTest, KeepsWhatATransactionWrote) {
  {
    auto database = open();
    database->run([](Connection& connection) {
      auto done = connection.transaction([](Connection& inside) -> Result<void> {
        Statement insert = TRY(inside.prepare("INSERT INTO join_tokens VALUES (?,?,?,?,?,?,?)"));
        insert.bind(0, std::string_view("d"))
            .bind(1, std::string_view("edge-1"))
            .bind(2, std::string_view("admin"))
            .bind(3, std::int64_t{1})
            .bind(4, std::int64_t{2})
            .bind_null(5)
            .bind_optional(6, std::nullopt);
        return insert.run();
      });
      ASSERT_TRUE(done) << done.error().message;
    });
  }
  auto again = open();
  EXPECT_EQ(count(*again, "SELECT count(*) FROM join_tokens WHERE agent = 'edge-1' AND used_at IS NULL"), 1);
}

TEST_F(DatabaseTest, AFailedTransactionLeavesNothing) {
  auto database = open();
  database->run([](Connection& connection) {
    auto done = connection.transaction([](Connection& inside) -> Result<void> {
      TRY(inside.execute("INSERT INTO join_tokens VALUES ('d', 'edge-1', 'admin', 1, 2, NULL, NULL)"));
      return fail(ErrorCode::cancelled, "changed my mind");
    });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "changed my mind");
  });
  EXPECT_EQ(count(*database, "SELECT count(*) FROM join_tokens"), 0);
}

TEST_F(DatabaseTest, SurvivesTheKillOfItsProcess) {
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto opened = Database::open(path_);
    if (!opened) ::_exit(1);
    Result<void> done = execute(**opened, "INSERT INTO join_tokens VALUES ('d', 'edge-1', 'admin', 1, 2, NULL, NULL)");
    ::kill(::getpid(), done ? SIGKILL : SIGTERM);
    ::_exit(2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  auto database = open();
  EXPECT_EQ(count(*database, "SELECT count(*) FROM join_tokens"), 1);
}

TEST_F(DatabaseTest, RunsWhatIsPostedInOrderAndBeforeItCloses) {
  std::vector<int> order;
  {
    auto database = open();
    for (int i = 0; i < 100; ++i)
      database->post([&order, i](Connection&) { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_F(DatabaseTest, BytesComeBackAsTheyWere) {
  auto database = open();
  std::string bytes("a\0b\xff", 4);
  database->run([&](Connection& connection) {
    ASSERT_TRUE(connection.execute("CREATE TABLE bytes (content BLOB)"));
    auto insert = connection.prepare("INSERT INTO bytes VALUES (?)");
    insert->bind_blob(0, bytes);
    ASSERT_TRUE(insert->run());
    auto query = connection.prepare("SELECT content FROM bytes");
    ASSERT_TRUE(*query->step());
    EXPECT_EQ(query->text(0), bytes);
  });
}

TEST_F(DatabaseTest, ASecondGatewayOnTheSameStateIsRefused) {
  auto first = open();
  int outcome = -1;
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto second = Database::open(path_);
    ::_exit(second ? 1 : second.error().message.find("another process") != std::string::npos ? 0 : 2);
  }
  ASSERT_EQ(::waitpid(child, &outcome, 0), child);
  EXPECT_EQ(WEXITSTATUS(outcome), 0);
}

TEST_F(DatabaseTest, ANewerOrDamagedFileIsRefusedByName) {
  {
    auto database = open();
    ASSERT_TRUE(execute(*database, "PRAGMA user_version = 999"));
  }
  auto newer = Database::open(path_);
  ASSERT_FALSE(newer);
  EXPECT_THAT(newer.error().message, HasSubstr(path_));
  EXPECT_THAT(newer.error().message, HasSubstr("newer gateway"));

  std::string damaged = folder_.path("damaged.db");
  FILE* file = std::fopen(damaged.c_str(), "w");
  std::fputs("this is no database, and it is longer than a header would have to be to be taken for one", file);
  std::fclose(file);
  auto refused = Database::open(damaged);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr(damaged));
}

TEST_F(DatabaseTest, AFolderThatIsNotThereIsNamed) {
  auto refused = Database::open(folder_.path("no/such/hive.db"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no/such/hive.db"));
}

TEST_F(DatabaseTest, ALinkIsNotFollowed) {
  std::filesystem::create_symlink(folder_.path("elsewhere.db"), path_);
  EXPECT_FALSE(Database::open(path_));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("elsewhere.db")));
}

}  // namespace
}  // namespace hive::store
