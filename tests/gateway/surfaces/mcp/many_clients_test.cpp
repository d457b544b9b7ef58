#include <thread>

#include "gateway/surfaces/mcp/core_fixture.h"

namespace hive::mcp_surface::test {
namespace {

class ManyClientsTest : public CoreTest {
 protected:
  /// One client after another: asks, withdraws every third request, listens, and goes while something may be running.
  void be_clients(int number) {
    for (int round = 0; round < 60; ++round) {
      policy::Principal who = admin(fmt::format("client-{}", number));
      net::Worker& worker = runtime.next_worker();
      auto session = core->open_session(client(who));
      ASSERT_NE(session, nullptr);
      auto initialized = std::make_shared<FakeReply>();
      session->request(worker, client(who),
                       legacy_text("initialize", R"({"protocolVersion":"2025-11-25","capabilities":{"roots":{}},)"
                                                 R"("clientInfo":{"name":"n","version":"1"}})"),
                       initialized);
      ASSERT_NE(initialized->answer(), "");
      session->set_unsolicited([](const std::string&) {});
      std::vector<std::shared_ptr<FakeReply>> wanted;
      for (int id = 1; id <= 6; ++id) {
        auto reply = std::make_shared<FakeReply>();
        const char* call = id % 2 == 0 ? R"({"name":"first"})" : R"({"name":"edge-1__get_metrics"})";
        auto running =
            session->request(worker, client(who), legacy_text("tools/call", call, std::to_string(id)), reply);
        if (id % 3 != 0) {
          wanted.push_back(reply);
        } else if (running != nullptr) {
          running->cancel("not wanted any more");
        }
      }
      auto listening = std::make_shared<FakeReply>();
      auto stream = core->request(runtime.next_worker(), client(who),
                                  modern_text("subscriptions/listen", R"({"notifications":{"toolsListChanged":true}})"),
                                  listening);
      ASSERT_EQ(listening->sent(1).size(), 1u);
      core->fleet_changed();
      for (const auto& reply : wanted)
        ASSERT_NE(reply->answer(), "");
      stream->cancel("done");
      session->close();
    }
  }
};

TEST_F(ManyClientsTest, NobodyWaitsForAnAnswerInVainAndNothingIsLeftBehind) {
  funnel.answer = [](const calls::Call&) { return success(R"({"content":[]})"); };
  start();
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([this, number] { be_clients(number); });
  for (std::thread& thread : threads)
    thread.join();
  std::vector<std::shared_ptr<Session>> sessions;
  for (int i = 0; i < 64; ++i) {
    sessions.push_back(core->open_session(client(admin("client-0"))));
    ASSERT_NE(sessions.back(), nullptr) << i;
  }
}

}  // namespace
}  // namespace hive::mcp_surface::test
