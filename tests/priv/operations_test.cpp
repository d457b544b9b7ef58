#include "priv/operations.h"

#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include "host_tree.h"

namespace hive::priv {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr PeerIds root_peer{.pid = 10, .uid = 0, .gid = 0};
constexpr PeerIds core_peer{.pid = 11, .uid = 1500, .gid = 1500};

class OperationsTest : public HostTree {
 protected:
  std::string ask(std::string_view line, const PeerIds& peer = core_peer) {
    return Desk(layout_, settings_, hooks_, journal_).answer(line, peer);
  }

  // A snapshot as nspawn leaves it when it is killed.
  [[nodiscard]] fs::path make_snapshot(const std::string& container) const {
    fs::path snapshot = host("/var/lib/nixos-containers/.#machine." + container + "0123456789abcdef");
    write(snapshot / "etc/file", "x");
    fs::create_directory_symlink(folder_ / "victim", snapshot / "link");
    write(host("/var/lib/nixos-containers/.#.#machine." + container + "0123456789abcdef.lck"), "", 0600);
    return snapshot;
  }
};

TEST_F(OperationsTest, S08_AnswersAreOneLineOfJson) {
  EXPECT_EQ(ask(R"({"op":"ping"})"), R"({"ok":true,"result":{"version":")" HIVE_VERSION R"(","protocol":1}})");
  EXPECT_EQ(ask("nonsense").find('\n'), std::string::npos);
  EXPECT_THAT(ask("nonsense"), HasSubstr(R"({"ok":false,"error":{"code":"bad_request")"));
}

TEST_F(OperationsTest, StatusSaysWhatIsKeptAndWhatRoomThereIs) {
  make_persistent_root();
  EXPECT_THAT(ask(R"({"op":"container_status","container":"h-iris"})"),
              HasSubstr(R"("state":"inactive","ephemeral":false,"root":"content","switch_unfinished":false)"));
  ASSERT_TRUE(write_flags().has_value());
  units_.set("h-iris", "active");
  std::string status = ask(R"({"op":"container_status","container":"h-iris"})");
  EXPECT_THAT(status, HasSubstr(R"("state":"active","ephemeral":true,"root":"skeleton")"));
  EXPECT_THAT(status, HasSubstr(R"("old_roots":{"count":1,"bytes":)"));
  EXPECT_THAT(status, HasSubstr(R"("available_bytes":)"));
}

TEST_F(OperationsTest, StartAndStopNameOneUnit) {
  EXPECT_EQ(ask(R"({"op":"start","container":"h-iris"})"), R"({"ok":true,"result":{"job":"done"}})");
  EXPECT_EQ(*units_.active_state("h-iris"), "active");
  EXPECT_EQ(ask(R"({"op":"stop","container":"h-iris"})"), R"({"ok":true,"result":{"job":"done"}})");
  units_.jobs_end_as("failed");
  EXPECT_THAT(ask(R"({"op":"start","container":"h-iris"})"), HasSubstr("journalctl -u container@h-iris"));
}

TEST_F(OperationsTest, C01_C03_NothingButAgentsContainersIsReached) {
  write(host("/etc/nixos-containers/forge.conf"), "A=1\n");
  for (std::string_view op : {"start", "stop", "container_status", "list_salvages"}) {
    for (std::string_view name : {"forge", "../h-iris", "h-iris.service", "", "-x", "h-iris\\u0000", "h-iris\\n"}) {
      EXPECT_THAT(ask(fmt::format(R"({{"op":"{}","container":"{}"}})", op, name)), HasSubstr(R"("code":"bad_request")"))
          << op << " " << name;
    }
    EXPECT_THAT(ask(fmt::format(R"({{"op":"{}","container":"h-eve"}})", op)),
                HasSubstr(R"("code":"no_such_container")"));
  }
  EXPECT_EQ(units_.asked(), 0);
}

TEST_F(OperationsTest, ListSalvagesShowsWhatSwitchesHaveKept) {
  make_persistent_root();
  ASSERT_TRUE(write_flags().has_value());
  fs::create_directory(agent("/work/salvaged-rootfs-of-mine"));
  std::string listed = ask(R"({"op":"list_salvages","container":"h-iris"})");
  EXPECT_THAT(listed, HasSubstr(R"("path":"/var/lib/hyperhive/agents/iris/work/salvaged-rootfs-2)"));
  EXPECT_THAT(listed, HasSubstr(R"("path":"/var/lib/nixos-containers/h-iris.pre-ephemeral-2)"));
  EXPECT_THAT(listed, Not(HasSubstr("of-mine")));
}

TEST_F(OperationsTest, P13_AListingOfPlantedSalvagesIsBounded) {
  for (int i = 0; i < 1100; ++i) {
    fs::create_directory(agent(fmt::format("/work/salvaged-rootfs-20260101T{:06}Z-abcdef", i)));
  }
  for (int i = 0; i < 50; ++i)
    write(agent(fmt::format("/work/salvaged-rootfs-20260101T001099Z-abcdef/{}", i)), "");
  std::string listed = ask(R"({"op":"list_salvages","container":"h-iris"})");
  EXPECT_THAT(listed, HasSubstr(R"("name":"salvaged-rootfs-20260101T001099Z-abcdef")"));
  EXPECT_THAT(listed, HasSubstr(R"("entries":50)"));
  EXPECT_THAT(listed, Not(HasSubstr("T000099Z"))) << "the newest thousand";
}

TEST_F(OperationsTest, C15_ErrorsSayNothingOfTheHost) {
  make_persistent_root();
  fs::remove_all(host("/var/lib/hive-priv"));
  std::string answer = ask(
      R"({"op":"write_nspawn_flags","container":"h-iris","binds":[],"isolation":{"bridge":"hive0","gateway_ip":"10.42.0.1"}})");
  EXPECT_THAT(answer, HasSubstr(R"("code":"io_error")"));
  EXPECT_THAT(answer, Not(HasSubstr("/var/lib")));
  EXPECT_THAT(answer, Not(HasSubstr("No such file")));
  EXPECT_THAT(journal_.entries().back().message, HasSubstr("/var/lib/hive-priv: No such file"));
}

TEST_F(OperationsTest, Q14_EveryRequestLeavesOneEntry) {
  make_persistent_root();
  ASSERT_TRUE(
      ask(R"({"op":"write_nspawn_flags","container":"h-iris","binds":[],"isolation":{"bridge":"hive0","gateway_ip":"10.42.0.1"}})")
          .starts_with(R"({"ok":true)"));
  ask(R"({"op":"stop","container":"h-eve"})");
  ask("{\"op\":\"a\\n\\u001b[31m\"}");
  auto entries = journal_.entries();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].op, "write_nspawn_flags");
  EXPECT_EQ(entries[0].container, "h-iris");
  EXPECT_EQ(entries[0].result, "ok");
  EXPECT_EQ(entries[0].peer.uid, core_peer.uid);
  EXPECT_THAT(journal_line(entries[0]), HasSubstr("salvage=done"));
  EXPECT_EQ(entries[1].result, "no_such_container");
  EXPECT_EQ(entries[2].result, "unknown_op");
  EXPECT_EQ(journal_line(entries[2]).find_first_of("\n\x1b"), std::string::npos) << "P19: no forged lines";
}

TEST_F(OperationsTest, P15_TheJanitorFindsSnapshotsOfKilledContainersAndRemovesThemForRoot) {
  fs::path snapshot = make_snapshot("h-iris");
  fs::path running = make_snapshot("h-eve");
  fs::path service = make_snapshot("forge");
  units_.set("h-eve", "active");
  UniqueFd fd(::open((snapshot / "etc").c_str(), O_RDONLY | O_DIRECTORY));
  int flags = FS_IMMUTABLE_FL;
  if (::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags) != 0) {
    std::fprintf(stderr, "SKIPPED LOUDLY: no immutable flag on this file system\n");
  }
  fd.reset();
  std::string found = ask(R"({"op":"janitor"})");
  EXPECT_THAT(found, HasSubstr(R"({"leftovers":[{"kind":"snapshot","container":"h-iris")"));
  EXPECT_THAT(found, Not(HasSubstr("h-eve")));
  EXPECT_TRUE(fs::exists(snapshot));
  EXPECT_THAT(ask(R"({"op":"janitor","remove":true})", core_peer), HasSubstr(R"("code":"denied")"));
  EXPECT_TRUE(fs::exists(snapshot));
  EXPECT_THAT(ask(R"({"op":"janitor","remove":true})", root_peer), HasSubstr(R"("removed":true)"));
  EXPECT_FALSE(fs::exists(snapshot));
  EXPECT_TRUE(fs::exists(running));
  EXPECT_TRUE(fs::exists(service));
}

TEST_F(OperationsTest, TheJanitorLeavesASnapshotThatNspawnHolds) {
  fs::path snapshot = make_snapshot("h-iris");
  UniqueFd lock(::open((snapshot.parent_path() / (".#" + snapshot.filename().string() + ".lck")).c_str(), O_RDWR));
  struct flock exclusive{};
  exclusive.l_type = F_WRLCK;
  exclusive.l_whence = SEEK_SET;
  ASSERT_EQ(::fcntl(lock.get(), F_OFD_SETLK, &exclusive), 0);
  EXPECT_EQ(ask(R"({"op":"janitor","remove":true})", root_peer), R"({"ok":true,"result":{"leftovers":[]}})");
  EXPECT_TRUE(fs::exists(snapshot));
}

TEST_F(OperationsTest, TheJanitorNeverTouchesAnAgentsData) {
  make_persistent_root();
  ASSERT_TRUE(write_flags().has_value());
  fs::path staging = agent("/.hive-salvage-20261130T125723Z-abcdef");
  write(staging / "tree/x", "x");
  write(agent("/.hive-salvage-mine"), "x");
  auto before = salvages();
  EXPECT_THAT(ask(R"({"op":"janitor","remove":true})", root_peer), HasSubstr(R"("kind":"staging")"));
  EXPECT_FALSE(fs::exists(staging));
  EXPECT_TRUE(fs::exists(agent("/.hive-salvage-mine")));
  EXPECT_EQ(salvages(), before);
  EXPECT_EQ(old_roots().size(), 1U);
}

}  // namespace
}  // namespace hive::priv
