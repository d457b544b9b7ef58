#include "container/record.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <unistd.h>

#include "container/create.h"
#include "container/guest_agent.h"
#include "container/names.h"
#include "container/priv_client.h"
#include "protocol/json.h"

namespace hive::container {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class Records : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/hive-record-test.XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    layout_.prefix = folder;
  }
  void TearDown() override { std::filesystem::remove_all(layout_.prefix); }
  Layout layout_;
};

TEST_F(Records, AreReadAsTheyWereWritten) {
  const Record record{
      .name = "h-iris", .uid = 20001, .bridge = "hive0", .gateway_ip = "10.42.0.1", .hive_agent = "iris"};
  ASSERT_TRUE(save_record(record, layout_));
  EXPECT_EQ(load_record("h-iris", layout_), record);
}

TEST_F(Records, WithoutAUsableUidAreRefused) {
  std::filesystem::create_directories(layout_.state());
  for (const char* text : {"{}", "{\"uid\": 0}", "{\"uid\": -1}", "{\"uid\": \"1\"}", "{\"uid\": 99999999999}", "x"}) {
    std::ofstream(layout_.record("h-iris")) << text;
    EXPECT_FALSE(load_record("h-iris", layout_)) << text;
  }
}

TEST_F(Records, KeepAUidForOneContainerAlone) {
  auto first = free_uid(layout_);
  ASSERT_TRUE(first);
  ASSERT_TRUE(save_record({.name = "h-a", .uid = *first, .bridge = {}, .gateway_ip = {}, .hive_agent = {}}, layout_));
  auto second = free_uid(layout_);
  ASSERT_TRUE(second);
  EXPECT_NE(*first, *second);
}

TEST_F(Records, ThatCannotBeReadGiveNoUidAway) {
  std::filesystem::create_directories(layout_.state());
  std::ofstream(layout_.record("h-a")) << "torn";
  EXPECT_FALSE(free_uid(layout_));
}

TEST_F(Records, OfContainersAreTheConfigurationsOfThisHost) {
  std::filesystem::create_directories(layout_.conf_folder());
  for (const char* name : {"h-b.conf", "h-a.conf", "forge.conf", "h-a.extra", ".h-c.conf", "x;y.conf"})
    std::ofstream(layout_.conf_folder() + "/" + name) << "";
  auto names = list_containers(layout_);
  ASSERT_TRUE(names);
  EXPECT_THAT(*names, ElementsAre("forge", "h-a", "h-b"));
}

TEST(ContainerNames, AreTheAgentOrTheFullName) {
  EXPECT_EQ(container_of("iris"), "h-iris");
  EXPECT_EQ(container_of("h-iris"), "h-iris");
  EXPECT_EQ(agent_of("h-iris"), "iris");
  for (const char* word : {"", "..", "h-..", "-x", "Iris", "a/b", "ten-letters", "a b", "h-", "iris\n", "%i"})
    EXPECT_FALSE(container_of(word)) << word;
}

TEST(FlagsRequest, CarriesTheFourFoldersAndTheBridge) {
  const Layout layout;
  const Record record{.name = "h-iris", .uid = 20001, .bridge = "hive0", .gateway_ip = "10.42.0.1", .hive_agent = {}};
  const std::string request = flags_request(record, layout);
  ASSERT_TRUE(json::validate(request));
  EXPECT_THAT(request, HasSubstr(R"("container": "h-iris")"));
  EXPECT_THAT(request, HasSubstr(R"("host_path": "/var/lib/hyperhive/agents/iris/claude", )"
                                 R"("container_path": "/home/iris/.claude", "read_only": false)"));
  EXPECT_THAT(request, HasSubstr(R"("isolation": {"bridge": "hive0", "gateway_ip": "10.42.0.1"})"));
  EXPECT_THAT(request, Not(HasSubstr("\n")));
}

TEST(GuestAgentConfig, PointsToTheKeyAsTheGuestSeesIt) {
  auto made = guest_agent_config(
      R"({"agent_id": "iris", "private_key_path": "/var/lib/x/id", "known_host_key_path": "/var/lib/x/id.h", "allowed_commands": []})",
      "/agents/iris/state/id", R"([{"name": "df"}])");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(*made, HasSubstr(R"("private_key_path": "/agents/iris/state/id")"));
  EXPECT_THAT(*made, HasSubstr(R"("known_host_key_path": "/agents/iris/state/id.gateway_hostkey")"));
  EXPECT_THAT(*made, HasSubstr(R"("allowed_commands": [{"name": "df"}])"));
  EXPECT_THAT(*made, Not(HasSubstr("/var/lib/x")));
  EXPECT_TRUE(json::validate(*made));
}

TEST(GuestAgentConfig, RefusesAProfileThatIsNoArray) {
  EXPECT_FALSE(guest_agent_config("{}", "/k", "{\"name\": 1}"));
  EXPECT_FALSE(guest_agent_config("{}", "/k", "[1] trailing"));
}

}  // namespace
}  // namespace hive::container
