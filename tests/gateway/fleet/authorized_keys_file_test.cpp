#include "gateway/fleet/authorized_keys_file.h"

#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "crypto/scratch_folder.h"
#include "gateway/fleet/key_fixture.h"

namespace hive::fleet {
namespace {

using hive::test::content_of;
using test::new_key;

class AuthorizedKeysFileTest : public ::testing::Test {
 protected:
  // Looks as the watch does, until the file has been quiet long enough.
  bool refresh() {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (std::chrono::steady_clock::now() < deadline) {
      auto known = file_.refresh();
      if (!known) return false;
      if (*known) return true;
      std::this_thread::yield();
    }
    return false;
  }

  hive::test::ScratchFolder folder_;
  ManualClock clock_;
  std::string path_ = folder_.write("authorized_keys", "# agents\n");
  AuthorizedKeysFile file_{path_, clock_};
};

TEST_F(AuthorizedKeysFileTest, AnAddedKeyCountsAtOnceAndARemovedOneNoMore) {
  crypto::PublicKey key = new_key("whatever the machine is called");
  ASSERT_EQ(*file_.add_key("edge-1", key), KeyAddition::added);
  EXPECT_TRUE(file_.authorize("edge-1", key, "192.0.2.1"));
  EXPECT_TRUE(file_.authorize_session("edge-1", key.fingerprint(), "192.0.2.1"));
  EXPECT_FALSE(file_.authorize("edge-2", key, "192.0.2.1"));
  ASSERT_EQ(*file_.remove_agent("edge-1"), 1U);
  EXPECT_FALSE(file_.authorize("edge-1", key, "192.0.2.1"));
  EXPECT_FALSE(file_.authorize_session("edge-1", key.fingerprint(), "192.0.2.1"));
  EXPECT_EQ(content_of(path_), "# agents\n");
}

TEST_F(AuthorizedKeysFileTest, TheSameKeyAgainChangesNothing) {
  crypto::PublicKey key = new_key("edge-1");
  ASSERT_TRUE(file_.add_key("edge-1", key));
  std::string before = content_of(path_);
  auto inode = std::filesystem::last_write_time(path_);
  EXPECT_EQ(*file_.add_key("edge-1", key), KeyAddition::present);
  EXPECT_EQ(content_of(path_), before);
  EXPECT_EQ(std::filesystem::last_write_time(path_), inode);
}

TEST_F(AuthorizedKeysFileTest, AKeyBelongsToOneAgent) {
  crypto::PublicKey key = new_key("edge-1");
  ASSERT_TRUE(file_.add_key("edge-1", key));
  auto added = file_.add_key("edge-2", key);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::already_exists);
}

TEST_F(AuthorizedKeysFileTest, AnAgentMayHaveSeveralKeysAndLoseOne) {
  crypto::PublicKey old_key = new_key("edge-1");
  crypto::PublicKey fresh = new_key("edge-1");
  ASSERT_TRUE(file_.add_key("edge-1", old_key));
  ASSERT_TRUE(file_.add_key("edge-1", fresh));
  EXPECT_EQ(*file_.remove_key("edge-1", old_key.fingerprint()), 1U);
  EXPECT_TRUE(file_.authorize("edge-1", fresh, "192.0.2.1"));
  EXPECT_FALSE(file_.authorize("edge-1", old_key, "192.0.2.1"));
  EXPECT_EQ(*file_.remove_key("edge-1", "SHA256:unknown"), 0U);
  EXPECT_FALSE(file_.remove_key("edge-1", ""));
}

TEST_F(AuthorizedKeysFileTest, ReservedAndMalformedIdsAreRefused) {
  for (const char* id : {"gateway", "a__b", "", "edge 1", "\xc3\xa4", "-a", "a\nssh-ed25519 AAAA b"}) {
    EXPECT_FALSE(file_.add_key(id, new_key("x"))) << id;
    EXPECT_FALSE(file_.remove_agent(id)) << id;
  }
  EXPECT_EQ(content_of(path_), "# agents\n");
}

TEST_F(AuthorizedKeysFileTest, SeesAnEditByHandOnceItIsComplete) {
  crypto::PublicKey key = new_key("edge-1");
  ASSERT_TRUE(file_.add_key("edge-1", key));
  ASSERT_TRUE(refresh());
  folder_.write("authorized_keys", "# emptied\n", 0600);
  EXPECT_FALSE(*file_.refresh()) << "it may be half written";
  ASSERT_TRUE(refresh());
  EXPECT_FALSE(file_.authorize_session("edge-1", key.fingerprint(), "192.0.2.1"));
}

TEST_F(AuthorizedKeysFileTest, AFileThatIsGoneIsEmptyAfterAMoment) {
  crypto::PublicKey key = new_key("edge-1");
  ASSERT_TRUE(file_.add_key("edge-1", key));
  std::filesystem::remove(path_);
  EXPECT_FALSE(*file_.refresh());
  EXPECT_TRUE(file_.authorize_session("edge-1", key.fingerprint(), "192.0.2.1"));
  EXPECT_FALSE(file_.authorize("edge-1", key, "192.0.2.1"));
  clock_.advance(std::chrono::seconds(1));
  EXPECT_TRUE(*file_.refresh());
  EXPECT_FALSE(file_.authorize_session("edge-1", key.fingerprint(), "192.0.2.1"));
  EXPECT_EQ(*file_.remove_agent("edge-1"), 0U);
}

TEST_F(AuthorizedKeysFileTest, AKeyThatExpiresEndsItsSession) {
  crypto::PublicKey key = new_key("edge-1");
  folder_.write("authorized_keys", "expiry-time=\"20270201Z\" " + key.to_line() + "\n");
  ASSERT_TRUE(file_.check());
  EXPECT_TRUE(file_.authorize_session("edge-1", key.fingerprint(), "192.0.2.1"));
  clock_.advance(std::chrono::hours(24 * 60));
  EXPECT_FALSE(file_.authorize_session("edge-1", key.fingerprint(), "192.0.2.1"));
  auto added = file_.add_key("edge-1", key);
  ASSERT_FALSE(added) << "the line would still have expired";
  EXPECT_EQ(added.error().code, ErrorCode::already_exists);
}

TEST_F(AuthorizedKeysFileTest, ListsKeysAndRefusedLinesInTheirOrder) {
  crypto::PublicKey key = new_key("edge-1");
  folder_.write("authorized_keys",
                "# x\ncommand=\"sh\" " + key.to_line() + "\nfrom=\"10.0.0.0/8\" " + key.to_line() + "\n");
  auto listing = file_.list();
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->text, content_of(path_));
  ASSERT_EQ(listing->lines.size(), 2U);
  EXPECT_EQ(listing->lines[0].number, 2U);
  EXPECT_NE(listing->lines[0].refused.find("command"), std::string::npos);
  EXPECT_EQ(listing->lines[1].agent, "edge-1");
  EXPECT_EQ(listing->lines[1].fingerprint, key.fingerprint());
  EXPECT_EQ(listing->lines[1].from, std::vector<std::string>{"10.0.0.0/8"});
}

TEST_F(AuthorizedKeysFileTest, ManyWritersLoseNothing) {
  constexpr int writers = 4;
  constexpr int keys_each = 10;
  AuthorizedKeysFile second(path_, clock_);
  std::vector<std::thread> threads;
  for (int w = 0; w < writers; ++w) {
    threads.emplace_back([&, w] {
      AuthorizedKeysFile& file = w % 2 == 0 ? file_ : second;
      for (int k = 0; k < keys_each; ++k)
        EXPECT_TRUE(file.add_key(fmt::format("edge-{}-{}", w, k), new_key("x")));
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(file_.list()->lines.size(), static_cast<std::size_t>(writers * keys_each));
}

}  // namespace
}  // namespace hive::fleet
