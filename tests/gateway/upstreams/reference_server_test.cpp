#include "gateway/upstreams/reference_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/upstreams/session_fixture.h"

/// The session against a correct server of both eras, over every transport.
namespace hive::upstreams {
namespace {

using test::FakeCaller;
using testing::AllOf;
using testing::HasSubstr;

struct Way {
  TransportKind transport;
  std::string era;
};

void PrintTo(const Way& way, std::ostream* out) {
  *out << way.era;
}

std::string name_of(const testing::TestParamInfo<Way>& info) {
  std::string transport = info.param.transport == TransportKind::stdio  ? "Stdio"
                          : info.param.transport == TransportKind::http ? "Http"
                                                                        : "Sse";
  return transport + "_" + info.param.era;
}

class ReferenceServerTest : public test::SessionTest, public testing::WithParamInterface<Way> {
 protected:
  ConnectionOptions options() {
    ConnectionOptions options = options_for(GetParam().transport);
    options.capabilities = R"({"sampling":{},"elicitation":{},"roots":{}})";
    if (options.transport == TransportKind::stdio) {
      options.command = "node";
      options.arguments = {test::reference_server_path(), "--stdio", "--era", GetParam().era};
      return options;
    }
    if (!server_) server_ = std::make_unique<test::ReferenceServer>(std::vector<std::string>{"--era", GetParam().era});
    options.url = server_->origin() + (options.transport == TransportKind::http ? "/mcp" : "/sse");
    return options;
  }
  [[nodiscard]] bool is_modern() const {
    return GetParam().transport != TransportKind::sse && GetParam().era != "legacy";
  }

  std::unique_ptr<test::ReferenceServer> server_;
};

TEST_P(ReferenceServerTest, AgreesOnTheNewestRevisionOfBoth) {
  ServerInfo info = open_ready(options());
  EXPECT_EQ(info.revision, is_modern() ? mcp::Revision::v2026_07_28 : mcp::Revision::v2025_11_25);
  EXPECT_EQ(info.name, "hive-conformance-fixture");
  EXPECT_EQ(info.version, "1.0.0");
  EXPECT_THAT(info.instructions, HasSubstr("fixture"));
  EXPECT_THAT(info.capabilities, HasSubstr("\"tools\""));
}

TEST_P(ReferenceServerTest, BringsResultsAndErrorsAsTheServerSentThem) {
  open_ready(options());
  Reply echoed = call_tool("fixture_echo", R"({"message":"a\nb \u00e9"})");
  EXPECT_EQ(echoed.kind, ReplyKind::result);
  EXPECT_THAT(echoed.body, HasSubstr(R"(a\nb é)"));
  Reply failed = call("resources/read", R"({"uri":"test://none"})");
  EXPECT_EQ(failed.kind, ReplyKind::error);
  EXPECT_THAT(failed.body, AllOf(HasSubstr(is_modern() ? "-32602" : "-32002"), HasSubstr("test://none")));
  Reply unknown = call("no/such", "{}");
  EXPECT_EQ(unknown.kind, ReplyKind::error);
  EXPECT_THAT(unknown.body, HasSubstr("-32601"));
  EXPECT_FALSE(is_closed());
}

TEST_P(ReferenceServerTest, KeepsManyRequestsApart) {
  open_ready(options());
  std::vector<std::shared_ptr<test::Pending>> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(send("tools/call", fmt::format(R"({{"name":"fixture_echo","arguments":{{"message":"<{}>"}}}})", i)));
  }
  for (int i = 0; i < 100; ++i)
    EXPECT_THAT(all[static_cast<std::size_t>(i)]->wait().body, HasSubstr(fmt::format("<{}>", i)));
}

TEST_P(ReferenceServerTest, TellsTheCallerOfProgressBeforeTheResultAndWithoutAToken) {
  open_ready(options());
  auto caller = std::make_shared<FakeCaller>();
  caller->progress = true;
  EXPECT_EQ(call_tool("test_tool_with_progress", "{}", caller).kind, ReplyKind::result);
  auto told = caller->told();
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0].first, "notifications/progress");
  EXPECT_THAT(told[2].second, AllOf(HasSubstr("\"progress\":100"), testing::Not(HasSubstr("progressToken"))));
}

TEST_P(ReferenceServerTest, AsksForNoProgressThatNobodyWants) {
  open_ready(options());
  auto caller = std::make_shared<FakeCaller>();
  EXPECT_EQ(call_tool("test_tool_with_progress", "{}", caller).kind, ReplyKind::result);
  EXPECT_TRUE(caller->told().empty());
}

TEST_P(ReferenceServerTest, TellsTheCallerOfLogMessagesFromItsLevelOn) {
  open_ready(options());
  auto caller = std::make_shared<FakeCaller>();
  caller->level = "info";
  EXPECT_EQ(call_tool("test_tool_with_logging", "{}", caller).kind, ReplyKind::result);
  EXPECT_EQ(caller->told().size(), 3U);
  auto quiet = std::make_shared<FakeCaller>();
  quiet->level = "error";
  EXPECT_EQ(call_tool("test_tool_with_logging", "{}", quiet).kind, ReplyKind::result);
  EXPECT_TRUE(quiet->told().empty());
}

TEST_P(ReferenceServerTest, PutsQuestionsOfTheServerToTheCaller) {
  open_ready(options());
  auto caller = std::make_shared<FakeCaller>(R"({"sampling":{},"elicitation":{}})");
  caller->answer = R"({"action":"accept","content":{"username":"alice","email":"alice@example.com"}})";
  Reply reply = call_tool("test_elicitation", R"({"message":"Who are you?"})", caller);
  EXPECT_EQ(reply.kind, ReplyKind::result);
  if (is_modern()) {
    EXPECT_THAT(reply.body, HasSubstr("input_required")) << "the modern era's answer is for the caller to see";
    return;
  }
  ASSERT_EQ(caller->asked().size(), 1U);
  EXPECT_EQ(caller->asked()[0].first, "elicitation/create");
  EXPECT_THAT(caller->asked()[0].second, HasSubstr("Who are you?"));
  EXPECT_THAT(reply.body, HasSubstr("accept"));
}

TEST_P(ReferenceServerTest, TellsTheServerThatNobodyCanBeAsked) {
  open_ready(options());
  Reply reply = call_tool("test_elicitation", R"({"message":"Who are you?"})", std::make_shared<FakeCaller>());
  EXPECT_TRUE(reply.kind == ReplyKind::error || reply.body.find("isError") != std::string::npos) << reply.body;
}

TEST_P(ReferenceServerTest, CancelsARequestAtTheServer) {
  open_ready(options());
  auto caller = std::make_shared<FakeCaller>();
  caller->progress = true;
  auto slow = send("tools/call", R"({"name":"fixture_slow","arguments":{"duration":60,"steps":600}})", caller);
  ASSERT_TRUE(caller->wait_told(1)) << "it runs";
  connection_->cancel(slow->ticket, "not needed any more");
  EXPECT_EQ(slow->wait().kind, ReplyKind::unconfirmed);
  std::string counters;
  for (int tries = 0; tries < 100 && counters.find("\"cancelled\":1") == std::string::npos; ++tries)
    counters = call_tool("fixture_counters").body;
  EXPECT_THAT(counters, AllOf(HasSubstr("\"cancelled\":1"), HasSubstr("\"running\":0")));
}

TEST_P(ReferenceServerTest, GivesUpARequestThatTakesTooLong) {
  open_ready(options());
  Reply reply = call("tools/call", R"({"name":"fixture_slow","arguments":{"duration":60}})", nullptr,
                     std::chrono::milliseconds(100));
  EXPECT_EQ(reply.kind, ReplyKind::timed_out);
  EXPECT_EQ(call_tool("fixture_echo", R"({"message":"still here"})").kind, ReplyKind::result);
}

TEST_P(ReferenceServerTest, HearsOfChanges) {
  open_ready(options());
  connection_->watch_resources({"test://watched-resource"});
  auto has_heard = [this] {
    bool tools = false;
    bool resource = false;
    for (const auto& [method, params] : notifications_) {
      tools = tools || method == "notifications/tools/list_changed";
      resource = resource || (method == "notifications/resources/updated" &&
                              params.find("test://watched-resource") != std::string::npos);
    }
    return tools && resource;
  };
  // Subscribing takes the server a moment, so the change is repeated until it is heard of.
  bool heard = false;
  for (int tries = 0; tries < 100 && !heard; ++tries) {
    call_tool("test_trigger_tool_change");
    call_tool("fixture_update_watched");
    std::unique_lock lock(mutex_);
    heard = changed_.wait_for(lock, std::chrono::milliseconds(50), has_heard);
  }
  EXPECT_TRUE(heard);
}

TEST_P(ReferenceServerTest, AnswersWhatIsUnderWayWhenTheServerDies) {
  open_ready(options());
  auto caller = std::make_shared<FakeCaller>();
  caller->progress = true;
  auto slow = send("tools/call", R"({"name":"fixture_slow","arguments":{"duration":60,"steps":600}})", caller);
  ASSERT_TRUE(caller->wait_told(1));
  pid_t pid = server_ ? server_->pid() : connection_->process_id().value_or(-1);
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGKILL);
  Reply reply = slow->wait();
  EXPECT_EQ(reply.kind, ReplyKind::lost) << reply.reason;
  EXPECT_FALSE(reply.detail.empty());
  EXPECT_FALSE(wait_closed().message.empty());
}

TEST_P(ReferenceServerTest, AnswersWhatIsUnderWayWhenItIsClosed) {
  open_ready(options());
  auto slow = send("tools/call", R"({"name":"fixture_slow","arguments":{"duration":60}})");
  auto echo = call_tool("fixture_echo", R"({"message":"x"})");
  connection_->close();
  EXPECT_EQ(slow->wait().kind, ReplyKind::lost);
  EXPECT_EQ(call_tool("fixture_echo").kind, ReplyKind::not_sent);
  EXPECT_FALSE(is_closed()) << "the owner need not be told what it did itself";
}

INSTANTIATE_TEST_SUITE_P(EveryWay, ReferenceServerTest,
                         testing::Values(Way{TransportKind::stdio, "both"}, Way{TransportKind::stdio, "legacy"},
                                         Way{TransportKind::stdio, "modern"}, Way{TransportKind::http, "both"},
                                         Way{TransportKind::http, "legacy"}, Way{TransportKind::http, "modern"},
                                         Way{TransportKind::sse, "legacy"}),
                         name_of);

/// What only one transport in one era has.
class HttpReferenceServerTest : public test::SessionTest {
 protected:
  static ConnectionOptions options(const test::ReferenceServer& server) {
    ConnectionOptions options = options_for(TransportKind::http);
    options.url = server.origin() + "/mcp";
    return options;
  }
};

TEST_F(HttpReferenceServerTest, GetsTheAnswerOfAStreamThatBroke) {
  test::ReferenceServer server({"--era", "legacy"});
  open_ready(options(server));
  EXPECT_THAT(call_tool("test_reconnection").body, HasSubstr("resumed"));
}

TEST_F(HttpReferenceServerTest, NamesWhatAModernHttpServerWantsInHeaders) {
  test::ReferenceServer server({"--era", "modern"});
  open_ready(options(server));
  auto pending = std::make_shared<test::Pending>();
  ConnectionRequest request{.method = "tools/call",
                            .params = R"({"name":"fixture_region","arguments":{"region":"eu"}})",
                            .caller = nullptr,
                            .headers = {{"Mcp-Param-Region", "eu"}}};
  request.done = [pending](Reply reply) { pending->set(std::move(reply)); };
  connection_->request(std::move(request));
  EXPECT_THAT(pending->wait().body, HasSubstr("Region: eu"));
}

}  // namespace
}  // namespace hive::upstreams
