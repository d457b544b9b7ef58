#include "gateway/surfaces/mcp/core_fixture.h"

namespace hive::mcp_surface::test {
namespace {

class SessionTest : public CoreTest {
 protected:
  static std::string initialize(std::string_view version) {
    return R"({"protocolVersion":")" + std::string(version) +
           R"(","capabilities":{},"clientInfo":{"name":"desk","version":"2"}})";
  }
};

TEST_F(SessionTest, AKnownRevisionIsKeptAnyOtherBecomesTheNewestWithSessions) {
  start();
  for (auto [wanted, given] : {std::pair("2024-11-05", "2024-11-05"), std::pair("2025-03-26", "2025-03-26"),
                               std::pair("2025-06-18", "2025-06-18"), std::pair("2025-11-25", "2025-11-25"),
                               std::pair("2026-07-28", "2025-11-25"), std::pair("1999-01-01", "2025-11-25")}) {
    auto session = core->open_session(client(admin()));
    EXPECT_FALSE(session->is_initialized());
    boost::json::value result = legacy(session, "initialize", initialize(wanted)).result();
    EXPECT_EQ(result.at("protocolVersion").as_string(), given);
    EXPECT_EQ(result.at("serverInfo").at("name").as_string(), "myrmex-hive");
    EXPECT_EQ(mcp::to_string(session->revision()), given);
    EXPECT_TRUE(session->is_initialized());
  }
}

TEST_F(SessionTest, InitializeComesFirstOnceAndWhole) {
  start();
  auto session = core->open_session(client(admin()));
  EXPECT_EQ(session->id().size(), 32u);
  EXPECT_EQ(session->owner(), "root");
  EXPECT_EQ(legacy(session, "tools/list").code(), -32600);
  EXPECT_TRUE(legacy(session, "ping").result().is_object());
  EXPECT_EQ(legacy(session, "initialize", R"({"protocolVersion":"2025-11-25"})").code(), -32602);
  EXPECT_TRUE(legacy(session, "initialize", initialize("2025-11-25")).result().is_object());
  EXPECT_EQ(legacy(session, "initialize", initialize("2025-03-26")).code(), -32600);
  EXPECT_EQ(session->revision(), mcp::Revision::v2025_11_25);
}

TEST_F(SessionTest, AnIdThatIsInFlightIsRefusedWithoutDisturbingTheFirst) {
  start();
  auto session = open();
  Asked first = send_legacy(session, legacy_text("tools/call", R"({"name":"edge-1__get_metrics"})", "7"));
  Asked second = send_legacy(session, legacy_text("tools/call", R"({"name":"edge-1__get_metrics"})", "7"));
  EXPECT_EQ(second.code(), -32600);
  EXPECT_EQ(second.answer().at("id").as_int64(), 7);
  // A string is another id than a number.
  Asked other = send_legacy(session, legacy_text("ping", "{}", "\"7\""));
  EXPECT_TRUE(other.result().is_object());
  funnel.at(0)->end(success(R"({"content":[]})"));
  EXPECT_TRUE(first.result().is_object());
  Asked again = send_legacy(session, legacy_text("ping", "{}", "7"));
  EXPECT_TRUE(again.result().is_object());
  EXPECT_EQ(funnel.count(), 1u);
}

TEST_F(SessionTest, TwelveClientsMayUseTheSameIdAtOnce) {
  start();
  std::vector<Asked> all;
  std::vector<std::shared_ptr<Session>> sessions;
  for (int i = 0; i < 12; ++i) {
    sessions.push_back(open());
    all.push_back(legacy(sessions.back(), "tools/call", R"({"name":"edge-1__get_metrics"})"));
  }
  for (std::size_t i = 12; i-- > 0;)
    funnel.at(i)->end(success(fmt::format(R"({{"content":[{{"type":"text","text":"{}"}}]}})", i)));
  for (std::size_t i = 0; i < 12; ++i)
    EXPECT_EQ(all[i].text(), std::to_string(i));
}

TEST_F(SessionTest, ACancelledNotificationWithdrawsItsRequestAlone) {
  start();
  auto session = open();
  auto notify = [&](std::string_view params) {
    session->accept(client(admin()),
                    R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":)" + std::string(params) + "}");
  };
  Asked asked = send_legacy(session, legacy_text("tools/call", R"({"name":"edge-1__get_metrics"})", "5"));
  auto running = funnel.at(0);
  for (const char* foreign : {"{}", R"({"requestId":null})", R"({"requestId":6})", R"({"requestId":"5"})",
                              R"({"requestId":{}})", R"({"requestId":1,"reason":7})"})
    notify(foreign);
  session->accept(client(admin()), "nonsense");
  session->accept(client(admin()), R"({"jsonrpc":"2.0","method":"notifications/roots/list_changed"})");
  EXPECT_EQ(funnel.at(0)->cancelled_because, "");
  notify(R"({"requestId":5,"reason":"enough"})");
  EXPECT_EQ(running->cancellation(), "withdrawn by the client: enough");
  running->end(success(R"({"content":[]})"));
  ASSERT_TRUE(legacy(session, "ping").result().is_object());
  EXPECT_FALSE(asked.reply->has_answer());
}

TEST_F(SessionTest, AClientThatGoesTakesItsCallsAlong) {
  start();
  auto session = open();
  Asked asked = send_legacy(session, legacy_text("tools/call", R"({"name":"first"})", "5"));
  auto running = funnel.at(0);
  session->close();
  EXPECT_EQ(running->cancellation(), "the client has gone");
  EXPECT_EQ(upstreams.forgotten(), std::vector<std::string>{"session:" + session->id()});
  EXPECT_EQ(send_legacy(session, legacy_text("ping", "{}", "6")).code(), -32600);
}

TEST_F(SessionTest, SessionsAreBoundedForEveryIdentity) {
  start();
  std::vector<std::shared_ptr<Session>> sessions;
  for (int i = 0; i < 64; ++i)
    sessions.push_back(core->open_session(client(admin())));
  EXPECT_NE(sessions.back(), nullptr);
  EXPECT_EQ(core->open_session(client(admin())), nullptr);
  EXPECT_NE(core->open_session(client(admin("bob"))), nullptr);
  sessions.pop_back();
  EXPECT_NE(core->open_session(client(admin())), nullptr);
}

TEST_F(SessionTest, BeginningAndEndStandInTheAuditLogButNobodyFloodsIt) {
  start();
  open()->close();
  std::vector<audit::Record> records = log.records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].action, "mcp_session_opened");
  EXPECT_EQ(records[0].principal, "root");
  EXPECT_EQ(records[0].surface, "mcp-http");
  EXPECT_NE(records[0].detail.find("2025-11-25"), std::string::npos);
  EXPECT_EQ(records[1].action, "mcp_session_closed");
  for (int i = 0; i < 100; ++i)
    open()->close();
  EXPECT_EQ(log.records().size(), 60u);
  clock.advance(std::chrono::minutes(1));
  open()->close();
  EXPECT_NE(log.records().at(60).detail.find("142 more"), std::string::npos) << log.records().at(60).detail;
}

TEST_F(SessionTest, RequestsInFlightAreBounded) {
  start();
  auto session = open();
  std::vector<Asked> all;
  for (int i = 0; i < 256; ++i) {
    all.push_back(
        send_legacy(session, legacy_text("tools/call", R"({"name":"edge-1__get_metrics"})", std::to_string(i + 10))));
  }
  EXPECT_EQ(send_legacy(session, legacy_text("ping", "{}", "5")).code(), -32600);
}

}  // namespace
}  // namespace hive::mcp_surface::test
