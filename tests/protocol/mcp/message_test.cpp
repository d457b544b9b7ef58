#include "protocol/mcp/message.h"

#include <string>

#include <gtest/gtest.h>

namespace hive::mcp {
namespace {

Fault fault_of(std::string_view text) {
  auto message = parse_message(text);
  EXPECT_FALSE(message.has_value()) << text.substr(0, 200);
  return message ? Fault{.code = 0} : message.error();
}

TEST(MessageTest, TakesARequestApart) {
  auto message = parse_message(R"( {"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":{"name":"x"}})");
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->kind, MessageKind::request);
  EXPECT_EQ(message->id, R"("a-1")");
  EXPECT_EQ(message->method, "tools/call");
  EXPECT_EQ(message->params, R"({"name":"x"})");
}

TEST(MessageTest, TellsNotificationsResultsAndErrorsApart) {
  auto notification = parse_message(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  ASSERT_TRUE(notification.has_value());
  EXPECT_EQ(notification->kind, MessageKind::notification);
  EXPECT_EQ(notification->id, "");
  EXPECT_EQ(notification->params, "");

  auto result = parse_message(R"({"jsonrpc":"2.0","id":3,"result":{"tools":[]}})");
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->kind, MessageKind::response);
  EXPECT_EQ(result->id, "3");
  EXPECT_EQ(result->body, R"({"tools":[]})");

  auto error = parse_message(R"({"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no"}})");
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->kind, MessageKind::error_response);
  EXPECT_EQ(error->body, R"({"code":-1,"message":"no"})");
}

TEST(MessageTest, ReadsAnErrorWithoutIdAndOneWithTheNullIdOfJsonRpc) {
  for (std::string_view text : {R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}})",
                                R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}})"}) {
    auto error = parse_message(text);
    ASSERT_TRUE(error.has_value()) << text;
    EXPECT_EQ(error->kind, MessageKind::error_response);
    EXPECT_EQ(error->id, "");
  }
}

TEST(MessageTest, AnswersWhatIsJsonButNoMessageWithInvalidRequest) {
  for (std::string_view text :
       {"{}", "null", "17", "\"text\"", R"({"jsonrpc":"1.0","method":"ping"})", R"({"id":1,"method":"ping"})",
        R"({"jsonrpc":2.0,"id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1})",
        R"({"jsonrpc":"2.0","id":1,"method":7})", R"({"jsonrpc":"2.0","id":1,"method":""})",
        R"({"jsonrpc":"2.0","id":1,"method":"m","result":{}})", R"({"jsonrpc":"2.0","id":1,"result":{},"error":{}})",
        R"({"jsonrpc":"2.0","id":1,"result":7})", R"({"jsonrpc":"2.0","id":1,"error":"no"})",
        R"({"jsonrpc":"2.0","result":{}})", R"({"jsonrpc":"2.0","id":null,"result":{}})"}) {
    Fault fault = fault_of(text);
    EXPECT_EQ(fault.code, -32600) << text;
    EXPECT_EQ(fault.http_status, 400U) << text;
  }
}

TEST(MessageTest, EchoesAnIdOnlyIfItIsAStringOrAnInteger) {
  EXPECT_EQ(fault_of(R"({"jsonrpc":"1.0","id":7,"method":"ping"})").id, "7");
  EXPECT_EQ(fault_of(R"({"jsonrpc":"1.0","id":"7","method":"ping"})").id, R"("7")");
  for (std::string_view id : {"true", "null", "{}", "[1]", "1.5", "1e3", "1.0"}) {
    Fault fault = fault_of(R"({"jsonrpc":"2.0","method":"ping","id":)" + std::string(id) + "}");
    EXPECT_EQ(fault.code, -32600) << id;
    EXPECT_EQ(fault.id, "") << id;
    EXPECT_FALSE(encode_fault(fault).contains("\"id\"")) << id;
  }
}

TEST(MessageTest, TakesZeroAndVeryLargeIntegersAsIds) {
  for (std::string_view id : {"0", "-1", "9223372036854775807", "123456789012345678901234567890"}) {
    auto message = parse_message(R"({"jsonrpc":"2.0","method":"ping","id":)" + std::string(id) + "}");
    ASSERT_TRUE(message.has_value()) << id;
    EXPECT_EQ(message->kind, MessageKind::request) << id;
  }
}

TEST(MessageTest, BoundsIdsAndMethods) {
  std::string long_id = '"' + std::string(300, 'i') + '"';
  EXPECT_EQ(fault_of(R"({"jsonrpc":"2.0","method":"ping","id":)" + long_id + "}").code, -32600);
  std::string long_method = std::string(300, 'm');
  Fault fault = fault_of(R"({"jsonrpc":"2.0","id":1,"method":")" + long_method + "\"}");
  EXPECT_EQ(fault.code, -32600);
  EXPECT_EQ(fault.id, "1");
}

TEST(MessageTest, AnswersABatchOnceAndWithoutAnInventedId) {
  Fault fault = fault_of(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])");
  EXPECT_EQ(fault.code, -32600);
  EXPECT_EQ(fault.id, "");
}

TEST(MessageTest, AnswersParamsThatAreNoObjectWithInvalidParamsAndTheSameId) {
  for (std::string_view params : {"\"x\"", "[]", "null", "1"}) {
    Fault fault = fault_of(R"({"jsonrpc":"2.0","id":"q","method":"tools/list","params":)" + std::string(params) + "}");
    EXPECT_EQ(fault.code, -32602) << params;
    EXPECT_EQ(fault.id, R"("q")") << params;
  }
}

TEST(MessageTest, RefusesDuplicateKeysHoweverTheyAreWritten) {
  EXPECT_EQ(fault_of(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"})").code, -32700);
  EXPECT_EQ(fault_of(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","metho\u0064":"tools/call"})").code, -32700);
  EXPECT_EQ(fault_of(R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"a","name":"b"}})").code, -32700);
}

TEST(MessageTest, RefusesWhatIsNestedTooDeeplyBeforeBuildingAnything) {
  EXPECT_EQ(fault_of(std::string(1200, '[')).code, -32700);
  EXPECT_EQ(fault_of(std::string(3000, '[')).code, -32700);
  std::string objects;
  for (int i = 0; i < 100'000; ++i)
    objects += "{\"a\":";
  EXPECT_EQ(fault_of(objects).code, -32700);
}

TEST(MessageTest, RefusesAByteOrderMarkAndSaysSo) {
  Fault fault = fault_of("\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
  EXPECT_EQ(fault.code, -32700);
  EXPECT_TRUE(fault.message.contains("byte order mark"));
}

TEST(MessageTest, TakesALineThatEndsInACarriageReturn) {
  EXPECT_TRUE(parse_message("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r").has_value());
}

TEST(MessageTest, RefusesTextsThatAreNoJson) {
  for (std::string_view text : {"", " ", "starting server...", "{\"jsonrpc\":\"2.0\"", "{} {}", "\xff"})
    EXPECT_EQ(fault_of(text).code, -32700) << text;
}

TEST(MessageTest, RefusesATooLargeMessageWithItsOwnStatus) {
  std::string text = R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"a":")";
  text += std::string(message_limits.max_bytes, 'x') + "\"}}";
  Fault fault = fault_of(text);
  EXPECT_EQ(fault.code, -32700);
  EXPECT_EQ(fault.http_status, 413U);
}

TEST(BatchTest, IsSplitIntoItsMessages) {
  std::string text = R"( [ {"jsonrpc":"2.0","id":1,"method":"ping"} , 7 ] )";
  EXPECT_TRUE(is_batch(text));
  EXPECT_FALSE(is_batch("{}"));
  EXPECT_FALSE(is_batch(""));
  auto elements = split_batch(text);
  ASSERT_TRUE(elements.has_value());
  ASSERT_EQ(elements->size(), 2U);
  EXPECT_EQ(elements->front(), R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  EXPECT_EQ(parse_message(elements->back()).error().code, -32600);
}

TEST(BatchTest, HasOneTo64Messages) {
  EXPECT_EQ(split_batch("[]").error().code, -32600);
  EXPECT_EQ(split_batch("{}").error().code, -32600);
  EXPECT_EQ(split_batch("[1,").error().code, -32700);
  std::string many = "[0";
  for (int i = 1; i < 64; ++i)
    many += ",0";
  EXPECT_TRUE(split_batch(many + "]").has_value());
  EXPECT_EQ(split_batch(many + ",0]").error().code, -32600);
}

TEST(IdKeyTest, IsEqualForEqualTypeAndValue) {
  EXPECT_NE(id_key("1"), id_key("\"1\""));
  EXPECT_EQ(id_key("\"a\""), id_key("\"\\u0061\""));
  EXPECT_EQ(id_key("0"), id_key("-0"));
  EXPECT_NE(id_key("1"), id_key("-1"));
  EXPECT_NE(id_key("\"i1\""), id_key("1"));
}

}  // namespace
}  // namespace hive::mcp
