#include "gateway/fleet/enrolment.h"

#include <gtest/gtest.h>

#include "crypto/scratch_folder.h"
#include "gateway/fleet/key_fixture.h"
#include "gateway/store/database.h"
#include "gateway/surfaces/rest/enrolment_request.h"
#include "gateway/surfaces/rest/rest_fixture.h"

namespace hive::rest::test {
namespace {

using fleet::test::new_key;
using hive::test::content_of;

class EnrolmentRestTest : public RestTest {
 protected:
  EnrolmentRestTest() {
    auto opened = store::Database::open(folder_.path("state.db"));
    EXPECT_TRUE(opened);
    database_ = *std::move(opened);
    enrolment_.emplace(*database_, keys_, fleet, clock);
    enrolment = &*enrolment_;
  }
  ~EnrolmentRestTest() override {
    // Its last answers go through the server, which the base destroys.
    database_.reset();
  }

  std::string post(std::string_view path, std::string_view body, std::string_view token = admin_token) {
    return send("POST", path, token, "", body);
  }
  std::string mint(const std::string& agent, std::string_view token = admin_token) {
    return text_at(json_of(post("/api/enroll/token", R"({"agent_id":")" + agent + R"("})", token)), "join_token");
  }
  std::string enrol(const std::string& token, const std::string& agent, const std::string& key) {
    return post("/api/enroll",
                R"({"join_token":")" + token + R"(","agent_id":")" + agent + R"(","public_key":")" + key + R"("})", "");
  }
  audit::Record last_record() { return log.records().back(); }

  hive::test::ScratchFolder folder_;
  std::string path_ = folder_.write("authorized_keys", "# agents\n");
  fleet::AuthorizedKeysFile keys_{path_, clock};
  std::unique_ptr<store::Database> database_;
  std::optional<fleet::Enrolment> enrolment_;
  crypto::PublicKey key_ = new_key("x");
};

TEST_F(EnrolmentRestTest, AnAdminMakesATokenAndWhoHasItEnrolsAKey) {
  std::string token = mint("edge-1");
  EXPECT_EQ(token.size(), 64U);
  EXPECT_EQ(last_record().action, "enroll_token_created");
  EXPECT_EQ(last_record().agent, "edge-1");
  EXPECT_EQ(last_record().role, "admin");
  EXPECT_FALSE(last_record().request_id.empty());

  std::string response = enrol(token, "edge-1", key_.to_line());
  ASSERT_EQ(status_of(response), 200U) << response;
  auto body = json_of(response);
  EXPECT_TRUE(body.at("success").as_bool());
  EXPECT_EQ(text_at(body, "agent_id"), "edge-1");
  EXPECT_EQ(text_at(body, "fingerprint"), key_.fingerprint());
  EXPECT_EQ(text_at(body, "gateway_host_key"), "ssh-ed25519 AAAA gateway");
  EXPECT_EQ(header_of(response, "cache-control"), "no-store");
  EXPECT_EQ(last_record().action, "agent_enrolled");
  EXPECT_EQ(last_record().outcome, protocol::Outcome::success);
  EXPECT_TRUE(keys_.authorize("edge-1", key_, "192.0.2.1"));
  for (const audit::Record& record : log.records())
    EXPECT_EQ((record.detail + record.reason + record.principal).find(token), std::string::npos);
}

TEST_F(EnrolmentRestTest, OnlyAdminsMakeTokensReadKeysAndRevoke) {
  for (std::string_view token : {std::string_view(operator_token), std::string_view(reader_token)}) {
    EXPECT_EQ(status_of(post("/api/enroll/token", R"({"agent_id":"edge-1"})", token)), 403U);
    EXPECT_EQ(status_of(post("/api/agents/revoke", R"({"agent_id":"edge-1"})", token)), 403U);
    EXPECT_EQ(status_of(get("/api/keys", token)), 403U);
  }
}

TEST_F(EnrolmentRestTest, ACredentialWithAScopeReachesNoOtherAgent) {
  ASSERT_TRUE(keys_.add_key("edge-9", key_));
  EXPECT_FALSE(mint("edge-1", scoped_admin_token).empty());
  for (std::string_view path : {"/api/enroll/token", "/api/agents/revoke"}) {
    std::string response = post(path, R"({"agent_id":"edge-9"})", scoped_admin_token);
    EXPECT_EQ(status_of(response), 403U) << response;
    EXPECT_EQ(text_at(json_of(response), "code"), "scope");
    EXPECT_EQ(last_record().reason, "scope");
  }
  EXPECT_EQ(
      status_of(post("/api/keys", R"({"agent_id":"edge-9","public_key":"ssh-ed25519 AAAA"})", scoped_admin_token)),
      403U);
  auto body = json_of(get("/api/keys", scoped_admin_token));
  EXPECT_EQ(text_at(body, "keys"), "");
  EXPECT_TRUE(body.at("entries").as_array().empty());
  EXPECT_TRUE(keys_.authorize("edge-9", key_, "192.0.2.1"));
}

TEST_F(EnrolmentRestTest, WhatHasHappenedIsAnsweredEvenWhenItsEntryIsLost) {
  std::string token = mint("edge-1");
  log.set_failing(true);
  EXPECT_EQ(status_of(enrol(token, "edge-1", key_.to_line())), 200U);
  EXPECT_EQ(status_of(post("/api/agents/revoke", R"({"agent_id":"edge-1"})")), 200U);
}

TEST_F(EnrolmentRestTest, WrongTokensSoundAlikeAndAreCountedByTheirSource) {
  std::string response = enrol(std::string(64, 'a'), "edge-1", key_.to_line());
  EXPECT_EQ(status_of(response), 403U);
  EXPECT_EQ(text_at(json_of(response), "code"), "join_token");
  EXPECT_EQ(last_record().action, "authentication_failed");
  EXPECT_EQ(last_record().reason, "token_unknown");
  unsigned status = 0;
  for (int i = 0; i < 200 && status != 429U; ++i)
    status = status_of(enrol(std::string(64, 'b'), "edge-1", key_.to_line()));
  EXPECT_EQ(status, 429U);
  EXPECT_LT(log.records().size(), 10U);
}

TEST_F(EnrolmentRestTest, RevocationSaysWhatItDid) {
  ASSERT_TRUE(keys_.add_key("edge-1", key_));
  (void)mint("edge-1");
  auto one = json_of(post("/api/agents/revoke", R"({"agent_id":"edge-1","key":")" + key_.fingerprint() + R"("})"));
  EXPECT_EQ(one.at("keys_removed").as_int64(), 1);
  EXPECT_EQ(one.at("join_tokens_revoked").as_int64(), 0);
  auto all = json_of(post("/api/agents/revoke", R"({"agent_id":"edge-1"})"));
  EXPECT_TRUE(all.at("revoked").as_bool());
  EXPECT_EQ(all.at("keys_removed").as_int64(), 0);
  EXPECT_FALSE(all.at("session_dropped").as_bool());
  EXPECT_EQ(all.at("join_tokens_revoked").as_int64(), 1);
  EXPECT_EQ(last_record().action, "agent_revoked");
  EXPECT_EQ(content_of(path_), "# agents\n");
}

TEST_F(EnrolmentRestTest, KeysAreAddedOneByOneAndNeverReplaced) {
  std::string response = post("/api/keys", R"({"agent_id":"edge-1","public_key":")" + key_.to_line() + R"("})");
  ASSERT_EQ(status_of(response), 200U) << response;
  EXPECT_EQ(last_record().action, "key_added");
  auto listed = json_of(get("/api/keys"));
  EXPECT_EQ(text_at(listed, "keys"), content_of(path_));
  ASSERT_EQ(listed.at("entries").as_array().size(), 1U);
  EXPECT_EQ(text_at(listed.at("entries").as_array()[0], "fingerprint"), key_.fingerprint());
  EXPECT_EQ(listed.at("entries").as_array()[0].at("line").as_int64(), 2);
  std::string whole = post("/api/keys", R"({"keys":"ssh-ed25519 AAAA edge-1"})");
  EXPECT_EQ(status_of(whole), 400U);
  EXPECT_NE(text_at(json_of(whole), "detail").find("one by one"), std::string::npos);
  std::string taken = post("/api/keys", R"({"agent_id":"edge-2","public_key":")" + key_.to_line() + R"("})");
  EXPECT_EQ(status_of(taken), 409U);
  EXPECT_EQ(last_record().outcome, protocol::Outcome::denied);
}

TEST(EnrolmentRequest, IsStrict) {
  EXPECT_TRUE(parse_join_token_request(R"({"agent_id":"edge-1"})"));
  EXPECT_EQ(parse_join_token_request(R"({"agent_id":"edge-1","ttl_seconds":60})")->ttl, std::chrono::seconds(60));
  for (const char* body : {"", "[]", "{}", R"({"agent_id":""})", R"({"agent_id":7})", R"({"agent_id":"gateway"})",
                           R"({"agent_id":"a__b"})", R"({"agent_id":"\u00e4"})", R"({"agent_id":"a","agent_id":"b"})",
                           R"({"agent_id":"a","ttl":5})", R"({"agent_id":"a","ttl_seconds":0})",
                           R"({"agent_id":"a","ttl_seconds":-1})", R"({"agent_id":"a","ttl_seconds":1e3})",
                           R"({"agent_id":"a","ttl_seconds":86401})", R"({"agent_id":"a","ttl_seconds":"60"})"})
    EXPECT_FALSE(parse_join_token_request(body)) << body;
  EXPECT_FALSE(parse_revocation_request(R"({"agent_id":"a","key":"MD5:00"})"));
  EXPECT_FALSE(parse_revocation_request(R"({"agent_id":"a","key":""})"));
  EXPECT_FALSE(parse_enrolment_request(R"({"join_token":"x","agent_id":"a"})"));
  EXPECT_FALSE(parse_enrolment_request(R"({"join_token":"x","agent_id":"../a","public_key":"k"})"));
}

}  // namespace
}  // namespace hive::rest::test
