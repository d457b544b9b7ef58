#include "host_tree.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

namespace hive::priv {

namespace fs = std::filesystem;

void HostTree::SetUp() {
  if (::geteuid() != 0) {
    if (std::getenv("HIVE_REQUIRE_ALL") != nullptr) FAIL() << "hive-priv's tests change owners, which needs root";
    GTEST_SKIP() << "SKIPPED LOUDLY: hive-priv's tests change owners, which needs root";
  }
  std::string pattern = (fs::temp_directory_path() / "hive-priv-XXXXXX").string();
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
  layout_.anchor = pattern + "/host";
  fs::create_directory(layout_.anchor);
  if (!mount_host()) GTEST_SKIP() << "SKIPPED LOUDLY: the file system of this test can't be mounted here";
  settings_ = Settings::defaults(layout_);
  for (std::string_view path : {"/etc/nixos-containers", "/var/lib/nixos-containers/h-iris", "/var/lib/hive-priv",
                                "/var/log/journal", "/nix/var/nix/profiles"}) {
    fs::create_directories(host(path));
  }
  for (std::string_view path : {"/state", "/work", "/harness", "/claude"})
    fs::create_directories(agent(path));
  for (std::string_view path : {"/var/lib/nixos-containers", "/var/lib/hive-priv"})
    fs::permissions(host(path), fs::perms::owner_all);
  write(host("/etc/machine-id"), "ffffffffffffffffffffffffffffffff\n");
  write(host("/etc/nixos-containers/h-iris.conf"),
        "# made by the operator\nSYSTEM_PATH=/nix/store/abc-nixos-system\nPRIVATE_NETWORK=1\nHOST_BRIDGE=hive0\n"
        "AUTO_START=0\n");
  // What a planted link would point at.
  fs::create_directories(folder_ / "victim");
  fs::permissions(folder_ / "victim", fs::perms(0755));
  write(folder_ / "victim" / "secret", "the host's own");
  guarded_before_ = guarded();
}

bool HostTree::mount_at_host(const std::string& command) {
  mounted_ = std::system((command + " >/dev/null 2>&1").c_str()) == 0;
  return mounted_;
}

void HostTree::TearDown() {
  if (folder_.empty()) return;
  if (!guarded_before_.empty()) {
    EXPECT_EQ(guarded(), guarded_before_) << "something outside the container's own places was changed";
  }
  if (mounted_) {
    EXPECT_EQ(::umount2(layout_.anchor.c_str(), MNT_DETACH), 0);
  }
  fs::remove_all(folder_);
}

std::string HostTree::guarded() const {
  std::string all;
  std::vector<fs::path> paths = {folder_ / "victim"};
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "victim"))
    paths.push_back(entry.path());
  paths.push_back(host("/etc/machine-id"));
  std::ranges::sort(paths);
  for (const fs::path& path : paths) {
    struct stat status = status_of(path);
    all += fmt::format("{} {:o} {}:{} {} {}\n", path.string(), status.st_mode, status.st_uid, status.st_gid,
                       status.st_nlink, S_ISREG(status.st_mode) ? read(path) : std::string());
  }
  return all;
}

void HostTree::write(const fs::path& path, std::string_view content, mode_t mode) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
  ASSERT_EQ(::chmod(path.c_str(), mode), 0);
}

std::string HostTree::read(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void HostTree::own(const fs::path& path, uid_t uid, gid_t gid) {
  ASSERT_EQ(::lchown(path.c_str(), uid, gid), 0) << path;
}

struct stat HostTree::status_of(const fs::path& path) {
  struct stat status{};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status;
}

std::vector<std::string> HostTree::names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

std::vector<fs::path> HostTree::old_roots() const {
  std::vector<fs::path> found;
  for (const std::string& name : names_in(host("/var/lib/nixos-containers"))) {
    if (name.starts_with("h-iris.pre-ephemeral-")) found.push_back(host("/var/lib/nixos-containers") / name);
  }
  return found;
}

void HostTree::make_persistent_root() const {
  write(root("/home/iris/pre-switch.txt"), "pre-switch\n", 0640);
  own(root("/home/iris"), 1001);
  own(root("/home/iris/pre-switch.txt"), 1001);
  write(root("/tmp/cache-file"), "scratch\n");
  write(root("/home/iris/.cache/large"), "cache\n");
  write(root("/etc/machine-id"), "0123456789abcdef0123456789abcdef\n", 0444);
  write(root("/etc/hostname"), "iris\n");
  write(root("/var/lib/app/data"), "data\n");
}

WriteFlagsRequest HostTree::flags_request() {
  WriteFlagsRequest request{.container = "h-iris", .binds = {}, .isolation = Isolation{"hive0", "10.42.0.1"}};
  for (std::string name : {"state", "work", "harness", "claude"}) {
    request.binds.push_back({.host_path = "/var/lib/hyperhive/agents/iris/" + name,
                             .container_path = name == "claude" ? "/home/iris/.claude" : "/agents/iris/" + name});
  }
  return request;
}

Outcome<Done> HostTree::write_flags(const WriteFlagsRequest& request) {
  return perform(layout_, settings_, hooks_, request);
}

}  // namespace hive::priv
