#include "priv/request.h"

#include <gtest/gtest.h>

namespace hive::priv {
namespace {

using namespace std::string_view_literals;

Code code_of(std::string_view line) {
  auto parsed = parse_request(line);
  EXPECT_FALSE(parsed.has_value()) << line.substr(0, 200);
  return parsed ? Code::internal : parsed.error().code;
}

TEST(RequestTest, S06_S07_ReadsTheSeedsRequest) {
  auto parsed = parse_request(
      R"({"op": "write_nspawn_flags", "container": "h-iris", "binds": [{"host_path": "/var/lib/hyperhive/agents/iris/work",)"
      R"( "container_path": "/agents/iris/work", "read_only": false}], "isolation": {"bridge": "hive0", "gateway_ip": "10.42.0.1"}})");
  ASSERT_TRUE(parsed.has_value());
  const auto& request = std::get<WriteFlagsRequest>(parsed->request);
  EXPECT_EQ(request.container, "h-iris");
  ASSERT_EQ(request.binds.size(), 1U);
  EXPECT_EQ(request.binds[0].host_path, "/var/lib/hyperhive/agents/iris/work");
  EXPECT_EQ(request.binds[0].container_path, "/agents/iris/work");
  EXPECT_FALSE(request.binds[0].read_only);
  ASSERT_TRUE(request.isolation.has_value());
  EXPECT_EQ(request.isolation->bridge, "hive0");
  EXPECT_EQ(container_of(parsed->request), "h-iris");
}

TEST(RequestTest, ReadsEveryOperationOfTheTable) {
  for (std::string_view line :
       {R"({"op":"ping"})", R"({"op":"container_status","container":"h-a"})", R"({"op":"start","container":"h-a"})",
        R"({"op":"stop","container":"h-a"})", R"({"op":"list_salvages","container":"h-a"})", R"({"op":"janitor"})",
        R"({"op":"write_nspawn_flags","container":"h-a","binds":[],"isolation":null})"}) {
    EXPECT_TRUE(parse_request(line).has_value()) << line;
  }
}

TEST(RequestTest, WhatIsNotInTheTableIsUnknown) {
  EXPECT_EQ(code_of(R"({"op":"exec","container":"h-a"})"), Code::unknown_op);
  EXPECT_EQ(code_of(R"({"op":"Ping"})"), Code::unknown_op);
  EXPECT_EQ(code_of(R"({"op":""})"), Code::unknown_op);
}

TEST(RequestTest, OnlyRootMayHaveTheJanitorRemove) {
  auto look = parse_request(R"({"op":"janitor","remove":false})");
  auto remove = parse_request(R"({"op":"janitor","remove":true})");
  ASSERT_TRUE(look.has_value() && remove.has_value());
  EXPECT_EQ(look->operation->needs(look->request), Permission::peer);
  EXPECT_EQ(remove->operation->needs(remove->request), Permission::root);
}

TEST(RequestTest, C11_WhatIsNoStrictRequestIsRefused) {
  std::string deep = R"({"op":"ping","x":)" + std::string(17, '[') + std::string(17, ']') + "}";
  std::string large = R"({"op":"ping","x":")" + std::string(max_request_bytes, 'a') + R"("})";
  for (
      std::string_view bad :
      {""sv,
       "ping"sv,
       "[]"sv,
       "{}"sv,
       R"({"op":"ping"} x)"sv,
       R"({"op":"ping"}{"op":"ping"})"sv,
       R"({"op":"ping","op":"ping"})"sv,
       R"({"op":"ping","\u006fp":"stop"})"sv,
       R"({"op":1})"sv,
       R"({"op":["ping"]})"sv,
       R"({"op":"ping","extra":1})"sv,
       R"({"op":"pi\u0000ng"})"sv,
       "{\"op\":\"pi\0ng\"}"sv,
       "{\"op\":\"\xff\"}"sv,
       "{\"op\":\"\xc0\xaf\"}"sv,
       R"({"op":"start"})"sv,
       R"({"op":"start","container":null})"sv,
       R"({"op":"start","container":1e400})"sv,
       R"({"op":"start","container":"h-a","force":true})"sv,
       R"({"op":"janitor","remove":"yes"})"sv,
       R"({"op":"write_nspawn_flags","container":"h-a"})"sv,
       R"({"op":"write_nspawn_flags","container":"h-a","binds":{}})"sv,
       R"({"op":"write_nspawn_flags","container":"h-a","binds":[1]})"sv,
       R"({"op":"write_nspawn_flags","container":"h-a","binds":[{}]})"sv,
       R"({"op":"write_nspawn_flags","container":"h-a","binds":[{"host_path":"/a","container_path":"/b","x":1}]})"sv,
       R"({"op":"write_nspawn_flags","container":"h-a","binds":[{"host_path":"/a\u0000","container_path":"/b"}]})"sv,
       R"({"op":"write_nspawn_flags","container":"h-a","binds":[],"isolation":[]})"sv,
       R"({"op":"write_nspawn_flags","container":"h-a","binds":[],"isolation":{"bridge":"b"}})"sv,
       R"({"op":"write_nspawn_flags","container":"h-a","binds":[],"isolation":{"bridge":"b","gateway_ip":"1.2.3.4","x":0}})"sv,
       std::string_view(deep),
       std::string_view(large)}) {
    EXPECT_EQ(code_of(bad), Code::bad_request) << bad.substr(0, 120);
  }
}

TEST(RequestTest, C11_AtMost64Binds) {
  auto line = [](int count) {
    std::string binds;
    for (int i = 0; i < count; ++i)
      binds += std::string(i == 0 ? "" : ",") + R"({"host_path":"/a","container_path":"/b"})";
    return R"({"op":"write_nspawn_flags","container":"h-a","binds":[)" + binds + "]}";
  };
  EXPECT_TRUE(parse_request(line(64)).has_value());
  EXPECT_EQ(code_of(line(65)), Code::bad_request);
}

TEST(RequestTest, ARefusalNamesTheFieldAndEscapesWhatItShows) {
  auto parsed = parse_request("{\"op\":\"ping\",\"\\u001b[2J\":1}");
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().message.find('\x1b'), std::string::npos);
  auto missing = parse_request(R"({"op":"write_nspawn_flags","container":"h-a","binds":[{"host_path":"/a"}]})");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().message, "binds[0].container_path is missing");
}

}  // namespace
}  // namespace hive::priv
