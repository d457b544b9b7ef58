#include "gateway/fleet/enrolment.h"

#include <future>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "crypto/scratch_folder.h"
#include "crypto/sha256.h"
#include "gateway/fleet/key_fixture.h"
#include "gateway/store/database.h"
#include "gateway/store/join_token_table.h"

namespace hive::fleet {
namespace {

using hive::test::content_of;
using test::new_key;
using Kind = EnrolmentRefusal::Kind;

class EnrolmentTest : public ::testing::Test {
 protected:
  EnrolmentTest() { restart(); }

  // As a restart of the gateway.
  void restart() {
    enrolment_.reset();
    database_.reset();
    auto opened = store::Database::open(folder_.path("state.db"));
    ASSERT_TRUE(opened) << opened.error().message;
    database_ = *std::move(opened);
    enrolment_.emplace(*database_, keys_, *fleet_, clock_);
  }

  template <class T>
  T wait(const std::function<void(Enrolment::Done<T>)>& start) {
    std::promise<T> answer;
    start([&](T result) { answer.set_value(std::move(result)); });
    return answer.get_future().get();
  }

  Result<MintedToken> try_mint(const std::string& agent, std::chrono::seconds ttl = std::chrono::seconds(900)) {
    return wait<Result<MintedToken>>([&](auto done) { enrolment_->mint(agent, "alice", ttl, std::move(done)); });
  }
  std::string mint(const std::string& agent) { return try_mint(agent)->token; }

  std::expected<Enrolled, EnrolmentRefusal> redeem(const std::string& token, const std::string& agent,
                                                   const std::string& key) {
    return wait<std::expected<Enrolled, EnrolmentRefusal>>(
        [&](auto done) { enrolment_->redeem({token, agent, key}, std::move(done)); });
  }
  std::string refusal(const std::string& token, const std::string& agent, const std::string& key) {
    auto result = redeem(token, agent, key);
    return result ? "enrolled" : result.error().reason;
  }
  Result<Revoked> revoke(const std::string& agent, std::optional<std::string> fingerprint = std::nullopt) {
    return wait<Result<Revoked>>([&](auto done) { enrolment_->revoke(agent, fingerprint, std::move(done)); });
  }

  hive::test::ScratchFolder folder_;
  ManualClock clock_;
  std::string path_ = folder_.write("authorized_keys", "");
  AuthorizedKeysFile keys_{path_, clock_};
  std::unique_ptr<Fleet> fleet_ = Fleet::create(clock_, {}, {});
  std::unique_ptr<store::Database> database_;
  std::optional<Enrolment> enrolment_;
  crypto::PublicKey key_ = new_key("laptop");
};

TEST_F(EnrolmentTest, AJoinTokenEnrolsOneKeyOfItsAgent) {
  auto enrolled = redeem(mint("edge-1"), "edge-1", key_.to_line());
  ASSERT_TRUE(enrolled) << enrolled.error().message;
  EXPECT_EQ(enrolled->fingerprint, key_.fingerprint());
  EXPECT_FALSE(enrolled->repeated);
  EXPECT_EQ(content_of(path_), crypto::PublicKey::from_ed25519(key_.ed25519(), "edge-1").to_line() + "\n");
  EXPECT_TRUE(keys_.authorize("edge-1", key_, "192.0.2.1"));
}

TEST_F(EnrolmentTest, EveryBadTokenSoundsAlikeAndTheLogKnowsWhy) {
  std::string used = mint("edge-1");
  ASSERT_TRUE(redeem(used, "edge-1", key_.to_line()));
  std::string foreign = mint("edge-2");
  std::string expired = try_mint("edge-1", std::chrono::seconds(1))->token;
  clock_.advance(std::chrono::seconds(1));
  std::string other_key = new_key("x").to_line();
  EXPECT_EQ(refusal(used, "edge-1", other_key), "token_used");
  EXPECT_EQ(refusal(used, "edge-1", "junk"), "token_used");
  EXPECT_EQ(refusal(foreign, "edge-1", other_key), "token_of_another_agent");
  EXPECT_EQ(refusal(expired, "edge-1", other_key), "token_expired");
  EXPECT_EQ(refusal(std::string(64, 'a'), "edge-1", other_key), "token_unknown");
  EXPECT_EQ(refusal("short", "edge-1", other_key), "token_unknown");
  std::string message = redeem("short", "edge-1", other_key).error().message;
  for (const std::string& token : {used, foreign, expired}) {
    EXPECT_EQ(redeem(token, "edge-1", other_key).error().message, message);
    EXPECT_EQ(redeem(token, "edge-1", other_key).error().kind, Kind::token);
  }
}

TEST_F(EnrolmentTest, AWrongAgentOrABadKeyDoesNotUseTheTokenUp) {
  std::string token = mint("edge-1");
  EXPECT_EQ(refusal(token, "edge-2", key_.to_line()), "token_of_another_agent");
  EXPECT_EQ(refusal(token, "edge-1", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ=="), "invalid_key");
  EXPECT_EQ(refusal(token, "edge-1", key_.to_line() + "\n" + new_key("y").to_line()), "invalid_key");
  EXPECT_EQ(refusal(token, "edge-1", ""), "invalid_key");
  EXPECT_EQ(refusal(token, "gateway", key_.to_line()), "invalid_agent_id");
  ASSERT_TRUE(keys_.add_key("edge-9", key_));
  EXPECT_EQ(refusal(token, "edge-1", key_.to_line()), "key_conflict");
  EXPECT_TRUE(redeem(token, "edge-1", new_key("z").to_line()));
}

TEST_F(EnrolmentTest, ARepeatedRequestWhoseAnswerWasLostSucceedsAgain) {
  std::string token = mint("edge-1");
  ASSERT_TRUE(redeem(token, "edge-1", key_.to_line()));
  std::string before = content_of(path_);
  auto again = redeem(token, "edge-1", key_.to_line());
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->repeated);
  EXPECT_EQ(content_of(path_), before);
  clock_.advance(std::chrono::seconds(900));
  EXPECT_EQ(refusal(token, "edge-1", key_.to_line()), "token_expired");
}

TEST_F(EnrolmentTest, AnUnusedTokenSurvivesARestartAndAUsedOneStaysUsed) {
  std::string unused = mint("edge-1");
  std::string used = mint("edge-1");
  ASSERT_TRUE(redeem(used, "edge-1", key_.to_line()));
  restart();
  EXPECT_EQ(refusal(used, "edge-1", new_key("x").to_line()), "token_used");
  EXPECT_TRUE(redeem(unused, "edge-1", new_key("y").to_line()));
}

TEST_F(EnrolmentTest, TheStoreHoldsNoToken) {
  std::string token = mint("edge-1");
  restart();
  database_.reset();
  EXPECT_EQ(hive::test::run_command("grep -rc " + token + " " + folder_.path("") + " | grep -v ':0$'").output, "");
}

TEST_F(EnrolmentTest, ACrashBeforeTheKeyWasWrittenIsCompletedAtTheNextStart) {
  std::string token = mint("edge-1");
  std::string line = crypto::PublicKey::from_ed25519(key_.ed25519(), "edge-1").to_line();
  database_->run([&](store::Connection& connection) {
    EXPECT_TRUE(store::JoinTokenTable(connection).claim(to_hex(crypto::sha256(token)), line));
  });
  restart();
  auto recovered = enrolment_->recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(*recovered, std::vector<std::string>{"edge-1"});
  EXPECT_EQ(content_of(path_), line + "\n");
  EXPECT_TRUE(redeem(token, "edge-1", key_.to_line())->repeated);
  EXPECT_TRUE(enrolment_->recover()->empty());
}

TEST_F(EnrolmentTest, ACrashAfterTheKeyWasWrittenIsToldOfAtTheNextStart) {
  std::string token = mint("edge-1");
  std::string line = crypto::PublicKey::from_ed25519(key_.ed25519(), "edge-1").to_line();
  database_->run([&](store::Connection& connection) {
    EXPECT_TRUE(store::JoinTokenTable(connection).claim(to_hex(crypto::sha256(token)), line));
  });
  folder_.write("authorized_keys", line + "\n");
  restart();
  auto recovered = enrolment_->recover();
  ASSERT_TRUE(recovered) << recovered.error().message;
  EXPECT_EQ(*recovered, std::vector<std::string>{"edge-1"});
  EXPECT_EQ(content_of(path_), line + "\n");
  EXPECT_TRUE(enrolment_->recover()->empty());
}

TEST_F(EnrolmentTest, AKeyThatWasTakenOutByHandDoesNotComeBackAtTheNextStart) {
  ASSERT_TRUE(redeem(mint("edge-1"), "edge-1", key_.to_line()));
  folder_.write("authorized_keys", "");
  restart();
  EXPECT_TRUE(enrolment_->recover()->empty());
  EXPECT_EQ(content_of(path_), "");
}

TEST_F(EnrolmentTest, WhenTheFileCannotBeWrittenTheTokenStaysGood) {
  std::string token = mint("edge-1");
  std::filesystem::create_directory(folder_.path("authorized_keys.lock"));
  EXPECT_EQ(refusal(token, "edge-1", key_.to_line()), "enrolment_failed");
  std::filesystem::remove(folder_.path("authorized_keys.lock"));
  EXPECT_TRUE(redeem(token, "edge-1", new_key("another").to_line()));
}

TEST_F(EnrolmentTest, RevocationRemovesTheKeysAndKillsTheTokens) {
  ASSERT_TRUE(redeem(mint("edge-1"), "edge-1", key_.to_line()));
  std::string open = mint("edge-1");
  std::string foreign = mint("edge-2");
  auto revoked = revoke("edge-1");
  ASSERT_TRUE(revoked);
  EXPECT_EQ(revoked->keys_removed, 1U);
  EXPECT_EQ(revoked->join_tokens_revoked, 1U);
  EXPECT_EQ(refusal(open, "edge-1", new_key("x").to_line()), "token_unknown");
  EXPECT_TRUE(redeem(foreign, "edge-2", new_key("y").to_line()));
  EXPECT_FALSE(keys_.authorize("edge-1", key_, "192.0.2.1"));
}

TEST_F(EnrolmentTest, RevokingOneKeyLeavesTheOthersAndTheTokens) {
  ASSERT_TRUE(redeem(mint("edge-1"), "edge-1", key_.to_line()));
  crypto::PublicKey fresh = new_key("fresh");
  ASSERT_TRUE(redeem(mint("edge-1"), "edge-1", fresh.to_line()));
  auto revoked = revoke("edge-1", key_.fingerprint());
  ASSERT_TRUE(revoked);
  EXPECT_EQ(revoked->keys_removed, 1U);
  EXPECT_EQ(revoked->join_tokens_revoked, 0U);
  EXPECT_TRUE(keys_.authorize("edge-1", fresh, "192.0.2.1"));
}

TEST_F(EnrolmentTest, TheNumberOfOpenTokensIsBounded) {
  for (std::size_t i = 0; i < Enrolment::max_open_tokens_per_agent; ++i)
    ASSERT_TRUE(try_mint("edge-1"));
  auto refused = try_mint("edge-1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_TRUE(try_mint("edge-2"));
  clock_.advance(std::chrono::seconds(900));
  EXPECT_TRUE(try_mint("edge-1")) << "expired ones make room";
}

TEST_F(EnrolmentTest, TokensAreForAgentsThatMayExistAndNotForEver) {
  EXPECT_FALSE(try_mint("gateway"));
  EXPECT_FALSE(try_mint("a__b"));
  EXPECT_FALSE(try_mint("edge-1", std::chrono::seconds(0)));
  EXPECT_FALSE(try_mint("edge-1", std::chrono::hours(25)));
}

}  // namespace
}  // namespace hive::fleet
