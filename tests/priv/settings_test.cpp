#include "priv/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host_tree.h"

namespace hive::priv {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(SettingsTest, DefaultsNeedNoFile) {
  Settings settings = Settings::defaults({});
  EXPECT_THAT(settings.sources_of("iris"), Contains("/var/lib/hyperhive/agents/iris"));
  EXPECT_THAT(settings.targets_of("iris"), Contains("/agents/iris/"));
  EXPECT_EQ(settings.bridges.at("hive0"), *parse_ipv4_network("10.42.0.0/24"));
  EXPECT_FALSE(settings.allow_host_network);
}

TEST(SettingsTest, ReadsWhatTheOwnerSets) {
  auto settings = parse_settings(
      R"({"bridges":{"br-agents":"10.9.0.0/16"},"agents":{"boss":{"uid":1500,"bind_sources":["/var/lib/hyperhive/agents"]}},
          "bind_sources":["/srv/{agent}"],"max_kept_roots":2,"keep_free_percent":20,"agent_uids":{"first":1500,"last":1600}})",
      {});
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  EXPECT_EQ(settings->uid_of("boss"), 1500U);
  EXPECT_EQ(settings->uid_of("iris"), std::nullopt);
  EXPECT_THAT(settings->sources_of("boss"), ::testing::ElementsAre("/srv/boss", "/var/lib/hyperhive/agents"));
  EXPECT_EQ(settings->max_kept_roots, 2U);
  EXPECT_TRUE(settings->is_agent_uid(1600));
  EXPECT_FALSE(settings->is_agent_uid(1000));
}

TEST(SettingsTest, AMistakeIsAnErrorThatNamesTheKey) {
  auto message = [](std::string_view text) {
    auto settings = parse_settings(text, {});
    return settings ? std::string("accepted") : settings.error().message;
  };
  EXPECT_THAT(message(R"({"bridge":{}})"), HasSubstr("is \"bridges\" meant?"));
  EXPECT_THAT(message(R"({"bridges":{"hive0":"10.42.0.1/24"}})"), HasSubstr("bridges: "));
  EXPECT_THAT(message(R"({"bridges":{"../x":"10.42.0.0/24"}})"), HasSubstr("network interface"));
  EXPECT_THAT(message(R"({"keep_free_percent":0})"), HasSubstr("keep_free_percent: "));
  EXPECT_THAT(message(R"({"agents":{"../x":{}}})"), HasSubstr("agents: "));
  EXPECT_THAT(message(R"({"agents":{"iris":{"uid":0}}})"), HasSubstr("uid: "));
  EXPECT_THAT(message(R"({"agent_uids":{"first":9,"last":8}})"), HasSubstr("agent_uids: "));
  EXPECT_THAT(message(R"({"excluded":["../etc"]})"), HasSubstr("excluded: "));
  EXPECT_THAT(message("[]"), HasSubstr("expected an object"));
}

TEST(SettingsTest, C04_P20_NoSettingOpensWhatIsTheHosts) {
  for (std::string_view path : {"/run/hive", "/run", "/var/lib", "/var", "/etc", "/etc/nixos-containers", "/root",
                                "/var/lib/nixos-containers", "/var/lib/hive-priv", "/usr/bin", "/dev/shm", "/proc"}) {
    auto settings = parse_settings(fmt::format(R"({{"bind_sources":["{}"]}})", path), {});
    EXPECT_FALSE(settings.has_value()) << path;
  }
  EXPECT_TRUE(parse_settings(R"({"bind_sources":["/srv/agents/{agent}"]})", {}).has_value());
}

using SettingsFileTest = HostTree;

TEST_F(SettingsFileTest, AFileThatOthersMayWriteIsRefused) {
  EXPECT_TRUE(load_settings(layout_).has_value());
  write(host("/etc/hive-priv.json"), R"({"max_kept_roots":3})", 0644);
  ASSERT_TRUE(load_settings(layout_).has_value());
  EXPECT_EQ(load_settings(layout_)->max_kept_roots, 3U);
  write(host("/etc/hive-priv.json"), R"({"max_kept_roots":3})", 0664);
  ASSERT_FALSE(load_settings(layout_).has_value());
  EXPECT_THAT(load_settings(layout_).error().message, HasSubstr("chmod 644"));
  write(host("/etc/hive-priv.json"), "{}", 0644);
  own(host("/etc/hive-priv.json"), 1001);
  EXPECT_FALSE(load_settings(layout_).has_value());
}

}  // namespace
}  // namespace hive::priv
