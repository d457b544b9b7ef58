#include <string>

#include <gtest/gtest.h>

#include "protocol/mcp/message.h"

namespace hive::mcp {
namespace {

TEST(EncodeTest, PutsMessagesTogether) {
  EXPECT_EQ(encode_request("7", "ping", {}), R"({"jsonrpc":"2.0","id":7,"method":"ping"})");
  EXPECT_EQ(encode_request("\"x\"", "m", R"({"a":1})"), R"({"jsonrpc":"2.0","id":"x","method":"m","params":{"a":1}})");
  EXPECT_EQ(encode_notification("notifications/x", "{}"),
            R"({"jsonrpc":"2.0","method":"notifications/x","params":{}})");
  EXPECT_EQ(encode_result("7", R"({"tools":[]})"), R"({"jsonrpc":"2.0","id":7,"result":{"tools":[]}})");
  EXPECT_EQ(encode_error("7", -32601, "no \"x\"", {}),
            R"({"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no \"x\""}})");
  EXPECT_EQ(encode_error_body("7", R"({"code":1,"message":"m"})"),
            R"({"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}})");
}

TEST(EncodeTest, SendsNoIdWhereThereIsNone) {
  EXPECT_EQ(encode_fault({.code = -32700, .message = "m", .data = R"({"x":1})"}),
            R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"m","data":{"x":1}}})");
}

TEST(EncodeTest, BreaksNoLineWhateverTheRawJsonLooksLike) {
  EXPECT_EQ(encode_request("1", "m", "{\r\n  \"a\": \"b\\n\"\n}"),
            R"({"jsonrpc":"2.0","id":1,"method":"m","params":{    "a": "b\n" }})");
  for (const std::string& message : {encode_result("1", "{\n}"), encode_error_body("1", "{\r}"),
                                     encode_error("1", 1, "a\nb", "[\n]"), encode_notification("n\n", "{\n}")})
    EXPECT_EQ(message.find_first_of("\r\n"), std::string::npos) << message;
}

TEST(EncodeTest, EscapesTheSeparatorsThatSomeReadersTakeForTheEndOfALine) {
  EXPECT_EQ(encode_result("1", "{\"a\":\"x\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\x94y\"}"),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"x\\u2028\\u2029\xe2\x80\x94y\"}}");
}

}  // namespace
}  // namespace hive::mcp
