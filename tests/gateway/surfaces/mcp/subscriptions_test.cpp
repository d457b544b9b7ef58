#include "gateway/surfaces/mcp/subscriptions.h"

#include <future>

#include "gateway/surfaces/mcp/core_fixture.h"

namespace hive::mcp_surface::test {
namespace {

/// What a client hears that belongs to no request.
class Ear {
 public:
  void hear(std::string message) {
    std::lock_guard lock(mutex_);
    heard_.push_back(std::move(message));
    changed_.notify_all();
  }
  std::vector<std::string> heard(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return heard_.size() >= count; });
    return heard_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> heard_;
};

class SubscriptionsTest : public CoreTest {
 protected:
  Asked listen(std::string_view notifications, policy::Principal who = admin(), std::string_view id = "\"sub\"") {
    Asked asked =
        send_modern(modern_text("subscriptions/listen", R"({"notifications":)" + std::string(notifications) + "}", id),
                    std::move(who));
    EXPECT_EQ(asked.reply->sent(1).size(), 1u);
    return asked;
  }
  /// Waits until everything that has happened so far was told.
  void settle() {
    Asked barrier = listen(R"({"promptsListChanged":true})");
    upstreams.tell({.tools = false, .prompts = true, .resources = false, .updated_resource = {}});
    EXPECT_EQ(barrier.reply->sent(2).size(), 2u);
    barrier.running->cancel("done");
    // Whoever is told in the same round is told by the time that another task of the worker runs.
    std::promise<void> told;
    runtime.worker(0).post([&] { told.set_value(); });
    told.get_future().wait();
  }
};

TEST_F(SubscriptionsTest, ASubscriptionIsAcknowledgedFirstWithWhatIsHonoured) {
  start();
  Asked asked = listen(
      R"({"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["test://one","test://two",)"
      R"("hive://fleet","hive://agents/edge-1","hive://agents/nobody"]})");
  boost::json::value first = parsed(asked.reply->sent(1).at(0));
  EXPECT_EQ(first.at("method").as_string(), "notifications/subscriptions/acknowledged");
  EXPECT_EQ(first.at("params").at("_meta").at("io.modelcontextprotocol/subscriptionId").as_string(), "sub");
  EXPECT_EQ(
      boost::json::serialize(first.at("params").at("notifications")),
      R"({"toolsListChanged":true,"resourceSubscriptions":["hive://agents/edge-1","hive://fleet","test://one"]})");
  EXPECT_FALSE(asked.reply->has_answer());
  EXPECT_EQ(upstreams.watches(), 1u);
  asked.running->cancel("gone");
  settle();
  EXPECT_EQ(upstreams.watches(), 0u);
  EXPECT_FALSE(asked.reply->has_answer());
}

TEST_F(SubscriptionsTest, AMalformedFilterIsRefused) {
  start();
  for (const char* params : {"{}", R"({"notifications":[]})", R"({"notifications":{"resourceSubscriptions":7}})",
                             R"({"notifications":{"resourceSubscriptions":[7]}})"})
    EXPECT_EQ(modern("subscriptions/listen", params).code(), -32602) << params;
}

TEST_F(SubscriptionsTest, AgentsThatComeChangeTheListOnceHoweverMany) {
  start();
  Asked asked = listen(R"({"toolsListChanged":true})");
  add_agent("edge-3");
  add_agent("edge-4");
  core->fleet_changed();
  core->fleet_changed();
  std::vector<std::string> sent = asked.reply->sent(2);
  EXPECT_EQ(sent.at(1), R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":)"
                        R"({"io.modelcontextprotocol/subscriptionId":"sub"}}})");
  settle();
  EXPECT_EQ(asked.reply->sent_so_far().size(), 2u);
}

TEST_F(SubscriptionsTest, NothingOutsideOfFilterOrScopeIsHeard) {
  start();
  Asked prompts_only = listen(R"({"promptsListChanged":true})");
  Asked out_of_scope = listen(R"({"toolsListChanged":true,"resourcesListChanged":true})", scoped());
  Asked all = listen(R"({"toolsListChanged":true})");
  add_agent("edge-3");
  core->fleet_changed();
  EXPECT_EQ(all.reply->sent(2).size(), 2u);
  upstreams.tell({.tools = true, .prompts = false, .resources = true, .updated_resource = {}});
  EXPECT_EQ(all.reply->sent(3).size(), 3u);
  settle();
  EXPECT_EQ(prompts_only.reply->sent_so_far().size(), 2u) << "of prompts alone";
  EXPECT_EQ(out_of_scope.reply->sent_so_far().size(), 1u);
}

TEST_F(SubscriptionsTest, AnUpdatedResourceIsToldToThoseWhoWatchIt) {
  start();
  Asked watcher = listen(R"({"resourceSubscriptions":["test://one"]})");
  Asked other = listen(R"({"resourceSubscriptions":["hive://fleet"]})");
  upstreams.tell({.tools = false, .prompts = false, .resources = false, .updated_resource = "test://one"});
  boost::json::value told = parsed(watcher.reply->sent(2).at(1));
  EXPECT_EQ(told.at("method").as_string(), "notifications/resources/updated");
  EXPECT_EQ(told.at("params").at("uri").as_string(), "test://one");
  settle();
  EXPECT_EQ(other.reply->sent_so_far().size(), 1u);
}

TEST_F(SubscriptionsTest, TheStateOfAnAgentIsAResourceThatCanBeWatched) {
  start();
  Asked first = listen(R"({"resourceSubscriptions":["hive://agents/edge-1"]})");
  Asked second = listen(R"({"resourceSubscriptions":["hive://agents/edge-2"]})");
  fleet.agents.at(1).online = false;
  core->fleet_changed();
  EXPECT_EQ(parsed(second.reply->sent(2).at(1)).at("params").at("uri").as_string(), "hive://agents/edge-2");
  settle();
  EXPECT_EQ(first.reply->sent_so_far().size(), 1u);
}

TEST_F(SubscriptionsTest, ToolsThatAnAgentNamesAfterItHasComeAreNoticed) {
  start();
  Asked asked = listen(R"({"toolsListChanged":true})");
  std::vector<rest::test::AgentTool> before = fleet.all_tools;
  add_agent("edge-3");
  std::vector<rest::test::AgentTool> after = std::exchange(fleet.all_tools, before);
  core->fleet_changed();
  settle();
  EXPECT_EQ(asked.reply->sent_so_far().size(), 1u);
  std::promise<void> put;
  runtime.worker(0).post([&] {
    fleet.all_tools = after;
    clock.advance(std::chrono::milliseconds(200));
    put.set_value();
  });
  put.get_future().wait();
  EXPECT_EQ(asked.reply->sent(2).size(), 2u);
}

TEST_F(SubscriptionsTest, ALegacyClientHearsOfChangesWhereItListens) {
  start();
  auto session = open();
  add_agent("edge-3");
  core->fleet_changed();
  settle();
  auto ear = std::make_shared<Ear>();
  session->set_unsolicited([ear](std::string message) { ear->hear(std::move(message)); });
  std::vector<std::string> missed = ear->heard(2);
  EXPECT_EQ(std::ranges::count(missed, R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})"), 1)
      << "what came before it listened";
  EXPECT_EQ(legacy(session, "resources/subscribe", R"({"uri":"test://one"})").result().as_object().size(), 0u);
  upstreams.tell({.tools = false, .prompts = false, .resources = false, .updated_resource = "test://one"});
  EXPECT_EQ(ear->heard(3).at(2),
            R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://one"}})");
  EXPECT_EQ(legacy(session, "resources/unsubscribe", R"({"uri":"test://one"})").result().as_object().size(), 0u);
  EXPECT_EQ(upstreams.watches(), 0u);
  EXPECT_EQ(legacy(session, "resources/subscribe", R"({"uri":"test://two"})").code(), -32002);
  session->close();
  std::size_t before = ear->heard(3).size();
  add_agent("edge-4");
  core->fleet_changed();
  settle();
  EXPECT_EQ(ear->heard(before).size(), before);
}

TEST_F(SubscriptionsTest, TheEndOfTheGatewayIsAnAnswer) {
  start();
  Asked asked = listen(R"({"toolsListChanged":true})");
  core->close();
  boost::json::value result = asked.result();
  EXPECT_EQ(result.at("resultType").as_string(), "complete");
  EXPECT_EQ(result.at("_meta").at("io.modelcontextprotocol/subscriptionId").as_string(), "sub");
}

TEST_F(SubscriptionsTest, SubscriptionsAreBoundedForEveryIdentity) {
  start();
  std::vector<Asked> all;
  for (int i = 0; i < 128; ++i)
    all.push_back(listen("{}"));
  Asked one_more = modern("subscriptions/listen", R"({"notifications":{}})");
  EXPECT_EQ(one_more.code(), -32603);
  EXPECT_EQ(one_more.reply->status(), 503u);
  for (Asked& asked : all)
    asked.running->cancel("done");
  (void)listen("{}");
}

}  // namespace
}  // namespace hive::mcp_surface::test
