#include "gateway/surfaces/rest/approval_json.h"
#include "gateway/surfaces/rest/approval_request.h"
#include "gateway/surfaces/rest/rest_fixture.h"

namespace hive::rest::test {
namespace {

const std::string id = "0123456789abcdef0123456789abcdef";
const std::string digest(64, 'd');

class ApprovalsRouteTest : public RestTest {
 protected:
  ApprovalsRouteTest() { approvals.kept = {request()}; }

  static calls::Approval request() {
    calls::Approval made;
    made.id = id;
    made.digest = digest;
    made.subject.principal = "token:0123456789ab";
    made.subject.identity = "alice";
    made.subject.agent = "edge-1";
    made.subject.agent_key = "SHA256:key";
    made.subject.tool = "run_command";
    made.subject.arguments = R"({"name":"systemctl","args":["restart","nginx"]})";
    made.subject.tier = protocol::Tier::admin;
    made.requester = {"token:0123456789ab", policy::Role::operator_, nullptr};
    made.request_id = "r-1";
    made.created_at = WallTime(std::chrono::seconds(1'800'000'000));
    made.expires_at = made.created_at + std::chrono::minutes(15);
    made.needed = 2;
    made.votes = {{"token:bob", "bob", made.created_at + std::chrono::seconds(5), "fine \"by\" me"}};
    return made;
  }

  std::string decide(std::string_view body, std::string_view token = admin_token) {
    return send("POST", "/api/approvals", token, "", body);
  }
  static std::string decision(std::string_view word, std::string_view more = "") {
    return R"({"id":")" + id + R"(","decision":")" + std::string(word) + "\"" + std::string(more) + "}";
  }
};

TEST_F(ApprovalsRouteTest, ARequestHasTheMembersOfTheReferenceAndOurs) {
  const boost::json::value list = json_of(get("/api/approvals", operator_token));
  ASSERT_EQ(list.as_array().size(), 1u);
  const boost::json::value& entry = list.as_array()[0];
  EXPECT_EQ(text_at(entry, "id"), id);
  EXPECT_EQ(text_at(entry, "token_id"), "token:0123456789ab");
  EXPECT_EQ(text_at(entry, "identity"), "alice");
  EXPECT_EQ(text_at(entry, "role"), "operator");
  EXPECT_EQ(text_at(entry, "agent_id"), "edge-1");
  EXPECT_EQ(text_at(entry, "tool"), "run_command");
  EXPECT_EQ(text_at(entry, "args"), approvals.kept[0].subject.arguments);
  EXPECT_EQ(entry.at("args_bytes").as_int64(), 47);
  EXPECT_FALSE(entry.as_object().contains("args_hidden_bytes"));
  EXPECT_EQ(text_at(entry, "tier"), "admin");
  EXPECT_EQ(text_at(entry, "created_at"), "2027-01-15T08:00:00.000Z");
  EXPECT_EQ(text_at(entry, "expires_at"), "2027-01-15T08:15:00.000Z");
  EXPECT_EQ(text_at(entry, "status"), "pending");
  EXPECT_EQ(text_at(entry, "digest"), digest);
  EXPECT_EQ(entry.at("required").as_int64(), 2);
  EXPECT_EQ(text_at(entry.at("approvals").as_array().at(0), "identity"), "bob");
  EXPECT_EQ(text_at(entry.at("approvals").as_array().at(0), "comment"), "fine \"by\" me");
  EXPECT_EQ(text_at(entry, "surface"), "rest");
  EXPECT_EQ(text_at(entry, "agent_key"), "SHA256:key");
  for (const char* absent : {"on_behalf_of", "after_untrusted_text", "refusal", "outcome", "reason"})
    EXPECT_FALSE(entry.as_object().contains(absent)) << absent;
}

TEST_F(ApprovalsRouteTest, WhatEndedTellsHowAndIsListedOnRequest) {
  calls::Approval& ended = approvals.kept[0];
  ended.status = calls::ApprovalStatus::rejected;
  ended.refusal = calls::ApprovalVote{"token:carol", "carol", ended.created_at, "no"};
  ended.outcome = protocol::Outcome::denied;
  ended.reason = "approval_rejected";
  ended.after_untrusted_text = true;
  ended.subject.on_behalf_of = "dave";
  EXPECT_EQ(body_of(get("/api/approvals")), "[]\n");
  EXPECT_EQ(body_of(get("/api/approvals?status=pending")), "[]\n");
  const boost::json::value list = json_of(get("/api/approvals?status=all"));
  const boost::json::value& entry = list.as_array().at(0);
  EXPECT_EQ(text_at(entry, "status"), "rejected");
  EXPECT_EQ(text_at(entry.at("refusal"), "identity"), "carol");
  EXPECT_EQ(text_at(entry, "outcome"), "denied");
  EXPECT_EQ(text_at(entry, "reason"), "approval_rejected");
  EXPECT_EQ(text_at(entry, "on_behalf_of"), "dave");
  EXPECT_TRUE(entry.at("after_untrusted_text").as_bool());
  EXPECT_EQ(problem_code(get("/api/approvals?status=done"), 400), "invalid_query");
}

TEST_F(ApprovalsRouteTest, LongArgumentsAreCutInTheListAndWholeInTheirOwnPlace) {
  std::string& arguments = approvals.kept[0].subject.arguments;
  arguments = R"({"text":")" + std::string(4086, 'x') + "\xC3\xA9\xC3\xA9" + std::string(100, 'y') + R"(; rm -rf /"})";
  const boost::json::value list = json_of(get("/api/approvals"));
  const boost::json::value& entry = list.as_array().at(0);
  std::string shown = text_at(entry, "args");
  EXPECT_EQ(shown, arguments.substr(0, 4095));  // the character at the edge is not torn
  EXPECT_EQ(entry.at("args_bytes").as_int64(), static_cast<std::int64_t>(arguments.size()));
  EXPECT_EQ(entry.at("args_hidden_bytes").as_int64(), static_cast<std::int64_t>(arguments.size() - 4095));
  const boost::json::value one = json_of(get("/api/approvals/" + id));
  EXPECT_EQ(text_at(one, "args"), arguments);
  EXPECT_FALSE(one.as_object().contains("args_hidden_bytes"));
}

TEST_F(ApprovalsRouteTest, WhoMayNotSeeARequestIsToldThatThereIsNone) {
  approvals.visible = [](const policy::Principal& viewer, const calls::Approval&) { return viewer.scope() == nullptr; };
  EXPECT_EQ(status_of(get("/api/approvals/" + id)), 200u);
  EXPECT_EQ(body_of(get("/api/approvals", scoped_admin_token)), "[]\n");
  EXPECT_EQ(problem_code(get("/api/approvals/" + id, scoped_admin_token), 404), "approval_unknown");
  EXPECT_EQ(json_of(get("/api/status", scoped_admin_token)).at("pending_approvals").as_int64(), 0);
  EXPECT_EQ(json_of(get("/api/status")).at("pending_approvals").as_int64(), 1);
}

TEST_F(ApprovalsRouteTest, WhatIsNoIdIsUnknown) {
  for (const char* path : {"0", "0123456789ABCDEF0123456789ABCDEF", "0123456789abcdef0123456789abcdef0", "%27", "%00x"})
    EXPECT_TRUE(status_of(get("/api/approvals/" + std::string(path))) / 100 == 4) << path;
  EXPECT_EQ(problem_code(get("/api/approvals/nope"), 404), "approval_unknown");
  EXPECT_EQ(problem_code(get("/api/approvals/nope/result"), 404), "approval_unknown");
  EXPECT_EQ(problem_code(decide(R"({"id":"nope","decision":"approve"})"), 404), "approval_unknown");
  EXPECT_TRUE(approvals.words.empty());
}

TEST_F(ApprovalsRouteTest, ADecisionReachesTheDeskAsItWasGiven) {
  approvals.verdict = [&](const calls::Approvals::Word&) -> Result<calls::Approval> { return approvals.kept[0]; };
  std::string response = decide(decision("approve", R"(,"digest":")" + digest + R"(","comment":"go")"));
  ASSERT_EQ(status_of(response), 200u) << response;
  EXPECT_EQ(body_of(response), R"({"id":")" + id + R"(","status":"pending","approvals":1,"required":2})" + "\n");
  ASSERT_EQ(approvals.words.size(), 1u);
  const calls::Approvals::Word& word = approvals.words[0];
  EXPECT_EQ(word.id, id);
  EXPECT_EQ(word.action, calls::ApprovalAction::approve);
  EXPECT_EQ(word.digest, digest);
  EXPECT_EQ(word.comment, "go");
  EXPECT_EQ(word.by.role, policy::Role::admin);
  EXPECT_EQ(word.request_id, header_of(response, "Myrmex-Request-Id"));
  decide(decision("reject"));
  decide(decision("withdraw"), operator_token);
  EXPECT_EQ(approvals.words.at(1).action, calls::ApprovalAction::reject);
  EXPECT_EQ(approvals.words.at(2).action, calls::ApprovalAction::withdraw);
}

TEST_F(ApprovalsRouteTest, EveryRefusalOfTheDeskHasItsStatusAndCode) {
  struct Case {
    Error error;
    unsigned status;
    std::string_view code;
    std::string_view detail;
  };
  for (const Case& each :
       {Case{{ErrorCode::not_found, "gone"}, 404, "approval_unknown", "gone"},
        Case{{ErrorCode::permission_denied, "own_request: ask a colleague"}, 403, "own_request", "ask a colleague"},
        Case{{ErrorCode::permission_denied, "role: admins approve"}, 403, "role", "admins approve"},
        Case{{ErrorCode::permission_denied, "scope: out of reach"}, 403, "scope", "out of reach"},
        Case{{ErrorCode::permission_denied, "group: not of dba"}, 403, "group", "not of dba"},
        Case{{ErrorCode::permission_denied, "not_requester: ask them"}, 403, "not_requester", "ask them"},
        Case{{ErrorCode::permission_denied, "No: way"}, 403, "permission_denied", "No: way"},
        Case{{ErrorCode::unavailable, "stopping"}, 503, "unavailable", "stopping"},
        Case{{ErrorCode::already_exists, "decided"}, 409, "approval_decided", "decided"},
        Case{{ErrorCode::invalid_argument, "another digest"}, 409, "digest_differs", "another digest"},
        Case{{ErrorCode::timed_out, "too late"}, 410, "approval_expired", "too late"},
        Case{{ErrorCode::io, "disk full"}, 500, "state_unwritable", "disk full"}}) {
    approvals.verdict = [&](const calls::Approvals::Word&) -> Result<calls::Approval> {
      return std::unexpected(each.error);
    };
    std::string response = decide(decision("approve"));
    EXPECT_EQ(problem_code(response, each.status), each.code);
    EXPECT_EQ(header_of(response, "Myrmex-Reason"), each.code);
    EXPECT_EQ(text_at(json_of(response), "detail"), each.detail);
  }
}

TEST_F(ApprovalsRouteTest, WhatTheListHidesCannotBeApprovedWithoutItsDigest) {
  approvals.kept[0].subject.arguments = R"({"text":")" + std::string(5000, 'x') + R"("})";
  approvals.verdict = [&](const calls::Approvals::Word&) -> Result<calls::Approval> { return approvals.kept[0]; };
  EXPECT_EQ(problem_code(decide(decision("approve")), 409), "digest_required");
  EXPECT_TRUE(approvals.words.empty());
  EXPECT_EQ(status_of(decide(decision("reject"))), 200u);
  EXPECT_EQ(status_of(decide(decision("approve", R"(,"digest":")" + digest + "\""))), 200u);
}

TEST_F(ApprovalsRouteTest, DecisionsThatMakeNoSenseNeverReachTheDesk) {
  for (const std::string& body : std::vector<std::string>{
           "", "x", "[]", "{}", R"({"id":7,"decision":"approve"})", R"({"id":")" + id + R"("})", decision("allow"),
           decision("Approve"), decision("approve", R"(,"digset":"x")"), decision("approve", R"(,"digest":"x")"),
           decision("approve", R"(,"digest":")" + std::string(64, 'D') + "\""),
           decision("approve", R"(,"comment":")" + std::string(1001, 'c') + "\""),
           decision("approve", R"(,"decision":"reject")"), decision("approve", R"(,"comment":{})"),
           R"({"id":")" + std::string(300, 'a') + R"(","decision":"approve"})"})
    EXPECT_EQ(problem_code(decide(body), 400), "invalid_request") << body.substr(0, 80);
  EXPECT_TRUE(approvals.words.empty());
}

TEST_F(ApprovalsRouteTest, ReadersSeeNoRequests) {
  for (const char* path : {"/api/approvals", "/api/approvals/0123456789abcdef0123456789abcdef"})
    EXPECT_EQ(problem_code(get(path, reader_token), 403), "role");
  EXPECT_EQ(problem_code(decide(decision("approve"), reader_token), 403), "role");
}

TEST_F(ApprovalsRouteTest, AnOperatorsWordIsForTheDeskToRefuseAndRecord) {
  approvals.verdict = [](const calls::Approvals::Word&) -> Result<calls::Approval> {
    return fail(ErrorCode::permission_denied, "role: admins approve");
  };
  EXPECT_EQ(problem_code(decide(decision("approve"), operator_token), 403), "role");
  EXPECT_EQ(approvals.words.at(0).by.role, policy::Role::operator_);
}

TEST_F(ApprovalsRouteTest, TheResultIsTheAnswerOfTheCall) {
  approvals.ending = []() -> Result<std::optional<calls::CallResult>> { return success(R"({"content":[]})"); };
  std::string response = get("/api/approvals/" + id + "/result?wait_ms=1500", operator_token);
  ASSERT_EQ(status_of(response), 200u) << response;
  EXPECT_EQ(approvals.waited, std::chrono::milliseconds(1500));
  EXPECT_EQ(header_of(response, "Myrmex-Outcome"), "success");
  EXPECT_EQ(body_of(response),
            R"({"jsonrpc":"2.0","id":")" + header_of(response, "Myrmex-Request-Id") + R"(","result":{"content":[]}})");
}

TEST_F(ApprovalsRouteTest, AResultThatIsARefusalIsAnsweredLikeThatOfACall) {
  for (auto [reason, status] :
       {std::pair("approval_rejected", 403u), std::pair("approval_expired", 410u), std::pair("policy_changed", 409u),
        std::pair("agent_key_changed", 409u), std::pair("credential_revoked", 403u)}) {
    approvals.ending = [&]() -> Result<std::optional<calls::CallResult>> { return refusal(reason); };
    std::string response = get("/api/approvals/" + id + "/result");
    EXPECT_EQ(problem_code(response, status), reason);
    EXPECT_EQ(header_of(response, "Myrmex-Reason"), reason);
    EXPECT_EQ(header_of(response, "Myrmex-Outcome"), "denied");
  }
}

TEST_F(ApprovalsRouteTest, WhileTheCallHasNotEndedTheRequestIsShown) {
  std::string response = get("/api/approvals/" + id + "/result");
  ASSERT_EQ(status_of(response), 202u) << response;
  EXPECT_EQ(text_at(json_of(response), "status"), "pending");
  EXPECT_EQ(text_at(json_of(response), "id"), id);
  approvals.kept[0].status = calls::ApprovalStatus::approved;
  EXPECT_EQ(text_at(json_of(get("/api/approvals/" + id + "/result")), "status"), "running");
}

TEST_F(ApprovalsRouteTest, AResultThatIsNotToBeHadSaysWhy) {
  for (auto [code, status, reason] : {std::tuple(ErrorCode::not_found, 404u, "approval_unknown"),
                                      std::tuple(ErrorCode::unavailable, 410u, "result_gone"),
                                      std::tuple(ErrorCode::permission_denied, 403u, "permission_denied"),
                                      std::tuple(ErrorCode::cancelled, 503u, "unavailable")}) {
    approvals.ending = [&]() -> Result<std::optional<calls::CallResult>> { return fail(code, "because"); };
    EXPECT_EQ(problem_code(get("/api/approvals/" + id + "/result"), status), reason);
  }
  for (const char* wait : {"-1", "30001", "x", "1.5", ""})
    EXPECT_EQ(problem_code(get("/api/approvals/" + id + "/result?wait_ms=" + wait), 400), "invalid_query") << wait;
}

TEST_F(ApprovalsRouteTest, WithoutStateNobodyCanBeAsked) {
  with_state = false;
  for (const char* path : {"/api/approvals", "/api/approvals/0123456789abcdef0123456789abcdef",
                           "/api/approvals/0123456789abcdef0123456789abcdef/result", "/api/config"})
    EXPECT_EQ(problem_code(get(path), 503), "no_state") << path;
  EXPECT_EQ(problem_code(decide(decision("approve")), 503), "no_state");
  EXPECT_EQ(status_of(get("/api/status")), 200u);
}

TEST_F(ApprovalsRouteTest, ACallThatWaitsIsAnsweredWith202OnBothWays) {
  funnel.answer = [&](const calls::Call&) {
    calls::CallResult waits = refusal("approval_required");
    waits.approval_id = id;
    waits.approval_expires_at = approvals.kept[0].expires_at;
    waits.approvals_needed = 2;
    return waits;
  };
  for (const char* headers : {"", "Accept: text/event-stream\r\n"}) {
    std::string response = call(R"({"name":"edge-1__run_command"})", operator_token, headers);
    ASSERT_EQ(status_of(response), 202u) << response;
    EXPECT_EQ(header_of(response, "Myrmex-Approval"), id);
    EXPECT_EQ(header_of(response, "Myrmex-Reason"), "approval_required");
    EXPECT_EQ(header_of(response, "Location"), "/api/approvals/" + id);
    EXPECT_EQ(body_of(response), R"({"status":"pending_approval","approval_id":")" + id +
                                     R"(","expires_at":"2027-01-15T08:15:00.000Z","required":2,"tier":"admin"})" +
                                     "\n");
  }
}

TEST_F(ApprovalsRouteTest, AStreamDoesNotBeginBeforeTheDeskHasSpoken) {
  config.require_approval_tiers = {"write"};
  start();
  RawClient client(server->port());
  client.send(request_text("POST", "/api/call", operator_token, "Accept: text/event-stream\r\n",
                           R"({"name":"edge-1__run_command","arguments":{"name":"uptime"}})"));
  ASSERT_TRUE(eventually([&] { return funnel.count() == 1; }));
  // Longer than the silence after which a stream begins by itself.
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  calls::CallResult waits = refusal("approval_required");
  waits.approval_id = id;
  funnel.at(0)->end(std::move(waits));
  EXPECT_EQ(status_of(client.read_response()), 202u);
}

}  // namespace
}  // namespace hive::rest::test
