#include "net/proxy/dialogue.h"

#include <gmock/gmock.h>

namespace hive::net::proxy {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using namespace std::string_literals;

config::ProxyAddress proxy_at(std::string_view url) {
  return config::parse_proxy(url).value();
}

std::unique_ptr<Dialogue> talk_to(std::string_view url, std::string_view host = "gw.example",
                                  std::uint16_t port = 2222) {
  auto dialogue = Dialogue::begin(proxy_at(url), host, port);
  EXPECT_TRUE(dialogue) << dialogue.error().message;
  return *std::move(dialogue);
}

/// What becomes of an answer to the first question; "" when the tunnel stands.
std::string outcome_of(Dialogue& dialogue, std::string_view answer) {
  (void)dialogue.take_output();
  auto used = dialogue.feed(answer);
  if (!used) return used.error().message;
  return dialogue.finished() ? "" : dialogue.ended().message;
}

TEST(HttpConnectTest, AsksForTheTunnelInOneRequest) {
  EXPECT_EQ(talk_to("http://p:3128")->take_output(),
            "CONNECT gw.example:2222 HTTP/1.1\r\nHost: gw.example:2222\r\n\r\n");
  EXPECT_THAT(talk_to("http://p:3128", "2001:db8::1")->take_output(), HasSubstr("CONNECT [2001:db8::1]:2222 HTTP/1.1"));
}

TEST(HttpConnectTest, SendsCredentialsInTheBasicScheme) {
  // RFC 7617 section 2 has this example.
  EXPECT_THAT(talk_to("http://Aladdin:open%20sesame@p:3128")->take_output(),
              HasSubstr("\r\nProxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"));
}

TEST(HttpConnectTest, WhatFollowsTheAnswerBelongsToTheTunnel) {
  auto dialogue = talk_to("http://p:3128");
  (void)dialogue->take_output();
  const std::string head = "HTTP/1.1 200 Connection established\r\nVia: 1.1 p\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(dialogue->feed(head + "SSH-2.0-x\r\n"), head.size());
  EXPECT_TRUE(dialogue->finished());
}

TEST(HttpConnectTest, AnAnswerMayComeInSingleBytes) {
  auto dialogue = talk_to("http://p:3128");
  (void)dialogue->take_output();
  for (char byte : "HTTP/1.0 200\r\n\r\n"s) {
    ASSERT_FALSE(dialogue->finished());
    ASSERT_EQ(dialogue->feed(std::string(1, byte)), 1U);
  }
  EXPECT_TRUE(dialogue->finished());
}

TEST(HttpConnectTest, InterimAnswersArePassedOverWithinReason) {
  const std::string interim = "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n";
  EXPECT_EQ(outcome_of(*talk_to("http://p:3128"), interim + "HTTP/1.1 200 OK\r\n\r\n"), "");
  std::string many;
  for (int i = 0; i < 5; ++i)
    many += interim;
  EXPECT_THAT(outcome_of(*talk_to("http://p:3128"), many), HasSubstr("103 Early Hints"));
}

TEST(HttpConnectTest, ARefusalNamesTheProxyTheTargetAndTheAnswer) {
  EXPECT_EQ(outcome_of(*talk_to("http://p:3128"), "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\n\r\n<html>"),
            "proxy http://p:3128 refused CONNECT gw.example:2222: 503 Service Unavailable");
  EXPECT_THAT(outcome_of(*talk_to("http://p:3128"), "HTTP/1.1 403 Filtered\r\n\r\n"),
              HasSubstr("403 Filtered; allow CONNECT to this host and port"));
}

TEST(HttpConnectTest, MissingCredentialsAreToldFromWrongOnes) {
  const std::string answer =
      "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\n";
  EXPECT_EQ(outcome_of(*talk_to("http://p:3128"), answer),
            "proxy http://p:3128 refused CONNECT gw.example:2222: 407 Proxy Authentication Required; set the user in "
            "proxy, and proxy_password");
  EXPECT_THAT(outcome_of(*talk_to("http://agent:not-this-one@p:3128"), answer),
              AllOf(HasSubstr("407 Proxy Authentication Required; check the user"), Not(HasSubstr("not-this-one")),
                    Not(HasSubstr("agent:"))));
  EXPECT_THAT(outcome_of(*talk_to("http://agent:x@p:3128"),
                         "HTTP/1.1 407 No\r\nProxy-Authenticate: NTLM\r\nproxy-authenticate: Negotiate abc\r\n\r\n"),
              HasSubstr("it wants ntlm, negotiate, and only Basic is spoken here"));
}

TEST(HttpConnectTest, WhatIsNotHttpIsShownInPart) {
  EXPECT_EQ(outcome_of(*talk_to("http://p:3128"), "SSH-2.0-OpenSSH_9.2\r\n"),
            "proxy http://p:3128 does not answer CONNECT gw.example:2222 in HTTP/1.1 but with \"SSH-2.0-OpenSSH_9.2\"");
  for (std::string_view answer : {"HTTP/2 200\r\n\r\n", "HTTP/1.1 20\r\n\r\n", "HTTP/1.1 2000\r\n\r\n", "\r\n", "\n",
                                  "HTTP/1.1 200 OK\n\n", "HTTP/1.1  200 OK\r\n\r\n", "http/1.1 200 OK\r\n\r\n"}) {
    EXPECT_THAT(outcome_of(*talk_to("http://p:3128"), answer), HasSubstr("does not answer")) << answer;
  }
  EXPECT_THAT(outcome_of(*talk_to("http://p:3128"), "\x1b[2Jgarbage\r\n"), Not(HasSubstr("\x1b")));
}

TEST(HttpConnectTest, AHeaderLineThatIsNoneIsRefused) {
  for (std::string_view line : {"no colon", " folded: line", "name : value", ": empty", "na\tme: x"}) {
    EXPECT_THAT(outcome_of(*talk_to("http://p:3128"), fmt::format("HTTP/1.1 200 OK\r\n{}\r\n\r\n", line)),
                HasSubstr("a header line that is none"))
        << line;
  }
}

TEST(HttpConnectTest, AnAnswerWithoutEndIsGivenUp) {
  const std::string line = "X-Filler: " + std::string(500, 'x') + "\r\n";
  std::string answer = "HTTP/1.1 200 OK\r\n";
  while (answer.size() <= max_answer_bytes)
    answer += line;
  EXPECT_EQ(outcome_of(*talk_to("http://p:3128"), answer),
            "proxy http://p:3128 answers with more than 16384 bytes; its answer to CONNECT gw.example:2222 begins with "
            "200 OK");
  EXPECT_THAT(outcome_of(*talk_to("http://p:3128"), std::string(5000, 'H')), HasSubstr("does not answer"));
}

TEST(HttpConnectTest, AnEndInTheMiddleSaysWhere) {
  EXPECT_EQ(outcome_of(*talk_to("http://p:3128"), ""),
            "proxy http://p:3128 closed the connection; it has not answered CONNECT gw.example:2222");
  EXPECT_EQ(outcome_of(*talk_to("http://p:3128"), "HTTP/1.1 502 Bad Gateway\r\nX: "),
            "proxy http://p:3128 closed the connection; its answer to CONNECT gw.example:2222 begins with 502 Bad "
            "Gateway");
}

TEST(HttpConnectTest, AHostCannotSmuggleHeaders) {
  for (std::string_view host : {"a\r\nX: y", "a b", "", "fe80::1%eth0"}) {
    EXPECT_FALSE(Dialogue::begin(proxy_at("http://p:3128"), host, 1)) << host;
  }
}

TEST(Socks5Test, AsksByNameOrByAddress) {
  auto by_name = talk_to("socks5h://p:1080");
  EXPECT_EQ(by_name->take_output(), "\5\1\0"s);
  EXPECT_EQ(by_name->feed("\5\0"s), 2U);
  EXPECT_EQ(by_name->take_output(), "\5\1\0\3\12gw.example\x08\xae"s);

  auto by_v4 = talk_to("socks5://p:1080", "192.0.2.7");
  (void)by_v4->take_output();
  EXPECT_TRUE(by_v4->feed("\5\0"s));
  EXPECT_EQ(by_v4->take_output(), "\5\1\0\1\xc0\0\2\7\x08\xae"s);

  auto by_v6 = talk_to("socks5://p:1080", "2001:db8::1", 22);
  (void)by_v6->take_output();
  EXPECT_TRUE(by_v6->feed("\5\0"s));
  EXPECT_EQ(by_v6->take_output(), "\5\1\0\4\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\0\x16"s);
}

TEST(Socks5Test, GivesUserAndPasswordOnlyWhenAsked) {
  auto dialogue = talk_to("socks5h://me:secret@p:1080");
  EXPECT_EQ(dialogue->take_output(), "\5\2\0\2"s);
  EXPECT_EQ(dialogue->feed("\5\2"s), 2U);
  EXPECT_EQ(dialogue->take_output(), "\1\2me\6secret"s);
  EXPECT_EQ(dialogue->feed("\1\0"s), 2U);
  EXPECT_TRUE(dialogue->take_output().starts_with("\5\1\0\3"s));

  auto unasked = talk_to("socks5h://me:secret@p:1080");
  (void)unasked->take_output();
  EXPECT_TRUE(unasked->feed("\5\0"s));
  EXPECT_THAT(unasked->take_output(), Not(HasSubstr("secret")));
}

/// A dialogue whose request has been sent.
std::unique_ptr<Dialogue> asked() {
  auto dialogue = talk_to("socks5h://p:1080");
  (void)dialogue->take_output();
  EXPECT_TRUE(dialogue->feed("\5\0"s));
  return dialogue;
}

TEST(Socks5Test, TheReplyEndsWhereItsAddressEnds) {
  for (const std::string& reply :
       {"\5\0\0\1\0\0\0\0\0\0"s, "\5\0\0\3\2hi\0\0"s, "\5\0\0\3\0\0\0"s, "\5\0\0\4"s + std::string(18, '\0')}) {
    auto dialogue = asked();
    (void)dialogue->take_output();
    EXPECT_EQ(dialogue->feed(reply + "SSH-2.0-x"), reply.size());
    EXPECT_TRUE(dialogue->finished());

    dialogue = asked();
    (void)dialogue->take_output();
    for (char byte : reply) {
      ASSERT_FALSE(dialogue->finished());
      ASSERT_EQ(dialogue->feed(std::string(1, byte)), 1U);
    }
    EXPECT_TRUE(dialogue->finished());
  }
}

TEST(Socks5Test, ARefusalIsTranslated) {
  EXPECT_EQ(outcome_of(*asked(), "\5\5\0\1\0\0\0\0\0\0"s),
            "proxy socks5h://p:1080 refused to connect to gw.example:2222: connection refused (reply 5)");
  EXPECT_THAT(outcome_of(*asked(), "\5\2"s), HasSubstr("not allowed by its rules (reply 2)"));
  EXPECT_THAT(outcome_of(*asked(), "\5\xee\0\1"s), HasSubstr("a reply that RFC 1928 does not know (reply 238)"));
  EXPECT_THAT(outcome_of(*talk_to("socks5h://p:1080"), "\5\xff"s), HasSubstr("wants a user and a password"));
  EXPECT_THAT(outcome_of(*talk_to("socks5h://me:secret@p:1080"), "\5\xff"s),
              HasSubstr("accepts neither no authentication nor user and password"));

  auto wrong = talk_to("socks5h://me:secret@p:1080");
  (void)wrong->take_output();
  EXPECT_TRUE(wrong->feed("\5\2"s));
  EXPECT_THAT(outcome_of(*wrong, "\1\1"s),
              AllOf(HasSubstr("refused user and password (status 1)"), Not(HasSubstr("secret"))));
}

TEST(Socks5Test, WhatIsNotSocksIsShown) {
  EXPECT_EQ(outcome_of(*talk_to("socks5h://p:1080"), "HTTP/1.1 400 Bad Request\r\n"),
            "proxy socks5h://p:1080 does not speak SOCKS 5: it answers \"HT\"");
  EXPECT_THAT(outcome_of(*talk_to("socks5h://p:1080"), "\4\x5a"s), HasSubstr("does not speak SOCKS 5"));
  EXPECT_THAT(outcome_of(*talk_to("socks5h://p:1080"), "\5\2"s),
              HasSubstr("chose the method 2, which was not offered"));
  EXPECT_THAT(outcome_of(*talk_to("socks5h://p:1080"), "\5\1"s),
              HasSubstr("chose the method 1, which was not offered"));
  EXPECT_THAT(outcome_of(*asked(), "\5\0\0\7\0\0"s), HasSubstr("does not speak SOCKS 5"));
  EXPECT_THAT(outcome_of(*asked(), "\5\0\1\1\0\0\0\0\0\0"s), HasSubstr("does not speak SOCKS 5"));
}

TEST(Socks5Test, AnAnswerBeforeTheQuestionIsRefused) {
  auto dialogue = talk_to("socks5h://p:1080");
  (void)dialogue->take_output();
  auto used = dialogue->feed("\5\0\5\0\0\1\0\0\0\0\0\0"s);
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().message, "proxy socks5h://p:1080 answers before it is asked");
}

TEST(Socks5Test, AnEndInTheMiddleSaysWhere) {
  EXPECT_THAT(outcome_of(*talk_to("socks5h://p:1080"), "\5"s), HasSubstr("it has not answered the SOCKS greeting"));
  EXPECT_THAT(outcome_of(*asked(), "\5\0\0\1\0"s),
              HasSubstr("it has not answered whether it connects to gw.example:2222"));
}

TEST(Socks5Test, ANameThatDoesNotFitIsAnError) {
  EXPECT_FALSE(Dialogue::begin(proxy_at("socks5h://p:1080"), std::string(256, 'a'), 1));
  EXPECT_FALSE(Dialogue::begin(proxy_at("socks5h://p:1080"), "", 1));
}

}  // namespace
}  // namespace hive::net::proxy
