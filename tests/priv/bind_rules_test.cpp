#include "priv/bind_rules.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "host_tree.h"
#include "priv/beneath.h"

namespace hive::priv {
namespace {

namespace fs = std::filesystem;

class BindRulesTest : public ::testing::Test {
 protected:
  Outcome<void> check(std::vector<Bind> binds) { return check_binds(binds, "iris", settings_, layout_); }
  Outcome<void> check_source(std::string source) {
    return check({{.host_path = std::move(source), .container_path = "/agents/iris/x"}});
  }
  Outcome<void> check_target(std::string target) {
    return check({{.host_path = "/var/lib/hyperhive/agents/iris/work", .container_path = std::move(target)}});
  }

  Layout layout_;
  Settings settings_ = Settings::defaults(layout_);
};

TEST_F(BindRulesTest, C04_SourcesLieInTheAgentsOwnFolders) {
  EXPECT_TRUE(check_source("/var/lib/hyperhive/agents/iris/work").has_value());
  EXPECT_TRUE(check_source("/var/lib/hyperhive/shared").has_value());
  for (std::string path : {"/", "/etc", "/var/lib/nixos-containers", "/run/hive", "/run", "/var/lib/hyperhive",
                           "/var/lib/hyperhive/agents", "/var/lib/hyperhive/agents/other/work",
                           "/var/lib/hyperhive/agents/irisx", "/var/lib/hyperhive/agents/iris/../other",
                           "/var/lib/hyperhive//agents/iris", "/var/lib/hyperhive/agents/iris/"}) {
    EXPECT_FALSE(check_source(path).has_value()) << path;
  }
}

TEST_F(BindRulesTest, C04_NothingInAFolderThatAgentsShareIsASource) {
  // A guest's root owns what it makes there, so that no look at owners tells it from the host's root.
  EXPECT_FALSE(check_source("/var/lib/hyperhive/shared/x").has_value());
  settings_.bind_sources.emplace_back("/var/lib/hyperhive/shared/x");
  EXPECT_FALSE(check_source("/var/lib/hyperhive/shared/x").has_value()) << "naming it does not make it safe";
}

TEST_F(BindRulesTest, C07_TargetsLieInAllowedPlaces) {
  for (std::string path :
       {"/agents/iris/work", "/home/iris/.claude", "/home/iris/.claude/x", "/run/hive/mcp", "/shared"})
    EXPECT_TRUE(check_target(path).has_value()) << path;
  for (std::string path : {"/", "/etc", "/nix", "/usr", "/run/systemd", "/agents", "/agents/iris", "/agents/other/work",
                           "/home/iris", "/home/iris/.claudex", "/home/other/.claude", "/agents/iris/../../etc"}) {
    EXPECT_FALSE(check_target(path).has_value()) << path;
  }
}

TEST_F(BindRulesTest, C07_NoTargetTwiceOrInAnother) {
  auto two = [&](std::string first, std::string second) {
    return check({{.host_path = "/var/lib/hyperhive/agents/iris/a", .container_path = std::move(first)},
                  {.host_path = "/var/lib/hyperhive/agents/iris/b", .container_path = std::move(second)}});
  };
  EXPECT_TRUE(two("/agents/iris/a", "/agents/iris/ab").has_value());
  EXPECT_FALSE(two("/agents/iris/a", "/agents/iris/a").has_value());
  EXPECT_FALSE(two("/agents/iris/a", "/agents/iris/a/b").has_value());
  EXPECT_FALSE(two("/agents/iris/a/b", "/agents/iris/a").has_value());
}

TEST_F(BindRulesTest, C08_C09_C10_TheNetworkIsOneOfTheSettings) {
  auto check_network = [&](std::string bridge, std::string address) {
    return check_isolation(Isolation{std::move(bridge), std::move(address)}, settings_);
  };
  EXPECT_TRUE(check_network("hive0", "10.42.0.1").has_value());
  for (std::string bridge : {"lan0", "../x", "", "hive0 ", "1234567890123456"})
    EXPECT_FALSE(check_network(bridge, "10.42.0.1").has_value()) << bridge;
  for (std::string address : {"", "10.42.0", "10.42.0.0", "10.42.0.255", "10.42.1.1", "010.42.0.1", "10.42.0.1 ", "::1",
                              "10.42.0.1\n", "0x0a.42.0.1", "10.42.0.256"}) {
    EXPECT_FALSE(check_network("hive0", address).has_value()) << address;
  }
  EXPECT_EQ(check_isolation(std::nullopt, settings_).error().code, Code::denied);
  settings_.allow_host_network = true;
  EXPECT_TRUE(check_isolation(std::nullopt, settings_).has_value());
}

class BindSourceTest : public HostTree {
 protected:
  Result<void> check(const std::string& path) {
    UniqueFd anchor = TRY(open_anchor(layout_));
    return check_bind_source(anchor.get(), path);
  }
};

TEST_F(BindSourceTest, C04_AFolderWhoseWayIsRootsAlone) {
  EXPECT_TRUE(check("/var/lib/hyperhive/agents/iris/work").has_value());
  own(agent("/work"), 1001);
  EXPECT_TRUE(check("/var/lib/hyperhive/agents/iris/work").has_value()) << "the source itself may be the agent's";
  fs::create_directories(agent("/work/below"));
  EXPECT_FALSE(check("/var/lib/hyperhive/agents/iris/work/below").has_value()) << "the agent can swap what is below it";
  fs::permissions(agent(), fs::perms(0775));
  EXPECT_FALSE(check("/var/lib/hyperhive/agents/iris/state").has_value());
}

TEST_F(BindSourceTest, C04_NoLinkOnTheWayAndNoneAtItsEnd) {
  fs::create_directory_symlink(folder_ / "victim", agent("/link"));
  EXPECT_FALSE(check("/var/lib/hyperhive/agents/iris/link").has_value());
  fs::create_directory_symlink(agent(), host("/var/lib/hyperhive/agents/eve"));
  EXPECT_FALSE(check("/var/lib/hyperhive/agents/eve/state").has_value());
  write(agent("/file"), "x");
  EXPECT_FALSE(check("/var/lib/hyperhive/agents/iris/file").has_value());
  EXPECT_EQ(check("/var/lib/hyperhive/agents/iris/absent").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace hive::priv
