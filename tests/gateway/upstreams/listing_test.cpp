#include "gateway/upstreams/registry_fixture.h"
#include "gateway/upstreams/uri_template.h"

namespace hive::upstreams {
namespace {

using test::FakeServers;
using test::RegistryTest;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(UriTemplateTest, MatchesWhatMayHaveBeenMadeFromIt) {
  EXPECT_TRUE(UriTemplate("file:///{name}").matches("file:///a.txt"));
  EXPECT_TRUE(UriTemplate("test://template/{id}/data").matches("test://template/7/data"));
  EXPECT_TRUE(UriTemplate("file:///{+path}").matches("file:///a/b/c"));
  EXPECT_TRUE(UriTemplate("find://x{?q,limit}").matches("find://x?q=1&limit=2"));
  EXPECT_TRUE(UriTemplate("find://x{?q}").matches("find://x"));
  EXPECT_TRUE(UriTemplate("a:{x}-{y}").matches("a:1-2-3"));
  EXPECT_TRUE(UriTemplate("a:{x,y}").matches("a:1,2"));
}

TEST(UriTemplateTest, DoesNotMatchWhatItCannotMake) {
  EXPECT_FALSE(UriTemplate("file:///{name}").matches("file:///"));
  EXPECT_FALSE(UriTemplate("file:///{name}").matches("file:///a/b"));
  EXPECT_FALSE(UriTemplate("file:///{name}").matches("file:///a?x"));
  EXPECT_FALSE(UriTemplate("file:///{name}/end").matches("file:///a"));
  EXPECT_FALSE(UriTemplate("file:///{name}").matches("http:///a"));
  for (std::string_view bad : {"", "{", "}", "a{}", "a{b", "a}b", "{a{b}}"}) {
    EXPECT_FALSE(UriTemplate(bad).matches("a")) << bad;
    EXPECT_FALSE(UriTemplate(bad).matches("")) << bad;
  }
}

TEST(UriTemplateTest, TakesNoLongForWhatIsMadeToTakeLong) {
  std::string text = "a:";
  for (int k = 0; k < 8; ++k)
    text += "{+x}a";
  EXPECT_FALSE(UriTemplate(text + "b").matches("a:" + std::string(2000, 'a')));
  EXPECT_FALSE(UriTemplate(text + "{x}{y}").matches("a:aaaaaaaaaaaaaaaaaaa"));
  EXPECT_FALSE(UriTemplate("a:{x}").matches("a:" + std::string(100'000, 'a')));
}

TEST(ListingPageTest, LeavesOutWhatBreaksTheRulesAndSaysSo) {
  auto page = parse_listing_page(ItemKind::tools, R"({"tools":[1,{"name":7},{"name":"","inputSchema":{}},{"name":"x"},
      {"name":"a\u202eb","inputSchema":{}},{"name":"good","inputSchema":{}},{"name":"y","inputSchema":[]}]})",
                                 {});
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_THAT(page->items, SizeIs(1));
  EXPECT_EQ(page->items[0].name, "good");
  EXPECT_EQ(page->left_out_count, 6U);
  EXPECT_THAT(page->left_out, Contains(HasSubstr("the tool \"x\" has no inputSchema")));
  for (std::string_view bad : {"[]", "{}", R"({"tools":{}})", R"({"tools":[],"nextCursor":7})"}) {
    EXPECT_FALSE(parse_listing_page(ItemKind::tools, bad, {})) << bad;
  }
  auto resources =
      parse_listing_page(ItemKind::resources, R"({"resources":[{"uri":"hive://fleet"},{"uri":"x:y"}]})", {});
  ASSERT_TRUE(resources);
  EXPECT_THAT(resources->items, SizeIs(1));
}

TEST_F(RegistryTest, StopsAtWhatOneServerMayList) {
  tuning.listing.max_items = 3;
  for (int k = 0; k < 9; ++k)
    servers.lists["tools"].push_back(FakeServers::tool("t" + std::to_string(k)));
  servers.page_size = 2;
  start();
  ASSERT_TRUE(offers({"git__t0", "git__t1", "git__t2"}));
  EXPECT_THAT(status().notes, Contains(HasSubstr("tools/list: more than 3 entries")));
  EXPECT_EQ(servers.count("tools/list"), 2U);
}

TEST_F(RegistryTest, StopsAtTheBytesOfOneServer) {
  tuning.listing.max_bytes = 300;
  servers.lists["tools"] = {FakeServers::tool("a", std::string(100, 'x')),
                            FakeServers::tool("b", std::string(100, 'x'))};
  start();
  ASSERT_TRUE(offers({"git__a"}));
}

TEST_F(RegistryTest, IsNotLedInCircles) {
  servers.lists["tools"] = {FakeServers::tool("a")};
  servers.endless_cursor = "again";
  start();
  ASSERT_TRUE(offers({"git__a"}));
  EXPECT_EQ(servers.count("tools/list"), 2U);
  EXPECT_THAT(status().notes, Contains(HasSubstr("the server repeats itself")));
}

TEST_F(RegistryTest, GathersAFloodOfChanges) {
  tuning.refresh_pause = std::chrono::milliseconds(100);
  servers.lists["tools"] = {FakeServers::tool("a")};
  config.upstreams[0].pin_tools = false;
  start();
  ASSERT_TRUE(offers({"git__a"}));
  std::size_t before = servers.count("tools/list");
  auto begin = std::chrono::steady_clock::now();
  servers.set([](FakeServers& all) { all.lists["tools"] = {FakeServers::tool("b")}; });
  for (int k = 0; k < 2000; ++k)
    servers.say(servers.link(0), "notifications/tools/list_changed", "{}");
  ASSERT_TRUE(offers({"git__b"}));
  // One for each pause in which changes came, however long a busy machine takes to tell of 2,000.
  std::size_t asked = servers.count("tools/list") - before;
  auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(asked, static_cast<std::size_t>(took / tuning.refresh_pause) + 3);
  EXPECT_TRUE(eventually([&] {
    std::lock_guard lock(events_mutex);
    return std::ranges::any_of(changes, &Change::tools);
  }));
}

TEST_F(RegistryTest, KeepsWhatItKnowsWhenAListCannotBeRead) {
  servers.lists["prompts"] = {R"({"name":"p"})"};
  start();
  ASSERT_TRUE(eventually([&] { return registry->find_prompt("git__p").has_value(); }));
  servers.set([](FakeServers& all) { all.list_error = R"({"code":-32603,"message":"no \u001b[31m database"})"; });
  servers.say(servers.link(0), "notifications/prompts/list_changed", "{}");
  ASSERT_TRUE(eventually([&] { return !status().notes.empty(); }));
  EXPECT_THAT(status().notes[0],
              AllOf(HasSubstr("prompts/list: the server says"), HasSubstr("no "), testing::Not(HasSubstr("\x1b"))));
  EXPECT_TRUE(registry->find_prompt("git__p"));
  servers.set([](FakeServers& all) {
    all.list_error.reset();
    all.lists["prompts"] = {R"({"name":"q"})"};
  });
  EXPECT_TRUE(eventually([&] { return registry->find_prompt("git__q").has_value() && status().notes.empty(); }));
}

TEST_F(RegistryTest, AsksOnlyForWhatIsDeclared) {
  servers.info.capabilities = R"({"prompts":{}})";
  servers.lists["prompts"] = {R"({"name":"p"})"};
  start();
  ASSERT_TRUE(eventually([&] { return registry->find_prompt("git__p").has_value(); }));
  EXPECT_EQ(servers.count("tools/list"), 0U);
  EXPECT_EQ(servers.count("resources/list"), 0U);
}

TEST_F(RegistryTest, GivesANameToTheFirstWhoHasItAndTellsOfTheOther) {
  config.upstreams = {upstream("one"), upstream("two")};
  config.upstreams[0].prefix = "";
  servers.tools_of["one"] = {FakeServers::tool("a"), FakeServers::tool("edge-1__run_command")};
  servers.tools_of["two"] = {FakeServers::tool("b")};
  servers.lists["resources"] = {R"({"uri":"x:1"})"};
  start();
  ASSERT_TRUE(offers({"a", "two__b"}));
  ASSERT_TRUE(eventually([&] { return status("two").notes.size() == 1; }));
  EXPECT_THAT(status("one").notes, ElementsAre(HasSubstr("\"edge-1__run_command\" is left out: without a prefix")));
  EXPECT_THAT(status("two").notes[0], HasSubstr("the upstream server \"one\" has \"x:1\" already"));
  EXPECT_EQ(registry->find_resource("x:1")->upstream, "one");
}

TEST_F(RegistryTest, WatchesAResourceAsLongAsSomebodyWantsIt) {
  servers.lists["resources"] = {R"({"uri":"x:1"})", R"({"uri":"x:2"})"};
  start();
  ASSERT_TRUE(eventually([&] { return registry->find_resource("x:1").has_value(); }));
  EXPECT_EQ(registry->watch_resource("x:3"), nullptr);
  auto one = registry->watch_resource("x:1");
  auto again = registry->watch_resource("x:1");
  ASSERT_NE(one, nullptr);
  auto watched = [&] {
    auto link = servers.link(servers.opened() - 1);
    std::lock_guard lock(servers.mutex);
    return link->watched;
  };
  ASSERT_TRUE(eventually([&] { return watched() == std::vector<std::string>{"x:1"}; }));
  servers.say(servers.link(0), "notifications/resources/updated", R"({"uri":"x:2"})");
  servers.say(servers.link(0), "notifications/resources/updated", R"({"uri":"x:1"})");
  ASSERT_TRUE(eventually([&] {
    std::lock_guard lock(events_mutex);
    return std::ranges::any_of(changes, [](const Change& change) { return change.updated_resource == "x:1"; });
  }));
  {
    std::lock_guard lock(events_mutex);
    EXPECT_FALSE(std::ranges::any_of(changes, [](const Change& change) { return change.updated_resource == "x:2"; }));
  }
  // A new session is told again.
  servers.drop(servers.link(0), {ErrorCode::io, "gone"});
  ASSERT_TRUE(eventually([&] { return servers.opened() == 2 && watched() == std::vector<std::string>{"x:1"}; }));
  one.reset();
  again.reset();
  EXPECT_TRUE(eventually([&] { return watched().empty(); }));
}

TEST_F(RegistryTest, SendsParametersAsHeadersWhereAModernServerWantsThem) {
  servers.info.revision = mcp::Revision::v2026_07_28;
  servers.lists["tools"] = {
      R"({"name":"sql","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}})",
      R"({"name":"bad","inputSchema":{"type":"object","properties":{"x":{"type":"number","x-mcp-header":"X"}}}})"};
  start();
  ASSERT_TRUE(offers({"git__sql"}));
  EXPECT_THAT(status().notes, Contains(HasSubstr("the tool \"bad\" is left out")));
  (void)send(nullptr, "git", {}, "tools/call", R"({"name":"sql","arguments":{"region":"us-west1"}})").reply();
  auto headers = servers.last("tools/call")->headers;
  ASSERT_THAT(headers, SizeIs(1));
  EXPECT_EQ(headers[0].second, "us-west1");
}

TEST_F(RegistryTest, TellsNobodyWhoHasStoppedListening) {
  listening.reset();
  servers.lists["tools"] = {FakeServers::tool("a")};
  start();
  listening.reset();
  ASSERT_TRUE(offers({"git__a"}));
  std::mutex mutex;
  int heard = 0;
  auto handle = registry->listen([&](const Change&) {
    std::lock_guard lock(mutex);
    ++heard;
  });
  registry->apply(config);
  servers.drop(servers.link(0), {ErrorCode::io, "gone"});
  ASSERT_TRUE(eventually([&] { return status().restarts == 1; }));
  handle.reset();
  EXPECT_THAT(tools(), ElementsAre("git__a"));
}

}  // namespace
}  // namespace hive::upstreams
