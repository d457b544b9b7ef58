#include <future>

#include "gateway/surfaces/mcp/core_fixture.h"

namespace hive::mcp_surface::test {
namespace {

constexpr std::string_view everything = R"({"elicitation":{},"sampling":{},"roots":{}})";
constexpr std::string_view form =
    R"({"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}})";
constexpr std::string_view accepted = R"({"action":"accept","content":{"name":"bob"}})";

/// Questions of upstreams on their way to clients of both eras. "first" is a tool of an upstream that speaks the older
/// revisions, "other__look" one of an upstream that speaks 2026-07-28.
class QuestionsTest : public CoreTest {
 protected:
  /// What an upstream hears in answer to its question.
  using Heard = std::shared_ptr<std::promise<Result<std::string>>>;
  static Heard ask(const std::shared_ptr<FakeFunnel::Running>& running, std::string method, std::string_view params) {
    auto heard = std::make_shared<std::promise<Result<std::string>>>();
    running->call.caller->ask(std::move(method), std::string(params),
                              [heard](Result<std::string> answer) { heard->set_value(std::move(answer)); });
    return heard;
  }
  static Result<std::string> answer_of(const Heard& heard) {
    auto future = heard->get_future();
    if (future.wait_for(patience) != std::future_status::ready) return fail(ErrorCode::timed_out, "nobody answered");
    return future.get();
  }
  Asked call(std::string_view params, std::string_view capabilities = everything, policy::Principal who = admin()) {
    return send_modern(modern_text("tools/call", params, "1", capabilities), std::move(who));
  }
  static std::string state_of(const Asked& asked) { return std::string(asked.result().at("requestState").as_string()); }
  static std::string retry(std::string_view state, std::string_view responses,
                           std::string_view call = R"({"name":"first","arguments":{"a":1,"b":2})") {
    return std::string(call) + R"(,"inputResponses":)" + std::string(responses) + R"(,"requestState":)" +
           json::encode_string(state) + "}";
  }
  static constexpr std::string_view first_call = R"({"name":"first","arguments":{"a":1,"b":2}})";
};

TEST_F(QuestionsTest, ALegacyClientIsAskedOnTheStreamOfItsRequest) {
  start();
  auto session = open(everything);
  Asked asked = legacy(session, "tools/call", first_call);
  auto running = funnel.at(0);
  EXPECT_EQ(running->call.caller->key(), "session:" + session->id());
  EXPECT_EQ(running->call.caller->capabilities(), everything);
  Heard heard = ask(running, "elicitation/create", form);
  boost::json::value question = parsed(asked.reply->sent(1).at(0));
  EXPECT_EQ(question.at("method").as_string(), "elicitation/create");
  EXPECT_EQ(question.at("params").at("message").as_string(), "Name?");
  std::string id(question.at("id").as_string());
  EXPECT_TRUE(id.starts_with("hive-"));
  session->accept(client(admin()), R"({"jsonrpc":"2.0","id":"hive-0","result":{}})");
  session->accept(client(admin()), R"({"jsonrpc":"2.0","id":")" + id + R"(","result":)" + std::string(accepted) + "}");
  EXPECT_EQ(answer_of(heard), std::string(accepted));
  running->end(success(R"({"content":[{"type":"text","text":"hello bob"}]})"));
  EXPECT_EQ(asked.text(), "hello bob");
}

TEST_F(QuestionsTest, WhatTheClientRefusesTheUpstreamHears) {
  start();
  auto session = open(everything);
  Asked asked = legacy(session, "tools/call", first_call);
  Heard heard = ask(funnel.at(0), "sampling/createMessage", "{}");
  std::string id(parsed(asked.reply->sent(1).at(0)).at("id").as_string());
  session->accept(client(admin()),
                  R"({"jsonrpc":"2.0","id":")" + id + R"(","error":{"code":-1,"message":"no, thanks"}})");
  EXPECT_EQ(answer_of(heard).error().message, "the client refused: no, thanks");
}

TEST_F(QuestionsTest, WhatTheClientDoesNotDeclareItIsNotAsked) {
  start();
  Asked old = legacy(open(R"({"roots":{}})"), "tools/call", first_call);
  EXPECT_EQ(answer_of(ask(funnel.at(0), "elicitation/create", form)).error().code, ErrorCode::permission_denied);
  EXPECT_EQ(answer_of(ask(funnel.at(0), "tools/list", "{}")).error().code, ErrorCode::invalid_argument);
  Asked modern = call(first_call, R"({"sampling":{}})");
  EXPECT_EQ(answer_of(ask(funnel.at(1), "elicitation/create", form)).error().code, ErrorCode::permission_denied);
  EXPECT_TRUE(old.reply->sent_so_far().empty());
  EXPECT_FALSE(modern.reply->has_answer());
}

TEST_F(QuestionsTest, WhatAModernClientLacksIsAnErrorOfItsOwn) {
  start();
  Asked asked = call(first_call, R"({"sampling":{}})");
  (void)answer_of(ask(funnel.at(0), "elicitation/create", form));
  funnel.at(0)->end(success(R"({"content":[{"type":"text","text":"cannot ask"}],"isError":true})"));
  EXPECT_EQ(asked.code(), -32021);
  EXPECT_EQ(asked.reply->status(), 400u);
  EXPECT_TRUE(asked.error().at("data").at("requiredCapabilities").at("elicitation").is_object());
  // An upstream that makes do without is not blamed for having asked.
  Asked makes_do = call(first_call, "{}");
  (void)answer_of(ask(funnel.at(1), "elicitation/create", form));
  funnel.at(1)->end(success(R"({"content":[{"type":"text","text":"fine"}]})"));
  EXPECT_EQ(makes_do.text(), "fine");
  Asked forbidden = call(R"({"name":"other__look"})", "{}");
  funnel.at(2)->end(
      success(R"({"resultType":"input_required","inputRequests":{"k":{"method":"roots/list","params":{}}}})"));
  EXPECT_EQ(forbidden.code(), -32021);
}

TEST_F(QuestionsTest, AnEndlessResultIsNotKeptForAClientThatIsAsked) {
  start();
  Asked asked = call(first_call);
  auto running = funnel.at(0);
  Heard name = ask(running, "elicitation/create", form);
  std::string state = state_of(asked);
  running->end(success(R"({"content":[{"type":"text","text":")" + std::string(2 << 20, 'x') + R"("}]})"));
  ASSERT_NE(modern("server/discover").reply->answer(), "");
  Asked retried = call(retry(state, R"({"user_name":)" + std::string(accepted) + "}"));
  EXPECT_EQ(retried.result().at("_meta").at("myrmex-hive/reason").as_string(), "result_too_large");
}

TEST_F(QuestionsTest, ALegacyClientHearsThatItsQuestionIsVoidWhenTheCallHasEnded) {
  start();
  auto session = open(everything);
  Asked asked = legacy(session, "tools/call", first_call);
  auto running = funnel.at(0);
  Heard heard = ask(running, "elicitation/create", form);
  std::string id(parsed(asked.reply->sent(1).at(0)).at("id").as_string());
  running->end(success(R"({"content":[]})"));
  ASSERT_NE(asked.reply->answer(), "");
  boost::json::value last = parsed(asked.reply->sent_so_far().back());
  EXPECT_EQ(last.at("method").as_string(), "notifications/cancelled");
  EXPECT_EQ(last.at("params").at("requestId").as_string(), id);
  EXPECT_FALSE(asked.reply->anything_after_the_end());
}

TEST_F(QuestionsTest, AModernClientIsAskedByTheEndOfARoundAndAnswersWithARetry) {
  start();
  Asked asked = call(first_call);
  auto running = funnel.at(0);
  Heard name = ask(running, "elicitation/create", form);
  Heard roots = ask(running, "roots/list", "{}");
  boost::json::value result = asked.result();
  EXPECT_EQ(result.at("resultType").as_string(), "input_required");
  EXPECT_EQ(result.at("inputRequests").at("user_name").at("method").as_string(), "elicitation/create");
  EXPECT_EQ(result.at("inputRequests").at("client_roots").at("method").as_string(), "roots/list");
  EXPECT_FALSE(result.as_object().contains("ttlMs"));
  // Other white space and another order of the arguments are the same request.
  Asked retried = call(retry(state_of(asked),
                             R"({"user_name":)" + std::string(accepted) + R"(,"client_roots":{"roots":[]},"more":1})",
                             R"({"name":"first","arguments":{ "b":2, "a":1 })"));
  EXPECT_EQ(answer_of(name), std::string(accepted));
  EXPECT_EQ(answer_of(roots), R"({"roots":[]})");
  running->end(success(R"({"content":[{"type":"text","text":"done"}]})"));
  EXPECT_EQ(retried.text(), "done");
  EXPECT_EQ(funnel.count(), 1u) << "the call was held, not made again";
}

TEST_F(QuestionsTest, WhatIsNotAnsweredIsAskedAgain) {
  start();
  Asked asked = call(first_call);
  auto running = funnel.at(0);
  Heard name = ask(running, "elicitation/create", form);
  Heard roots = ask(running, "roots/list", "{}");
  std::string state = state_of(asked);
  Asked second = call(retry(state, R"({"client_roots":{"roots":[]}})"));
  boost::json::value result = second.result();
  EXPECT_EQ(result.at("inputRequests").as_object().size(), 1u);
  EXPECT_TRUE(result.at("inputRequests").as_object().contains("user_name"));
  EXPECT_EQ(answer_of(roots), R"({"roots":[]})");
  EXPECT_NE(state_of(second), state);
  Asked third = call(retry(state_of(second), "{\"user_name\":" + std::string(accepted) + "}"));
  EXPECT_EQ(answer_of(name), std::string(accepted));
  running->end(success(R"({"content":[]})"));
  EXPECT_NE(third.reply->answer(), "");
}

TEST_F(QuestionsTest, AnAnswerOfTheWrongShapeIsRefusedAndMayComeAgain) {
  start();
  Asked asked = call(first_call);
  Heard name = ask(funnel.at(0), "elicitation/create", form);
  std::string state = state_of(asked);
  for (const char* wrong : {R"({"user_name":{"action":"perhaps"}})", R"({"user_name":[]})",
                            R"({"user_name":{"action":"accept","content":1}})", R"([])"}) {
    Asked refused = call(retry(state, wrong));
    EXPECT_EQ(refused.code(), -32602) << wrong;
  }
  (void)call(retry(state, R"({"user_name":{"action":"decline"}})"));
  EXPECT_EQ(answer_of(name), R"({"action":"decline"})");
}

TEST_F(QuestionsTest, AStateIsGoodForItsCallerItsRequestAndOnce) {
  start();
  Asked asked = call(first_call);
  Heard name = ask(funnel.at(0), "elicitation/create", form);
  std::string state = state_of(asked);
  const std::string good = "{\"user_name\":" + std::string(accepted) + "}";
  std::string tampered = state;
  tampered.back() = tampered.back() == '0' ? '1' : '0';
  EXPECT_EQ(call(retry(tampered, good)).code(), -32602);
  EXPECT_EQ(call(retry(state + "0", good)).code(), -32602);
  EXPECT_EQ(call(retry("tampered", good)).code(), -32602);
  EXPECT_EQ(call(retry(state, good), everything, admin("somebody else")).code(), -32602);
  EXPECT_EQ(call(retry(state, good, R"({"name":"first","arguments":{"a":1,"b":3})")).code(), -32602);
  EXPECT_EQ(call(R"({"name":"first","arguments":{"a":1,"b":2},"requestState":7})").code(), -32602);
  (void)call(retry(state, good));
  EXPECT_EQ(answer_of(name), std::string(accepted));
  EXPECT_EQ(call(retry(state, good)).code(), -32602);
  EXPECT_EQ(funnel.count(), 1u);
}

TEST_F(QuestionsTest, AnAnswerThatIsBroughtAlongAnswersTheQuestionOfItsNameOnce) {
  start();
  Asked asked = call(R"({"name":"first","inputResponses":{"user_name":)" + std::string(accepted) +
                     R"(,"client_roots":7,"more":{"action":"accept"}}})");
  EXPECT_EQ(answer_of(ask(funnel.at(0), "elicitation/create", form)), std::string(accepted));
  // One of the wrong shape is none, and the same question again has a name of its own.
  Heard roots = ask(funnel.at(0), "roots/list", "{}");
  Heard again = ask(funnel.at(0), "elicitation/create", form);
  boost::json::value result = asked.result();
  EXPECT_EQ(result.at("inputRequests").as_object().size(), 2u);
  EXPECT_TRUE(result.at("inputRequests").as_object().contains("client_roots"));
  EXPECT_TRUE(result.at("inputRequests").as_object().contains("user_name_2"));
  Asked retried = call(retry(state_of(asked), R"({"client_roots":{"roots":[]},"user_name_2":{"action":"decline"}})",
                             R"({"name":"first")"));
  EXPECT_EQ(answer_of(roots), R"({"roots":[]})");
  EXPECT_EQ(answer_of(again), R"({"action":"decline"})");
  funnel.at(0)->end(success(R"({"content":[{"type":"text","text":"done"}]})"));
  EXPECT_EQ(retried.text(), "done");
}

TEST_F(QuestionsTest, WhatALegacyUpstreamMissesInWordsAloneIsTheErrorOfTheModernRevision) {
  start();
  const std::string refused =
      R"_({"isError":true,"content":[{"type":"text","text":"Client does not support sampling (required for x)"}]})_";
  Asked lacks = call(first_call, "{}");
  funnel.at(0)->end(success(refused));
  EXPECT_EQ(lacks.code(), -32021);
  EXPECT_TRUE(lacks.error().at("data").at("requiredCapabilities").as_object().contains("sampling"));
  Asked has = call(first_call, R"({"sampling":{}})");
  funnel.at(1)->end(success(refused));
  EXPECT_TRUE(has.result().at("isError").as_bool()) << "what the client declares it does not lack";
  Asked old = legacy(open("{}"), "tools/call", first_call);
  funnel.at(2)->end(success(refused));
  EXPECT_TRUE(old.result().at("isError").as_bool()) << "the older revisions have no such error";
}

TEST_F(QuestionsTest, AHeldCallThatNobodyComesBackForIsWithdrawn) {
  start();
  Asked asked = call(first_call);
  auto running = funnel.at(0);
  Heard name = ask(running, "elicitation/create", form);
  std::string state = state_of(asked);
  clock.advance(std::chrono::minutes(6));
  Asked late = call(retry(state, "{\"user_name\":" + std::string(accepted) + "}"));
  EXPECT_EQ(late.code(), -32602);
  EXPECT_NE(late.error().at("message").as_string().find("expired"), std::string_view::npos);
  EXPECT_EQ(running->cancellation(), "the client did not answer in time");
}

TEST_F(QuestionsTest, ACallThatEndsWhileItIsHeldIsAnsweredAtTheRetry) {
  start();
  Asked asked = call(first_call);
  auto running = funnel.at(0);
  Heard name = ask(running, "elicitation/create", form);
  std::string state = state_of(asked);
  running->end(success(R"({"content":[{"type":"text","text":"never mind"}]})"));
  ASSERT_NE(modern("server/discover").reply->answer(), "");
  EXPECT_EQ(call(retry(state, "{\"user_name\":" + std::string(accepted) + "}")).text(), "never mind");
}

TEST_F(QuestionsTest, NobodyCanMakeTheGatewayHoldCallsWithoutEnd) {
  start();
  for (std::size_t i = 0; i < 50; ++i) {
    Asked asked = call(first_call);
    Heard heard = ask(funnel.at(i), "roots/list", "{}");
    ASSERT_EQ(asked.result().at("resultType").as_string(), "input_required");
  }
  Asked one_more = call(first_call);
  Heard heard = ask(funnel.at(50), "roots/list", "{}");
  EXPECT_TRUE(one_more.result().at("isError").as_bool());
  EXPECT_NE(funnel.at(50)->cancellation(), "");
  Asked of_another = call(first_call, everything, admin("bob"));
  Heard other = ask(funnel.at(51), "roots/list", "{}");
  EXPECT_EQ(of_another.result().at("resultType").as_string(), "input_required");
}

TEST_F(QuestionsTest, ACancelledRoundWithdrawsTheCall) {
  start();
  Asked asked = call(first_call);
  auto running = funnel.at(0);
  asked.running->cancel("gone");
  EXPECT_EQ(running->cancellation(), "gone");
}

TEST_F(QuestionsTest, BetweenModernEndsEverythingPassesByteForByte) {
  start();
  Asked asked = call(
      R"({"name":"other__look","arguments":{"x": 1},"inputResponses":{"k" :{"a":1.0}},"requestState":"their\u0020own"})");
  auto running = funnel.at(0);
  EXPECT_EQ(running->call.method, "tools/call");
  EXPECT_EQ(
      running->call.params,
      R"({"name":"look","arguments":{"x": 1},"inputResponses":{"k" :{"a":1.0}},"requestState":"their\u0020own"})");
  EXPECT_EQ(running->call.arguments, R"({"x": 1})");
  running->end(success(
      R"({"resultType":"input_required","inputRequests":{"k":{"method":"roots/list","params":{}}},"requestState":"s"})"));
  boost::json::value result = asked.result();
  EXPECT_EQ(result.at("requestState").as_string(), "s");
  EXPECT_TRUE(result.at("inputRequests").as_object().contains("k"));
}

TEST_F(QuestionsTest, TheQuestionsOfAModernUpstreamAreAskedOfALegacyClientAndTheCallIsMadeAgain) {
  start();
  auto session = open(everything);
  Asked asked = legacy(session, "tools/call", R"({"name":"other__look","arguments":{"x":1}})");
  funnel.at(0)->end(success(R"({"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create",)"
                            R"("params":{"message":"m"}}},"requestState":"st\u0061te"})"));
  boost::json::value question = parsed(asked.reply->sent(1).at(0));
  EXPECT_EQ(question.at("method").as_string(), "elicitation/create");
  session->accept(client(admin()), R"({"jsonrpc":"2.0","id":")" + std::string(question.at("id").as_string()) +
                                       R"(","result":)" + std::string(accepted) + "}");
  auto second = funnel.at(1);
  EXPECT_EQ(second->call.tool, "look");
  EXPECT_EQ(second->call.params, R"({"name":"look","arguments":{"x":1},"inputResponses":{"k":)" +
                                     std::string(accepted) + R"(},"requestState":"st\u0061te"})");
  second->end(success(R"({"resultType":"complete","content":[{"type":"text","text":"fine"}]})"));
  EXPECT_EQ(asked.text(), "fine");
  EXPECT_FALSE(asked.result().as_object().contains("resultType"));
}

TEST_F(QuestionsTest, AModernUpstreamThatAsksWhatALegacyClientCannotAnswerFailsTheCall) {
  start();
  Asked asked = legacy(open("{}"), "tools/call", R"({"name":"other__look"})");
  funnel.at(0)->end(
      success(R"({"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{}}}})"));
  EXPECT_TRUE(asked.result().at("isError").as_bool());
}

TEST_F(QuestionsTest, AnUpstreamThatAsksWithoutEndIsGivenUp) {
  funnel.answer = [](const calls::Call&) {
    return success(R"({"resultType":"input_required","inputRequests":{"k":{"method":"roots/list","params":{}}}})");
  };
  start();
  auto session = open(everything);
  Asked asked = legacy(session, "tools/call", R"({"name":"other__look"})");
  for (std::size_t round = 1; round <= 16; ++round) {
    std::vector<std::string> sent = asked.reply->sent(round);
    ASSERT_EQ(sent.size(), round);
    session->accept(client(admin()), R"({"jsonrpc":"2.0","id":")" +
                                         std::string(parsed(sent.back()).at("id").as_string()) +
                                         R"(","result":{"roots":[]}})");
  }
  EXPECT_TRUE(asked.result().at("isError").as_bool());
}

TEST_F(QuestionsTest, LogMessagesReachTheOneClientFromItsLevelOn) {
  start();
  constexpr std::string_view debug = R"({"level":"debug","data":"d"})";
  constexpr std::string_view warning = R"({"level":"warning","data":"w"})";
  Asked silent = call(first_call);
  auto running = funnel.at(0);
  EXPECT_EQ(running->call.caller->log_level(), std::nullopt);
  running->call.caller->notify("notifications/message", warning);
  Asked listening =
      send_modern(modern_text("tools/call", first_call, "2", "{}", R"(,"io.modelcontextprotocol/logLevel":"info")"));
  auto second = funnel.at(1);
  EXPECT_EQ(second->call.caller->log_level(), "info");
  second->call.caller->notify("notifications/message", debug);
  second->call.caller->notify("notifications/message", warning);
  second->call.caller->notify("notifications/nonsense", warning);
  EXPECT_EQ(listening.reply->sent(1).size(), 1u);
  auto session = open();
  ASSERT_EQ(legacy(session, "logging/setLevel", R"({"level":"debug"})").reply->answer(),
            R"({"jsonrpc":"2.0","id":1,"result":{}})");
  Asked old = legacy(session, "tools/call", first_call);
  funnel.at(2)->call.caller->notify("notifications/message", debug);
  EXPECT_EQ(old.reply->sent(1).size(), 1u);
  EXPECT_TRUE(silent.reply->sent_so_far().empty());
}

TEST_F(QuestionsTest, ProgressOfAnUpstreamIsForThoseWhoAskedForIt) {
  start();
  Asked without = call(first_call);
  EXPECT_FALSE(funnel.at(0)->call.caller->wants_progress());
  funnel.at(0)->call.caller->notify("notifications/progress", R"({"progress":1})");
  Asked with = send_modern(modern_text("tools/call", first_call, "2", "{}", R"(,"progressToken":7)"));
  EXPECT_TRUE(funnel.at(1)->call.caller->wants_progress());
  funnel.at(1)->call.caller->notify("notifications/progress", R"({"progress":1})");
  EXPECT_EQ(parsed(with.reply->sent(1).at(0)).at("params").at("progressToken").as_int64(), 7);
  EXPECT_TRUE(without.reply->sent_so_far().empty());
}

}  // namespace
}  // namespace hive::mcp_surface::test
