// kill -9 after every step of a switch, then the request again: the data is never in neither place, and the second
// request ends where an undisturbed one would have.
#include <algorithm>
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host_tree.h"
#include "priv/salvage.h"
#include "priv/switch.h"

namespace hive::priv {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SwitchCrashTest : public HostTree, public ::testing::WithParamInterface<SwitchStep> {
 protected:
  void SetUp() override {
    HostTree::SetUp();
    if (IsSkipped()) return;
    make_persistent_root();
    fs::create_directories(root("/home/iris/.local/state/nix/profiles"));
    fs::create_symlink("/nix/store/abc-env", root("/home/iris/.local/state/nix/profiles/profile-1-link"));
  }

  // Sends the request in a process of its own, which kills itself behind `step`. True if it came so far.
  bool killed_at(SwitchStep step) {
    pid_t child = ::fork();
    if (child == 0) {
      hooks_.at_step = [step](SwitchStep reached) {
        if (reached == step) ::kill(::getpid(), SIGKILL);
      };
      write_flags();
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }

  // In the root of the next start, or in a kept old root; and the salvage is complete once anybody can see it.
  void expect_data_somewhere() const {
    bool in_root = fs::exists(root("/home/iris/pre-switch.txt"));
    bool in_old = old_roots().size() == 1 && read(old_roots()[0] / "home/iris/pre-switch.txt") == "pre-switch\n";
    EXPECT_TRUE(in_root || in_old);
    if (conf().find("--ephemeral") != std::string::npos) {
      EXPECT_TRUE(in_old && !in_root);
      EXPECT_EQ(salvages().size(), 1U);
    }
    for (const std::string& name : salvages()) {
      EXPECT_EQ(read(agent("/work") / name / "home/iris/pre-switch.txt"), "pre-switch\n");
      EXPECT_EQ(read(agent("/work") / name / "var/lib/app/data"), "data\n");
      EXPECT_EQ(status_of(agent("/work") / name).st_uid, 1001U);
    }
  }

  void expect_end_state() const {
    EXPECT_THAT(conf(), HasSubstr("--ephemeral"));
    ASSERT_EQ(salvages().size(), 1U);
    EXPECT_EQ(read(salvage() / "home/iris/pre-switch.txt"), "pre-switch\n");
    ASSERT_EQ(old_roots().size(), 1U);
    EXPECT_EQ(read(old_roots()[0] / "home/iris/pre-switch.txt"), "pre-switch\n");
    EXPECT_FALSE(fs::exists(root("/home")));
    EXPECT_EQ(read(root("/etc/machine-id")), "0123456789abcdef0123456789abcdef\n");
    EXPECT_EQ(names_in(agent()), (std::vector<std::string>{"claude", "harness", "state", "work"}));
    EXPECT_TRUE(names_in(host("/var/lib/hive-priv/switch")).empty());
    EXPECT_TRUE(
        fs::is_symlink(host("/nix/var/nix/profiles/per-container/h-iris/per-user/iris/profiles/profile-1-link")));
    for (const std::string& name : names_in(host("/var/lib/nixos-containers")))
      EXPECT_TRUE(name == "h-iris" || name.starts_with("h-iris.pre-ephemeral-") || name == ".#h-iris.lck") << name;
  }
};

TEST_P(SwitchCrashTest, TheNextRequestFinishesWhatAKillHasLeft) {
  ASSERT_TRUE(killed_at(GetParam()));
  expect_data_somewhere();
  auto outcome = write_flags();
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message << ": " << outcome.error().detail;
  bool was_done = GetParam() == SwitchStep::record_removed;
  EXPECT_THAT(outcome->result, HasSubstr(was_done ? R"("switched":false)" : R"("switched":true)"));
  expect_end_state();
}

TEST_P(SwitchCrashTest, KilledTwiceInTheSamePlaceItStillEnds) {
  ASSERT_TRUE(killed_at(GetParam()));
  killed_at(GetParam());
  expect_data_somewhere();
  auto outcome = write_flags();
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message << ": " << outcome.error().detail;
  expect_end_state();
}

TEST_P(SwitchCrashTest, WhatAContainerWroteAfterTheCrashIsKeptToo) {
  ASSERT_TRUE(killed_at(GetParam()));
  if (conf().find("--ephemeral") != std::string::npos) return;
  // Somebody starts it all the same; the root of that start is whatever has the name.
  write(root("/home/iris/later.txt"), "later\n");
  own(root("/home/iris"), 1001);
  ASSERT_TRUE(write_flags().has_value());
  auto holds = [](const fs::path& tree, std::string_view file) { return fs::exists(tree / "home/iris" / file); };
  for (std::string_view file : {"later.txt", "pre-switch.txt"}) {
    EXPECT_TRUE(std::ranges::any_of(old_roots(), [&](const fs::path& old) { return holds(old, file); })) << file;
    EXPECT_TRUE(std::ranges::any_of(salvages(), [&](const std::string& name) {
      return holds(agent("/work") / name, file);
    })) << file;
    EXPECT_FALSE(holds(root(), file)) << file;
  }
}

TEST_F(SwitchCrashTest, P13_ACopyAsDeepAsMayBeIsTakenBackToo) {
  fs::path deep = root();
  for (size_t level = 1; level < WalkLimits{}.max_depth; ++level)
    deep /= "d";
  write(deep / "file", "x");
  settings_.max_salvage_entries = 600;
  ASSERT_TRUE(killed_at(SwitchStep::copied));
  auto outcome = write_flags();
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message << ": " << outcome.error().detail;
  expect_end_state();
}

using SwitchMidCopyTest = HostTree;

TEST_F(SwitchMidCopyTest, KilledInTheMiddleOfACopyTheNextRequestBeginsAnew) {
  make_persistent_root();
  hooks_.may_clone = false;
  pid_t child = ::fork();
  if (child == 0) {
    // Asked before the first byte is copied, when folders and links are there already.
    hooks_.disk_space = [](int) -> Result<DiskSpace> {
      ::kill(::getpid(), SIGKILL);
      return DiskSpace{};
    };
    write_flags();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(salvages().empty()) << "nobody sees half a copy";
  EXPECT_EQ(read(root("/home/iris/pre-switch.txt")), "pre-switch\n");
  ASSERT_TRUE(write_flags().has_value());
  EXPECT_EQ(read(salvage() / "home/iris/pre-switch.txt"), "pre-switch\n");
  EXPECT_EQ(names_in(agent()), (std::vector<std::string>{"claude", "harness", "state", "work"}));
}

INSTANTIATE_TEST_SUITE_P(EveryStep, SwitchCrashTest,
                         ::testing::Values(SwitchStep::recorded, SwitchStep::staged, SwitchStep::copied,
                                           SwitchStep::nix_carried, SwitchStep::id_noted, SwitchStep::ready,
                                           SwitchStep::root_renamed, SwitchStep::root_made, SwitchStep::salvage_moved,
                                           SwitchStep::conf_written, SwitchStep::record_removed),
                         [](const auto& tested) { return "Step" + std::to_string(static_cast<int>(tested.param)); });

}  // namespace
}  // namespace hive::priv
