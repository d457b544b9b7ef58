#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "priv/operations.h"
#include "priv/site.h"

namespace hive::priv {

/// Units that are what a test says; no systemd.
class FakeUnits final : public Units {
 public:
  Result<std::string> active_state(std::string_view container) override {
    std::lock_guard lock(mutex_);
    ++asked_;
    auto state = states_.find(std::string(container));
    return state == states_.end() ? "inactive" : state->second;
  }
  Result<std::string> start(std::string_view container) override {
    set(container, "active");
    return job_result_;
  }
  Result<std::string> stop(std::string_view container) override {
    set(container, "inactive");
    return job_result_;
  }
  void set(std::string_view container, std::string_view state) {
    std::lock_guard lock(mutex_);
    states_[std::string(container)] = state;
  }
  void jobs_end_as(std::string_view result) { job_result_ = result; }
  [[nodiscard]] int asked() const { return asked_; }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> states_;
  std::string job_result_ = "done";
  int asked_ = 0;
};

class KeptJournal final : public Journal {
 public:
  void write(const JournalEntry& entry) override {
    std::lock_guard lock(mutex_);
    entries_.push_back(entry);
  }
  [[nodiscard]] std::vector<JournalEntry> entries() {
    std::lock_guard lock(mutex_);
    return entries_;
  }

 private:
  std::mutex mutex_;
  std::vector<JournalEntry> entries_;
};

/// A host in a folder of its own, with one agent, iris, whose container h-iris has a root that persists. Everything
/// outside `host` is watched by guard files: a test that ends checks that nothing there has changed.
class HostTree : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  [[nodiscard]] std::filesystem::path host(std::string_view path) const {
    return std::filesystem::path(layout_.anchor + std::string(path));
  }
  [[nodiscard]] std::filesystem::path root(std::string_view path = "") const {
    return host("/var/lib/nixos-containers/h-iris" + std::string(path));
  }
  [[nodiscard]] std::filesystem::path agent(std::string_view path = "") const {
    return host("/var/lib/hyperhive/agents/iris" + std::string(path));
  }
  [[nodiscard]] std::string conf() const { return read(host("/etc/nixos-containers/h-iris.conf")); }

  static void write(const std::filesystem::path& path, std::string_view content, mode_t mode = 0644);
  static std::string read(const std::filesystem::path& path);
  static void own(const std::filesystem::path& path, uid_t uid, gid_t gid = 100);
  static struct stat status_of(const std::filesystem::path& path);
  [[nodiscard]] static std::vector<std::string> names_in(const std::filesystem::path& folder);

  /// The names in WORK and beside ROOT that a switch makes.
  [[nodiscard]] std::vector<std::string> salvages() const { return names_in(agent("/work")); }
  [[nodiscard]] std::vector<std::filesystem::path> old_roots() const;
  [[nodiscard]] std::filesystem::path salvage() const { return agent("/work") / salvages().at(0); }

  /// A used root that persists: a file in the agent's home, a scratch file, what a system has.
  void make_persistent_root() const;

  /// The request of the seed: four binds and the isolation.
  static WriteFlagsRequest flags_request();
  Outcome<Done> write_flags() { return write_flags(flags_request()); }
  Outcome<Done> write_flags(const WriteFlagsRequest& request);
  [[nodiscard]] static std::string text_of(const Outcome<Done>& outcome) {
    return outcome ? outcome->result : refusal_answer(outcome.error());
  }

  Layout layout_;
  Settings settings_;
  FakeUnits units_;
  ManualClock clock_;
  KeptJournal journal_;
  std::atomic<bool> stopping_ = false;
  Host hooks_{.clock = clock_, .units = units_, .stopping = &stopping_};
  std::filesystem::path folder_;

  /// Where a test wants its host on a file system of its own; false if that can't be had.
  virtual bool mount_host() { return true; }
  /// Runs a command that mounts something at layout_.anchor.
  bool mount_at_host(const std::string& command);

 private:
  [[nodiscard]] std::string guarded() const;
  std::string guarded_before_;
  bool mounted_ = false;
};

}  // namespace hive::priv
