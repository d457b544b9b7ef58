#include "gateway/oidc/provider.h"

#include <condition_variable>
#include <future>
#include <mutex>

#include <gtest/gtest.h>

#include "gateway/oidc/signing_key.h"
#include "net/http/scripted_server.h"

namespace hive::oidc::test {
namespace {

using policy::CredentialFault;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::string_view issuer = "https://id.example";

/// What the issuer serves, and how it behaves. Thread-safe.
class FakeIssuer {
 public:
  Fetch fetch() {
    return [this](const std::string& url, int cancel_fd) { return answer(url, cancel_fd); };
  }

  void serve(const std::vector<std::string>& keys) {
    std::lock_guard lock(mutex_);
    keys_ = key_set(keys);
  }
  void break_down(bool broken) {
    std::lock_guard lock(mutex_);
    broken_ = broken;
  }
  /// From now on an answer waits until release().
  void hold() {
    std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  /// How often the discovery document was asked for.
  int fetches() {
    std::lock_guard lock(mutex_);
    return fetches_;
  }
  void wait_for_fetches(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return fetches_ >= count; });
  }

 private:
  Result<std::string> answer(const std::string& url, int cancel_fd) {
    std::unique_lock lock(mutex_);
    if (url.ends_with("/.well-known/openid-configuration")) {
      ++fetches_;
      changed_.notify_all();
    }
    while (held_) {
      lock.unlock();
      pollfd entry{cancel_fd, POLLIN, 0};
      bool cancelled = ::poll(&entry, 1, 1) > 0;
      lock.lock();
      if (cancelled) return fail(ErrorCode::cancelled, "cancelled");
    }
    if (broken_) return fail(ErrorCode::unavailable, "id.example:443: connection refused");
    if (url == "https://id.example/.well-known/openid-configuration") {
      return R"({"issuer":"https://id.example","jwks_uri":"https://keys.example/jwks"})";
    }
    if (url == "https://keys.example/jwks") return keys_;
    return fail(ErrorCode::not_found, "no such URL: {}", url);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string keys_ = key_set({});
  bool broken_ = false;
  bool held_ = false;
  int fetches_ = 0;
};

class ProviderTest : public testing::Test {
 protected:
  ProviderTest() {
    runtime.start();
    fake.serve({key.jwk(R"(,"kid":"a")")});
    make();
  }
  ~ProviderTest() override {
    fake.release();
    provider->stop();
    runtime.stop();
  }

  void make(std::size_t max_waiting = 100, std::size_t max_remembered = 100) {
    ProviderOptions options;
    options.issuer = issuer;
    options.audience = "hive";
    options.role_claim = "groups";
    options.max_waiting = max_waiting;
    options.max_remembered = max_remembered;
    provider = Provider::create(runtime, clock, options, fake.fetch());
  }

  std::string token(const SigningKey& signer, const std::string& kid = "a", const std::string& more = "",
                    seconds life = seconds(300)) {
    long long now = std::chrono::duration_cast<seconds>(clock.wall_now().time_since_epoch()).count();
    return signer.token(R"({"alg":"ES256","kid":")" + kid + "\"}",
                        R"({"iss":"https://id.example","aud":"hive","sub":"alice","groups":["ops"],"exp":)" +
                            std::to_string(now + life.count()) + more + "}",
                        "ES256");
  }

  std::future<Provider::Verified> begin(std::string text) {
    auto promise = std::make_shared<std::promise<Provider::Verified>>();
    net::Worker& worker = runtime.worker(0);
    worker.post([this, &worker, promise, text = std::move(text)]() mutable {
      provider->verify(worker, std::move(text), [promise, &worker](Provider::Verified verified) {
        EXPECT_TRUE(worker.runs_here());
        promise->set_value(std::move(verified));
      });
    });
    return promise->get_future();
  }
  Provider::Verified verify(const std::string& text) { return begin(text).get(); }

  void expect_accepted(const std::string& text) {
    auto verified = verify(text);
    ASSERT_TRUE(verified) << verified.error().detail;
    EXPECT_EQ(verified->subject, "alice");
    EXPECT_EQ(verified->groups, (std::vector<std::string>{"ops"}));
  }
  void expect_refused(const std::string& text, CredentialFault fault, std::string_view words) {
    auto verified = verify(text);
    ASSERT_FALSE(verified);
    EXPECT_EQ(verified.error().fault, fault) << verified.error().detail;
    EXPECT_NE(verified.error().detail.find(words), std::string::npos) << verified.error().detail;
  }
  /// Everything that was posted to the worker so far has run.
  void settle() {
    std::promise<void> reached;
    runtime.worker(0).post([&] { reached.set_value(); });
    reached.get_future().wait();
  }

  SigningKey key = SigningKey::curve("P-256");
  SigningKey next_key = SigningKey::curve("P-256");
  FakeIssuer fake;
  ManualClock clock;
  net::Runtime runtime{1};
  std::shared_ptr<Provider> provider;
};

TEST_F(ProviderTest, KeysAreFetchedForTheFirstTokenAndThenKept) {
  expect_accepted(token(key));
  expect_accepted(token(key, "a", R"(,"jti":"2")"));
  EXPECT_EQ(fake.fetches(), 1);
}

TEST_F(ProviderTest, KeysMayBeThereBeforeTheFirstToken) {
  provider->prepare();
  fake.wait_for_fetches(1);
  expect_accepted(token(key));
  EXPECT_EQ(fake.fetches(), 1);
}

TEST_F(ProviderTest, TokensThatArriveDuringTheFirstFetchShareIt) {
  fake.hold();
  std::vector<std::future<Provider::Verified>> waiting;
  for (int i = 0; i < 50; ++i)
    waiting.push_back(begin(token(key, "a", ",\"jti\":\"" + std::to_string(i) + "\"")));
  settle();
  fake.wait_for_fetches(1);
  fake.release();
  for (auto& each : waiting)
    EXPECT_TRUE(each.get());
  EXPECT_EQ(fake.fetches(), 1);
}

TEST_F(ProviderTest, OnlySoManyTokensWait) {
  make(3);
  fake.hold();
  std::vector<std::future<Provider::Verified>> waiting;
  for (int i = 0; i < 3; ++i)
    waiting.push_back(begin(token(key)));
  settle();
  expect_refused(token(key), CredentialFault::provider_unavailable, "too many");
  fake.release();
  for (auto& each : waiting)
    EXPECT_TRUE(each.get());
}

TEST_F(ProviderTest, AnUnknownKeyIsLookedForOnce) {
  expect_accepted(token(key));
  clock.advance(minutes(1));
  fake.serve({key.jwk(R"(,"kid":"a")"), next_key.jwk(R"(,"kid":"b")")});
  expect_accepted(token(next_key, "b"));
  expect_accepted(token(key));
  EXPECT_EQ(fake.fetches(), 2);
}

TEST_F(ProviderTest, AKeyThatIsNewRightAfterAFetchIsFound) {
  expect_accepted(token(key));
  fake.serve({next_key.jwk(R"(,"kid":"b")")});
  expect_accepted(token(next_key, "b"));
}

TEST_F(ProviderTest, InventedKeyIdsCauseNoStorm) {
  expect_accepted(token(key));
  for (int i = 0; i < 200; ++i)
    expect_refused(token(next_key, "invented-" + std::to_string(i)), CredentialFault::bad_signature, "no key");
  EXPECT_EQ(fake.fetches(), 2);
  clock.advance(seconds(46));
  for (int i = 0; i < 200; ++i)
    expect_refused(token(next_key, "invented-" + std::to_string(i)), CredentialFault::bad_signature, "no key");
  EXPECT_EQ(fake.fetches(), 3);
}

TEST_F(ProviderTest, TheCoolDownLastsThirtySecondsAtLeast) {
  expect_accepted(token(key));
  expect_refused(token(next_key, "b"), CredentialFault::bad_signature, "no key");
  clock.advance(seconds(29));
  expect_refused(token(next_key, "b"), CredentialFault::bad_signature, "no key");
  EXPECT_EQ(fake.fetches(), 2);
}

TEST_F(ProviderTest, AKnownKeysTokensDoNotWaitForAnUnknownOne) {
  expect_accepted(token(key));
  clock.advance(minutes(1));
  fake.hold();
  auto unknown = begin(token(next_key, "b"));
  settle();
  fake.wait_for_fetches(2);
  expect_accepted(token(key));
  fake.release();
  EXPECT_FALSE(unknown.get());
}

TEST_F(ProviderTest, AForgedSignatureCausesNoFetch) {
  expect_accepted(token(key));
  clock.advance(minutes(1));
  expect_refused(token(next_key, "a"), CredentialFault::bad_signature, "signature is wrong");
  EXPECT_EQ(fake.fetches(), 1);
}

TEST_F(ProviderTest, AnIssuerThatIsAwayIsAskedLessAndLessOften) {
  fake.break_down(true);
  expect_refused(token(key), CredentialFault::provider_unavailable, "connection refused");
  expect_refused(token(key), CredentialFault::provider_unavailable, "connection refused");
  EXPECT_EQ(fake.fetches(), 1);
  clock.advance(std::chrono::milliseconds(1600));
  expect_refused(token(key), CredentialFault::provider_unavailable, "connection refused");
  EXPECT_EQ(fake.fetches(), 2);
  clock.advance(std::chrono::milliseconds(1600));
  expect_refused(token(key), CredentialFault::provider_unavailable, "connection refused");
  EXPECT_EQ(fake.fetches(), 2);
  fake.break_down(false);
  clock.advance(seconds(3));
  expect_accepted(token(key));
}

TEST_F(ProviderTest, WhenTheIssuerIsAwayItsKnownKeysStayInForce) {
  expect_accepted(token(key));
  fake.break_down(true);
  clock.advance(minutes(61));
  expect_accepted(token(key));  // fetched beside the work
  clock.advance(minutes(180));
  expect_accepted(token(key));  // after an attempt that it waited for
  clock.advance(minutes(2));
  expect_refused(token(next_key, "b"), CredentialFault::bad_signature, "cannot be fetched");
}

TEST_F(ProviderTest, KeysAreRefreshedBesideTheWork) {
  expect_accepted(token(key));
  clock.advance(minutes(61));
  fake.hold();
  expect_accepted(token(key));
  fake.wait_for_fetches(2);
  fake.release();
}

TEST_F(ProviderTest, AWithdrawnKeyIsNotBelievedAfterALongSilence) {
  expect_accepted(token(key));
  fake.serve({next_key.jwk(R"(,"kid":"b")")});
  clock.advance(minutes(121));
  expect_refused(token(key), CredentialFault::bad_signature, "no key");
}

TEST_F(ProviderTest, AWithdrawnKeyTakesItsRememberedTokensAlong) {
  std::string old = token(key, "a", "", minutes(600));
  expect_accepted(old);
  clock.advance(minutes(1));
  fake.serve({next_key.jwk(R"(,"kid":"b")")});
  expect_accepted(token(next_key, "b"));
  expect_refused(old, CredentialFault::bad_signature, "no key");
}

TEST_F(ProviderTest, ARememberedTokenStillExpires) {
  std::string text = token(key);
  expect_accepted(text);
  expect_accepted(text);
  clock.advance(seconds(300));
  expect_refused(text, CredentialFault::expired, "expired 0 s ago");
}

TEST_F(ProviderTest, ARememberedTokenIsCheckedAgainWhenTheClockStepsBack) {
  long long now = std::chrono::duration_cast<seconds>(clock.wall_now().time_since_epoch()).count();
  std::string text = token(key, "a", ",\"nbf\":" + std::to_string(now));
  expect_accepted(text);
  clock.step_wall(-seconds(1));
  expect_accepted(text);
  clock.step_wall(-minutes(5));
  expect_refused(text, CredentialFault::bad_claims, "301 s in the future");
}

TEST_F(ProviderTest, MoreTokensThanAreRememberedAreStillVerified) {
  make(100, 4);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20; ++i)
      expect_accepted(token(key, "a", ",\"jti\":\"" + std::to_string(i) + "\""));
  }
}

TEST_F(ProviderTest, ClaimsAreChecked) {
  long long now = std::chrono::duration_cast<seconds>(clock.wall_now().time_since_epoch()).count();
  std::string other = key.token(
      R"({"alg":"ES256","kid":"a"})",
      R"({"iss":"https://id.example","aud":"other","sub":"alice","exp":)" + std::to_string(now + 300) + "}", "ES256");
  expect_refused(other, CredentialFault::bad_claims, "another audience");
  expect_refused("a.b.c", CredentialFault::malformed, "");
}

TEST_F(ProviderTest, StoppingGivesUpAFetchThatRuns) {
  fake.hold();
  auto waiting = begin(token(key));
  settle();
  fake.wait_for_fetches(1);
  provider->stop();
  auto verified = waiting.get();
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().fault, CredentialFault::provider_unavailable);
}

TEST_F(ProviderTest, IsKeptWhenTheConfigurationAsksForTheSame) {
  config::GatewayConfig config;
  EXPECT_EQ(provider_of(config, runtime, clock), nullptr);
  config.oidc_issuer = issuer;
  config.oidc_audience = "hive";
  auto first = provider_of(config, runtime, clock);
  ASSERT_NE(first, nullptr);
  config.oidc_role_map = {{"ops", "operator"}};
  EXPECT_EQ(provider_of(config, runtime, clock, first), first);
  config.oidc_audience = "other";
  EXPECT_NE(provider_of(config, runtime, clock, first), first);
}

/// An issuer that answers with one document and one key set.
Result<std::shared_ptr<const KeySet>> fetch_from(const std::string& named_issuer, const std::string& document,
                                                 const std::string& keys) {
  return fetch_keys(
      named_issuer,
      [&](const std::string& url, int) -> Result<std::string> {
        if (url.ends_with("/.well-known/openid-configuration")) return document;
        return keys;
      },
      -1);
}

TEST(FetchKeys, TheDocumentMustNameTheIssuerExactly) {
  std::string keys = key_set({SigningKey::curve("P-256").jwk()});
  auto document = [](const std::string& name) {
    return R"({"issuer":")" + name + R"(","jwks_uri":"https://id.example/jwks"})";
  };
  EXPECT_TRUE(fetch_from("https://id.example", document("https://id.example"), keys));
  EXPECT_TRUE(fetch_from("https://id.example/", document("https://id.example/"), keys));
  for (std::string name : {"https://id.example/", "https://evil.example", ""}) {
    auto fetched = fetch_from("https://id.example", document(name), keys);
    ASSERT_FALSE(fetched) << name;
    EXPECT_NE(fetched.error().message.find("oidc_issuer"), std::string::npos) << fetched.error().message;
  }
  EXPECT_FALSE(fetch_from("https://id.example", "not JSON", keys));
  EXPECT_FALSE(fetch_from("https://id.example", R"({"issuer":"https://id.example"})", keys));
}

TEST(FetchKeys, KeysComeOverHttpsOrFromThisMachine) {
  std::string keys = key_set({SigningKey::curve("P-256").jwk()});
  auto fetched = [&](const std::string& from, const std::string& url) {
    return fetch_from(from, R"({"issuer":")" + from + R"(","jwks_uri":")" + url + "\"}", keys).has_value();
  };
  EXPECT_TRUE(fetched("https://id.example", "https://keys.example/a?b=c"));
  EXPECT_TRUE(fetched("http://127.0.0.1:8000", "http://127.0.0.1:8000/jwks"));
  EXPECT_FALSE(fetched("http://127.0.0.1:8000", "http://keys.example/jwks"));
  EXPECT_FALSE(fetched("https://id.example", "http://127.0.0.1:8000/jwks"));
  for (std::string url : {"http://id.example/jwks", "file:///etc/passwd", "https://user@id.example/jwks", "/jwks", "",
                          "ftp://id.example/jwks", "https://id.example/ jwks"}) {
    EXPECT_FALSE(fetched("https://id.example", url)) << url;
  }
}

TEST(HttpFetch, TakesNothingButAnAnswerWithStatus200OfBoundedSize) {
  hive::test::ScriptedServer server([](hive::test::Peer& peer) {
    std::string request = peer.read_request();
    if (request.starts_with("GET /large")) {
      peer.answer(200, std::string(max_key_set_bytes + 1, ' '));
    } else if (request.starts_with("GET /moved")) {
      peer.answer(302, "", "Location: /good\r\n");
    } else {
      peer.answer(request.starts_with("GET /good") ? 200 : 500, "body");
    }
  });
  Fetch fetch = http_fetch("");
  EXPECT_EQ(fetch(server.url("/good"), -1).value_or(""), "body");
  EXPECT_FALSE(fetch(server.url("/moved"), -1));
  EXPECT_FALSE(fetch(server.url("/large"), -1));
  auto broken = fetch(server.url("/broken"), -1);
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find("status 500"), std::string::npos);
}

TEST(HttpFetch, TrustsTheConfiguredAuthorityAlone) {
  hive::test::TestCertificate certificate = hive::test::make_certificate("IP:127.0.0.1");
  hive::test::ScriptedServer server(
      [](hive::test::Peer& peer) {
        peer.read_request();
        peer.answer(200, "body");
      },
      &certificate);
  auto untrusted = http_fetch("")(server.url("/"), -1);
  ASSERT_FALSE(untrusted);
  EXPECT_EQ(untrusted.error().code, ErrorCode::permission_denied);
  std::string path = testing::TempDir() + "/oidc-ca-" + std::to_string(::getpid()) + ".pem";
  {
    std::unique_ptr<std::FILE, decltype(&std::fclose)> file(std::fopen(path.c_str(), "w"), &std::fclose);
    std::fputs(certificate.pem().c_str(), file.get());
  }
  EXPECT_EQ(http_fetch(path)(server.url("/"), -1).value_or(""), "body");
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace hive::oidc::test
