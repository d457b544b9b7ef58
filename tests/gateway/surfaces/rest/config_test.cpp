#include "gateway/surfaces/rest/rest_fixture.h"

namespace hive::rest::test {
namespace {

class ConfigRouteTest : public RestTest {
 protected:
  std::string post(std::string_view body, std::string_view token = admin_token) {
    return send("POST", "/api/config", token, "", body);
  }
};

TEST_F(ConfigRouteTest, TheFileIsShownWithTheNumberOfTokens) {
  EXPECT_EQ(body_of(get("/api/config")), "{\n  \"listen_addr\": \":2222\",\n  \"tokens_count\": 3\n}\n");
  configuration.text = "{}";
  EXPECT_EQ(json_of(get("/api/config")).at("tokens_count").as_int64(), 3);
}

TEST_F(ConfigRouteTest, WhatWasShownCanBeSentBack) {
  std::string before = configuration.text;
  std::string shown(body_of(get("/api/config")));
  ASSERT_EQ(status_of(post(shown)), 200u);
  EXPECT_EQ(configuration.replaced, before);
  for (auto [sent, kept] : {std::pair(R"({"tokens_count": 3 , "a":1})", R"({ "a":1})"),
                            std::pair(R"({"a":1,"tokens_count":3,"b":{}})", R"({"a":1,"b":{}})"),
                            std::pair(R"({"tokens_count":3})", R"({})"), std::pair(R"({"a":1})", R"({"a":1})")}) {
    ASSERT_EQ(status_of(post(sent)), 200u) << sent;
    EXPECT_EQ(configuration.replaced, kept);
  }
}

TEST_F(ConfigRouteTest, AChangeNamesItsFieldsAndWhatNeedsARestart) {
  configuration.change = [](const std::string&) -> Result<ConfigurationStore::Change> {
    return ConfigurationStore::Change{{"listen_addr", "tokens"}, {"listen_addr"}, "{\"x\":1}"};
  };
  const boost::json::value body = json_of(post("{}"));
  EXPECT_TRUE(body.at("success").as_bool());
  EXPECT_EQ(body.at("changed").as_array().size(), 2u);
  EXPECT_EQ(body.at("restart_required").as_array().at(0).as_string(), "listen_addr");
  EXPECT_EQ(body.at("config").at("x").as_int64(), 1);
  EXPECT_EQ(configuration.replaced_by, text_at(json_of(get("/api/whoami")), "principal"));
}

TEST_F(ConfigRouteTest, AllProblemsOfABadOneAreTold) {
  configuration.change = [](const std::string&) -> Result<ConfigurationStore::Change> {
    return fail(ErrorCode::invalid_argument, "f.json:2: a: bad\nf.json:3: b: worse");
  };
  std::string response = post("{}");
  EXPECT_EQ(problem_code(response, 400), "invalid_config");
  EXPECT_EQ(text_at(json_of(response), "detail"), "f.json:2: a: bad; f.json:3: b: worse");
  configuration.change = [](const std::string&) -> Result<ConfigurationStore::Change> {
    return fail(ErrorCode::io, "disk full");
  };
  EXPECT_EQ(problem_code(post("{}"), 500), "config_unwritable");
}

TEST_F(ConfigRouteTest, WhatIsNoObjectOrTooLargeNeverReachesTheFile) {
  for (const char* body : {"", "x", "[]", "null", "{", R"({"a":1,"a":2})"})
    EXPECT_EQ(problem_code(post(body), 400), "invalid_config") << body;
  EXPECT_EQ(status_of(post("{\"a\":\"" + std::string((1 << 20) + 1, 'x') + "\"}")), 413u);
  EXPECT_EQ(configuration.replaced, "");
}

TEST_F(ConfigRouteTest, OnlyAdminsOfTheWholeFleetSeeOrChangeIt) {
  for (const std::string& token : {operator_token, reader_token}) {
    EXPECT_EQ(problem_code(get("/api/config", token), 403), "role");
    EXPECT_EQ(problem_code(post("{}", token), 403), "role");
  }
  EXPECT_EQ(problem_code(get("/api/config", scoped_admin_token), 403), "scope");
  EXPECT_EQ(problem_code(post("{}", scoped_admin_token), 403), "scope");
  EXPECT_EQ(configuration.replaced, "");
}

}  // namespace
}  // namespace hive::rest::test
