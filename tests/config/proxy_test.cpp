#include "config/proxy.h"

#include <gmock/gmock.h>

#include "config/agent_config.h"
#include "config/secret_reference.h"

namespace hive::config {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProxyAddressTest, TakesTheThreeSchemes) {
  Result<ProxyAddress> http = parse_proxy("http://proxy.example:3128/");
  ASSERT_TRUE(http) << http.error().message;
  EXPECT_EQ(http->scheme, ProxyScheme::http);
  EXPECT_EQ(http->to_string(), "http://proxy.example:3128");
  EXPECT_EQ(parse_proxy("socks5://127.0.0.1:1080").value().scheme, ProxyScheme::socks5);
  Result<ProxyAddress> v6 = parse_proxy("socks5h://[2001:db8::1]:1080");
  ASSERT_TRUE(v6) << v6.error().message;
  EXPECT_EQ(v6->host, "2001:db8::1");
  EXPECT_EQ(v6->to_string(), "socks5h://[2001:db8::1]:1080");
}

TEST(ProxyAddressTest, CredentialsArePercentDecodedAndNeverShown) {
  Result<ProxyAddress> proxy = parse_proxy("http://me%40work:p%3a%2f@x@proxy:8080");
  ASSERT_TRUE(proxy) << proxy.error().message;
  EXPECT_EQ(proxy->user, "me@work");
  EXPECT_EQ(proxy->password.reveal(), "p:/@x");
  EXPECT_EQ(proxy->to_string(), "http://proxy:8080");
}

TEST(ProxyAddressTest, WhatIsNoProxyIsRefusedWithoutShowingIt) {
  for (std::string_view text : {"",
                                "proxy:3128",
                                "https://proxy:443",
                                "ftp://proxy:21",
                                "http://",
                                "http://proxy",
                                "http://proxy:0",
                                "http://proxy:99999",
                                "http://:3128",
                                "http://proxy:3128/path",
                                "http://proxy:3128?x",
                                "http://@proxy:3128",
                                "http://:hunter2@proxy:3128",
                                "http://a%zz:hunter2@proxy:3128",
                                "http://a:hunter2%4@proxy:3128",
                                "hunter2://proxy:3128",
                                "http://a:hunter2@pro xy:3128",
                                "socks4://proxy:1080",
                                "http://a:hunter2",
                                "http://a:p@hunter2"}) {
    Result<ProxyAddress> proxy = parse_proxy(text);
    ASSERT_FALSE(proxy) << text;
    EXPECT_THAT(proxy.error().message, Not(HasSubstr("hunter2"))) << text;
  }
}

TEST(ProxyAddressTest, CredentialsThatCannotBeSentAreRefused) {
  EXPECT_FALSE(check_proxy_credentials(parse_proxy("http://a%3ab:x@proxy:3128").value()));
  EXPECT_FALSE(check_proxy_credentials(parse_proxy("http://a%0d%0aX:x@proxy:3128").value()));
  EXPECT_FALSE(check_proxy_credentials(parse_proxy("socks5://a@proxy:3128").value()));
  EXPECT_FALSE(check_proxy_credentials(parse_proxy("http://" + std::string(256, 'a') + ":x@proxy:3128").value()));
  EXPECT_TRUE(check_proxy_credentials(parse_proxy("http://a@proxy:3128").value()));
  EXPECT_TRUE(check_proxy_credentials(parse_proxy("socks5://a%3ab:x@proxy:3128").value()));
}

/// A configuration with these lines in it.
Result<AgentConfig> with(std::string_view lines) {
  SecretSources sources = SecretSources::system();
  sources.environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "PROXY") return "socks5h://agent:from-the-environment@proxy:1080";
    if (name == "PROXY_PASSWORD") return "from-the-environment";
    return std::nullopt;
  };
  return parse_agent_config(
      fmt::format(R"({{"agent_id":"a","gateway_addrs":["gw-1:2222","gw-2:2222"],"private_key_path":"/k",{}}})", lines),
      "agent.json", sources);
}

TEST(AgentProxyTest, HoldsForEveryGatewayThatIsNotExcepted) {
  Result<AgentConfig> config = with(R"("proxy":"http://proxy:3128","no_proxy":["gw-2"])");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_NE(config->proxy_for(config->gateways[0]), nullptr);
  EXPECT_EQ(config->proxy_for(config->gateways[0])->to_string(), "http://proxy:3128");
  EXPECT_EQ(config->proxy_for(config->gateways[1]), nullptr);
  EXPECT_EQ(with(R"("keepalive_seconds":15)")->proxy_for({"gw-1", 2222}), nullptr);
}

TEST(AgentProxyTest, ThePasswordMayStandElsewhere) {
  EXPECT_EQ(with(R"("proxy":"env:PROXY")")->proxy->password.reveal(), "from-the-environment");
  EXPECT_EQ(
      with(R"("proxy":"socks5://agent@proxy:1080","proxy_password":"env:PROXY_PASSWORD")")->proxy->password.reveal(),
      "from-the-environment");
  EXPECT_EQ(
      with(R"("proxy_password":"env:PROXY_PASSWORD","proxy":"http://agent@proxy:3128")")->proxy->password.reveal(),
      "from-the-environment");
}

TEST(AgentProxyTest, MistakesAreNamedByTheirField) {
  auto error = [](std::string_view lines) {
    Result<AgentConfig> config = with(lines);
    EXPECT_FALSE(config) << lines;
    return config ? std::string() : config.error().message;
  };
  EXPECT_EQ(error(R"("proxy":"proxy:3128")"),
            "agent.json:1: proxy: write http://host:port, socks5://host:port or socks5h://host:port");
  EXPECT_THAT(error(R"("proxy_password":"x")"), HasSubstr("proxy_password: proxy is not set"));
  EXPECT_THAT(error(R"("proxy":"http://a:b@proxy:3128","proxy_password":"x")"),
              HasSubstr("proxy_password: proxy holds a password as well"));
  EXPECT_THAT(error(R"("proxy":"http://proxy:3128","proxy_password":"x")"),
              HasSubstr("proxy: there is a password and no user"));
  EXPECT_THAT(error(R"("proxy":"socks5://agent@proxy:1080")"), HasSubstr("proxy: a SOCKS proxy wants a password"));
  EXPECT_THAT(error(R"("proxy":"http://proxy:3128","no_proxy":["gw-3"])"),
              HasSubstr("no_proxy[0]: no gateway has the host \"gw-3\""));
  EXPECT_THAT(error(R"("proxy":"env:NOT_THERE")"), HasSubstr("env:NOT_THERE"));
}

}  // namespace
}  // namespace hive::config
