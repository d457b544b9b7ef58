#include "gateway/surfaces/mcp/catalog_section.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace hive::mcp_surface {
namespace {

class CatalogSectionTest : public ::testing::Test {
 protected:
  static Entry entry(std::string name, std::string upstream = "git") {
    return {.name = std::move(name),
            .owner = Owner::upstream,
            .target = std::move(upstream),
            .own_name = "x",
            .gate = "x",
            .for_admins = false,
            .for_callers = false,
            .raw = std::make_shared<const std::string>("{}"),
            .digest = 1};
  }

  static Section::Agent agent(const std::string& id, const std::vector<std::string>& tools) {
    auto status = std::make_shared<fleet::AgentStatus>();
    status->id = id;
    auto list = std::make_shared<AgentTools>();
    for (const std::string& tool : tools) {
      list->tools.push_back({tool, std::make_shared<const std::string>("{}")});
      mix(list->digest, tool);
    }
    return {status, list};
  }

  static Section example() {
    Section section;
    section.add_agent(agent("a", {"one", "two"}));
    section.add_agent(agent("b", {"one"}));
    section.add_front(entry("front"));
    section.add_behind(entry("behind"));
    section.close();
    return section;
  }

  std::vector<std::string> names(const Section& section, const policy::Principal& principal, Section::Place from = {},
                                 std::size_t limit = 100) const {
    std::vector<std::string> names;
    section.visit(from, *policy_, principal, [&](const Entry& each, const Section::Place&) {
      names.push_back(each.name);
      return names.size() < limit;
    });
    return names;
  }

  static policy::Principal reaching(std::vector<std::string> agents, std::vector<std::string> tools) {
    policy::Grant grant;
    grant.scope = policy::Scope{.agents = std::move(agents), .tags = {}, .tools = std::move(tools), .field = "x"};
    return {.name = "token:x",
            .role = policy::Role::operator_,
            .grant = std::make_shared<const policy::Grant>(std::move(grant))};
  }

  std::shared_ptr<const policy::Policy> policy_ = policy::make_policy(config::GatewayConfig(), system_clock());
  policy::Principal admin_{.name = "root", .role = policy::Role::admin, .grant = nullptr};
};

TEST_F(CatalogSectionTest, ListsWhatIsInFrontThenTheAgentsToolsThenWhatIsBehind) {
  EXPECT_EQ(names(example(), admin_), (std::vector<std::string>{"front", "a__one", "a__two", "b__one", "behind"}));
}

TEST_F(CatalogSectionTest, FindsEveryNameThatItLists) {
  Section section = example();
  for (const std::string& name : names(section, admin_)) {
    ASSERT_TRUE(section.find(name)) << name;
    EXPECT_EQ(section.find(name)->name, name);
  }
  EXPECT_EQ(section.find("a__two")->target, "a");
  EXPECT_EQ(section.find("a__two")->own_name, "two");
  for (const char* name : {"", "a", "a__", "a__three", "c__one", "a__one__two", "__one"})
    EXPECT_FALSE(section.find(name)) << name;
}

TEST_F(CatalogSectionTest, FindsToolsWhoseNamesHadToBeShortened) {
  Section section;
  std::string long_id(64, 'x');
  section.add_agent(agent(long_id, {"run_command", "get_metrics"}));
  section.add_agent(agent("y", {std::string(64, 'z')}));
  section.close();
  std::vector<std::string> all = names(section, admin_);
  ASSERT_EQ(all.size(), 3u);
  for (const std::string& name : all) {
    EXPECT_LE(name.size(), 64u);
    ASSERT_TRUE(section.find(name)) << name;
  }
  EXPECT_EQ(section.find(all[1])->own_name, "get_metrics");
}

TEST_F(CatalogSectionTest, NoServerTakesANameOfAnAgent) {
  Section section;
  section.add_agent(agent("a", {"one"}));
  section.add_behind(entry("a__one"));
  section.close();
  EXPECT_EQ(names(section, admin_).size(), 1u);
  EXPECT_EQ(section.find("a__one")->owner, Owner::agent);
}

TEST_F(CatalogSectionTest, GoesOnBehindABookmarkThoughOthersHaveComeAndGone) {
  Section section = example();
  std::vector<std::string> marks;
  section.visit({}, *policy_, admin_, [&](const Entry&, const Section::Place& place) {
    marks.push_back(section.bookmark(place));
    return true;
  });
  std::vector<std::string> all = names(section, admin_);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    auto place = section.behind_bookmark(marks[i]);
    ASSERT_TRUE(place) << marks[i];
    EXPECT_EQ(names(section, admin_, *place),
              std::vector<std::string>(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end()));
  }
  Section later;
  later.add_agent(agent("a0", {"one"}));
  later.add_agent(agent("b", {"one"}));
  later.close();
  EXPECT_EQ(names(later, admin_, *later.behind_bookmark(marks[1])), (std::vector<std::string>{"a0__one", "b__one"}))
      << "agent a has gone";
  for (const char* mark : {"", "x", "a:", "a:x:b", "z:0:b", "a:-1:b", "aa:1:b"})
    EXPECT_FALSE(section.behind_bookmark(mark)) << mark;
}

TEST_F(CatalogSectionTest, ACallerSeesWhatItsScopeReaches) {
  Section section = example();
  EXPECT_EQ(names(section, reaching({"a"}, {"t*"})), std::vector<std::string>{"a__two"});
  EXPECT_EQ(names(section, reaching({"b", "git"}, {"*"})), (std::vector<std::string>{"front", "b__one", "behind"}));
}

TEST_F(CatalogSectionTest, ItsDigestChangesWithWhatACallerSeesAndWithNothingElse) {
  policy::Principal of_a = reaching({"a"}, {"*"});
  Section before = example();
  Section after;
  after.add_agent(agent("a", {"one", "two"}));
  after.add_agent(agent("b", {"one", "two"}));
  after.add_front(entry("front"));
  after.add_behind(entry("behind"));
  after.close();
  EXPECT_EQ(before.digest(), example().digest());
  EXPECT_NE(before.digest(), after.digest());
  EXPECT_EQ(before.digest_of_visible(*policy_, of_a), after.digest_of_visible(*policy_, of_a));
  EXPECT_NE(before.digest_of_visible(*policy_, admin_), after.digest_of_visible(*policy_, admin_));
}

}  // namespace
}  // namespace hive::mcp_surface
