#include "config/gateway_upstreams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "config/gateway_fixture.h"

namespace hive::config {
namespace {

using test::problems_of;
using test::read_gateway;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// The problems of one server in external_mcp_servers.
std::string problems_of_server(std::string_view members) {
  return problems_of(fmt::format(R"("external_mcp_servers":[{{{}}}])", members));
}

TEST(GatewayUpstreams, AreReadWithAllTheySay) {
  Result<GatewayConfig> config = read_gateway(R"("upstream_servers":[{"name":"old","url":"https://a/sse"}],
    "external_mcp_servers":[
      {"name":"git","transport":"stdio","command":"npx","args":["-y","server-git",""],"env":{"KEY":"env:TOKEN","EMPTY":""},
       "prefix":"","timeout_seconds":90,"pin_tools":false},
      {"name":"web","transport":"http","url":"https://b/mcp","auth_token":"hush","headers":{"X-Api-Key":"hush-2"},
       "ca_cert_path":"ca.pem","prefix":"w","enabled":false}])");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->upstreams.size(), 3U);
  const UpstreamConfig& old = config->upstreams[0];
  EXPECT_EQ(old.transport, "sse");
  EXPECT_EQ(old.url, "https://a/sse");
  EXPECT_EQ(old.prefix, "old");
  EXPECT_TRUE(old.enabled && old.pin_tools);
  EXPECT_EQ(old.timeout.count(), 0);
  const UpstreamConfig& git = config->upstreams[1];
  EXPECT_EQ(git.command, "npx");
  EXPECT_THAT(git.arguments, ElementsAre("-y", "server-git", ""));
  EXPECT_EQ(git.environment.at("KEY").reveal(), "from-environment");
  EXPECT_EQ(git.environment.at("EMPTY").reveal(), "");
  EXPECT_EQ(git.prefix, "");
  EXPECT_EQ(git.timeout, std::chrono::seconds(90));
  EXPECT_FALSE(git.pin_tools);
  const UpstreamConfig& web = config->upstreams[2];
  EXPECT_EQ(web.auth_token.reveal(), "hush");
  EXPECT_EQ(web.headers.at("X-Api-Key").reveal(), "hush-2");
  EXPECT_EQ(web.ca_certificate_path, "/etc/ca.pem");
  EXPECT_EQ(web.prefix, "w");
  EXPECT_FALSE(web.enabled);
  EXPECT_EQ(web.field, "external_mcp_servers[1]");
  EXPECT_THAT(config->without_effect, IsEmpty());
  EXPECT_THAT(config->where("external_mcp_servers[1].url"), HasSubstr("/etc/gateway.json:5: "));
}

TEST(GatewayUpstreams, NeedWhatTheirTransportNeeds) {
  EXPECT_THAT(problems_of_server(R"("name":"x","transport":"pigeon")"),
              HasSubstr("external_mcp_servers[0].transport: expected one of stdio, sse, http, found \"pigeon\""));
  EXPECT_THAT(problems_of_server(R"("name":"x","transport":"stdio")"), HasSubstr("command is not set"));
  EXPECT_THAT(problems_of_server(R"("name":"x","transport":"stdio","command":"")"), HasSubstr("command is not set"));
  EXPECT_THAT(problems_of_server(R"("name":"x","transport":"http")"), HasSubstr("url is not set"));
  EXPECT_THAT(problems_of_server(R"("name":"x","transport":"sse","url":"https://a","command":"c")"),
              HasSubstr("command has no meaning for the transport sse"));
  EXPECT_THAT(problems_of_server(R"("name":"x","transport":"stdio","command":"c","auth_token":"t")"),
              HasSubstr("auth_token has no meaning for the transport stdio; hand secrets over in env"));
  EXPECT_THAT(problems_of_server(R"("name":"x","transport":"stdio","command":"./c")"), HasSubstr("is a relative path"));
}

// A file that the Go product wrote names every key of a server, with empty values.
TEST(GatewayUpstreams, TakeEmptyValuesForAbsentOnes) {
  EXPECT_EQ(problems_of_server(
                R"("name":"x","transport":"stdio","command":"c","args":null,"env":null,"url":"","auth_token":"")"),
            "");
  EXPECT_EQ(problems_of_server(
                R"("name":"x","transport":"sse","command":"","args":[],"env":{},"url":"https://a","auth_token":"")"),
            "");
}

TEST(GatewayUpstreams, AreTheOnlyOnesWithTheirNameAndPrefix) {
  EXPECT_THAT(problems_of(R"("upstream_servers":[{"name":"x","url":"https://a"},{"name":"x","url":"https://b"}])"),
              HasSubstr("upstream_servers[1]: another upstream server is called \"x\" as well: upstream_servers[0]"));
  EXPECT_THAT(problems_of(R"("upstream_servers":[{"name":"x","url":"https://a"}],
                             "external_mcp_servers":[{"name":"x","transport":"stdio","command":"c"}])"),
              HasSubstr("external_mcp_servers[0]: another upstream server is called \"x\""));
  EXPECT_THAT(
      problems_of(R"("upstream_servers":[{"name":"x","url":"https://a"},{"name":"y","url":"https://b","prefix":"x"}])"),
      HasSubstr("upstream_servers[1]: its prefix \"x\" is that of upstream_servers[0] as well"));
  EXPECT_THAT(problems_of(R"("upstream_servers":[{"name":"x","url":"https://a","prefix":""},
                                                 {"name":"y","url":"https://b","prefix":""}])"),
              HasSubstr("its prefix is empty, and so is that of upstream_servers[0]"));
}

TEST(GatewayUpstreams, AreNamedAsAgentsAre) {
  for (std::string_view name : {"gateway", "a__b", "", "a b", "-a"}) {
    EXPECT_THAT(problems_of(fmt::format(R"("upstream_servers":[{{"name":"{}","url":"https://a"}}])", name)),
                HasSubstr("upstream_servers[0].name: "))
        << name;
  }
  EXPECT_THAT(problems_of(R"("upstream_servers":[{"name":"x","url":"https://a","prefix":"gateway"}])"),
              HasSubstr("upstream_servers[0].prefix: "));
}

TEST(GatewayUpstreams, AreReachedOverTlsOrOnTheLoopback) {
  auto with_url = [](std::string_view url) {
    return problems_of(fmt::format(R"("upstream_servers":[{{"name":"x","url":"{}"}}])", url));
  };
  for (std::string_view url : {"https://a.example/mcp", "http://127.0.0.1:3000/mcp", "http://[::1]:3000/mcp",
                               "http://localhost:3000/sse", "https://a/mcp?key=1"}) {
    EXPECT_EQ(with_url(url), "") << url;
  }
  for (std::string_view url : {"http://a.example/mcp", "http://localhost.evil.example/", "http://10.0.0.1/"}) {
    EXPECT_THAT(with_url(url), HasSubstr("upstream_servers[0].url: must begin with https://")) << url;
  }
  EXPECT_THAT(with_url("ftp://a"), HasSubstr("is not a URL"));
  EXPECT_THAT(with_url("https://u:p@a/"), HasSubstr("must not hold a user name"));
  EXPECT_THAT(with_url("https://a/#x"), HasSubstr("is not a URL of a server"));
  EXPECT_THAT(with_url("http://[/"), HasSubstr("upstream_servers[0].url: "));
}

TEST(GatewayUpstreams, CannotOverrideWhatTheProtocolSays) {
  for (std::string_view header : {"Mcp-Session-Id", "HOST", "content-length", "a b", "x:y", ""}) {
    std::string problems = problems_of_server(
        fmt::format(R"("name":"x","transport":"http","url":"https://a","headers":{{"{}":"hush"}})", header));
    EXPECT_THAT(problems, AllOf(HasSubstr("is not a header that may be added"), Not(HasSubstr("hush")))) << header;
  }
  EXPECT_THAT(problems_of_server(R"("name":"x","transport":"http","url":"https://a","auth_token":"t",
                                    "headers":{"authorization":"Basic x"})"),
              HasSubstr("auth_token and headers.Authorization are one header"));
  EXPECT_THAT(problems_of_server(R"("name":"x","transport":"stdio","command":"c","env":{"A=B":"1"})"),
              HasSubstr("is not the name of a variable"));
}

TEST(GatewayUpstreams, AreLimitedInNumber) {
  std::string servers;
  for (int number = 0; number < 129; ++number) {
    servers += fmt::format(R"({}{{"name":"s{}","url":"https://a"}})", number == 0 ? "" : ",", number);
  }
  EXPECT_THAT(problems_of(fmt::format(R"("upstream_servers":[{}])", servers)), HasSubstr("at most 128 are accepted"));
}

TEST(GatewayUpstreams, NeverShowTheirSecretsInMessages) {
  std::string problems = problems_of(R"("external_mcp_servers":[
    {"name":"x","transport":"http","url":"http://far","auth_token":"hush","headers":{"A":"hush"}},
    {"name":"x","transport":"stdio","command":"c","env":{"A":"hush","B":["hush"]},"timeout_seconds":0}])");
  EXPECT_THAT(problems, AllOf(HasSubstr("timeout_seconds: expected a whole number from 1 to 3600, found 0"),
                              HasSubstr("env.B: expected a string"), Not(HasSubstr("hush"))));
}

// A comparison that forgot one member would leave a server running as it was after a reload.
TEST(GatewayUpstreams, DifferWhenAnythingDiffers) {
  UpstreamConfig one;
  UpstreamConfig other;
  EXPECT_EQ(one, other);
  other.headers["X"] = Secret("a");
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace hive::config
