#include "config/redaction.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "config/gateway_fixture.h"
#include "config/key_info.h"
#include "config/key_places.h"

namespace hive::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

std::string redacted(std::string_view text) {
  Result<std::string> result = redact(text);
  EXPECT_TRUE(result) << result.error().message;
  return result.value_or("");
}

std::string restored(std::string_view edited, std::string_view current) {
  Result<std::string> result = restore(edited, current);
  EXPECT_TRUE(result) << result.error().message;
  return result.value_or("");
}

std::string refusal(std::string_view edited, std::string_view current) {
  Result<std::string> result = restore(edited, current);
  return result ? "" : result.error().message;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// The first placeholder in a text, without quotes.
std::string placeholder_in(std::string_view text) {
  std::size_t start = text.find("[redacted:");
  return start == std::string_view::npos ? "" : std::string(text.substr(start, text.find(']', start) + 1 - start));
}

/// A value of the type of a secret key that holds a marker.
std::string secret_value(const KeyInfo& info) {
  if (info.secret_names) return R"({"hush-marker":"operator"})";
  if (info.type == "string") return R"("hush-marker")";
  if (info.type == "URL") return R"("https://host/hush-marker")";
  if (info.type == "object of strings") return R"({"X-Name":"hush-marker"})";
  ADD_FAILURE() << "no secret of the type " << info.type << " is known here";
  return "null";
}

constexpr std::string_view whole = R"({
  "listen_addr": ":2222", "http_addr": ":8080",
  "host_key_path": "host_key",
  "authorized_keys_path": "authorized_keys",
  "auth_token": "hush-1",
  "tokens": {"hush-2": {"role": "operator", "identity": "alice"}, "env:ADMIN": "admin"},
  "scoped_tokens": [
    {"token": "hush-3", "role": "operator", "agents": ["agent-1"], "tools": ["*"]},
    {"token": "hush-4", "role": "read-only", "agents": ["agent-2"], "tools": ["*"]}
  ],
  "risk_tiers": {"run_command": "admin"},
  "alert_webhook_headers": {"X-Key": "hush-5"},
  "require_approval_tiers": ["write", "admin"]
})";

TEST(Redaction, HidesEverySecretOfTheTableWhereverItStands) {
  std::size_t secrets = 0;
  for (const PlacedKey& key : gateway_config_keys()) {
    if (!key.info.secret) continue;
    ++secrets;
    std::string text = test::file_with(key.place, secret_value(key.info));
    ASSERT_THAT(text, HasSubstr("hush-marker")) << key.place;
    std::string shown = redacted(text);
    EXPECT_THAT(shown, AllOf(Not(HasSubstr("hush")), HasSubstr("[redacted:"))) << key.place;
    EXPECT_EQ(restored(shown, text), restored(text, text)) << key.place;
    EXPECT_THAT(restored(shown, text), HasSubstr("hush-marker")) << key.place;
  }
  EXPECT_GE(secrets, 10U);
}

// What the program keeps as a Secret is declared secret to the redaction as well.
TEST(Redaction, KnowsEverySecretMemberOfTheConfigurationAsASecretKey) {
  std::filesystem::path root = HIVE_SOURCE_DIR;
  std::string header = read_file((root / "src/config/gateway_config.h").string(), 1 << 20).value_or("");
  std::size_t start = header.find("struct GatewayConfig {");
  ASSERT_NE(start, std::string::npos);
  std::size_t members = 0;
  for (std::string_view line : split(std::string_view(header).substr(start), '\n')) {
    if (!line.starts_with("  Secret ")) continue;
    ++members;
    std::string name(line.substr(9, line.find(';') - 9));
    bool declared = false;
    for (const PlacedKey& key : gateway_config_keys()) {
      declared = declared || (key.place == name && key.info.secret);
    }
    EXPECT_TRUE(declared) << name;
  }
  EXPECT_GE(members, 2U);
}

TEST(Redaction, KnowsEverySecretOfAnUpstreamServer) {
  std::filesystem::path root = HIVE_SOURCE_DIR;
  std::string header = read_file((root / "src/config/gateway_config.h").string(), 1 << 20).value_or("");
  std::size_t start = header.find("struct UpstreamConfig {");
  ASSERT_NE(start, std::string::npos);
  std::string_view body = std::string_view(header).substr(start, header.find("};", start) - start);
  std::size_t members = 0;
  for (std::string_view line : split(body, '\n')) {
    if (line.starts_with("  Secret ") || line.starts_with("  std::map<std::string, Secret> ")) ++members;
  }
  std::size_t declared = 0;
  for (const PlacedKey& key : gateway_config_keys()) {
    if (key.place.starts_with("external_mcp_servers[].") && key.info.secret) ++declared;
  }
  EXPECT_EQ(declared, members);
  EXPECT_GE(members, 3U);
}

TEST(Redaction, KeepsWhatIsNotSecretInItsOrder) {
  EXPECT_THAT(redacted(whole), MatchesRegex(R"(\{
  "listen_addr": ":2222",
  "http_addr": ":8080",
  "host_key_path": "host_key",
  "authorized_keys_path": "authorized_keys",
  "auth_token": "\[redacted:[0-9a-f]{12}\]",
  "tokens": \{
    "\[redacted:[0-9a-f]{12}\]": \{
      "role": "operator",
      "identity": "alice"
    \},
    "env:ADMIN": "admin"
  \},
  "scoped_tokens": \[
    \{
      "token": "\[redacted:[0-9a-f]{12}\]",
      "role": "operator",
      "agents": \["agent-1"\],
      "tools": \["\*"\]
    \},
    \{
      "token": "\[redacted:[0-9a-f]{12}\]",
      "role": "read-only",
      "agents": \["agent-2"\],
      "tools": \["\*"\]
    \}
  \],
  "risk_tiers": \{
    "run_command": "admin"
  \},
  "alert_webhook_headers": \{
    "X-Key": "\[redacted:[0-9a-f]{12}\]"
  \},
  "require_approval_tiers": \["write", "admin"\]
\}
)"));
}

TEST(Redaction, ShowsReferencesAndWhatIsEmpty) {
  std::string shown = redacted(
      R"({"auth_token":"vault:secret/x#y","llm_api_key":"","cluster_secret":null,"tokens":{" ${T} ":"admin"}})");
  EXPECT_THAT(shown, AllOf(HasSubstr("vault:secret/x#y"), HasSubstr("${T}"), Not(HasSubstr("[redacted"))));
}

TEST(Redaction, TakesForASecretWhatTheTableDoesNotKnow) {
  for (std::string_view text : {R"({"auth_tokne":"hush"})", R"({"scoped_tokens":"hush"})",
                                R"({"scoped_tokens":["hush"]})", R"({"scoped_tokens":[{"tokne":"hush"}]})",
                                R"({"tokens":["hush"]})", R"({"tokens":{"x":"hush"}})", R"({"tokens":{"x":["hush"]}})",
                                R"({"tokens":{"x":{"hsuh":"hush"}}})", R"({"auth_token":["hush",{"a":"hush"}]})",
                                R"({"alert_thresholds":["hush"]})", R"({"auth_token":{"a":{"b":"hush"}}})"}) {
    EXPECT_THAT(redacted(text), AllOf(Not(HasSubstr("hush")), HasSubstr("[redacted:"))) << text;
  }
  EXPECT_THAT(redacted(R"({"auth_token":4711})"), Not(HasSubstr("4711")));
}

TEST(Redaction, TakesANoteForASecretBecauseItOftenWasOne) {
  std::string text = R"({"_comment_auth_token":"hush","tokens":{"_comment hush":"admin","_comment":"x"},
    "risk_tiers":{"_comment":{"a":"hush"}},"scoped_tokens":[{"_comment":["hush",1]}]})";
  std::string shown = redacted(text);
  EXPECT_THAT(shown, Not(HasSubstr("hush")));
  EXPECT_THAT(shown, HasSubstr("\"_comment[redacted:"));
  EXPECT_EQ(restored(shown, text), restored(text, text));
}

TEST(Redaction, RefusesWhatIsNoConfigurationWithoutShowingIt) {
  for (std::string_view text : {"", "hush", "[\"hush\"]", R"({"tokens":{"hush":"a","hush":"b"}})", "{\"hush\":"}) {
    Result<std::string> result = redact(text);
    ASSERT_FALSE(result) << text;
    EXPECT_THAT(result.error().message, Not(HasSubstr("hush")));
  }
}

TEST(Restore, PutsBackByteForByteWhatWasHidden) {
  EXPECT_EQ(restored(redacted(whole), whole), restored(whole, whole));
  std::string odd = R"({"auth_token":"a\u0022\/\\ b","tokens":{"\u00e9\"":"admin"}})";
  EXPECT_EQ(restored(redacted(odd), odd), restored(odd, odd));
}

TEST(Restore, KeepsTheLayoutOfListsWhosePlaceholdersAreLongerThanWhatTheyHide) {
  std::string text = R"({"_comment":["10.0.0.5","10.1.0.0/16","fd00::/8","192.0.2.1"]})";
  EXPECT_EQ(restored(redacted(text), text), restored(text, text));
}

TEST(Restore, FollowsASecretToItsNewPlaceInsteadOfCountingPositions) {
  std::string shown = redacted(whole);
  std::size_t first = shown.find("    {\n      \"token\"");
  std::size_t second = shown.find("    {\n      \"token\"", first + 1);
  std::size_t end = shown.find("\n  ],", second);
  std::string one = shown.substr(first, shown.find("\n    }", first) + 6 - first);
  std::string two = shown.substr(second, end - second);
  std::string swapped = shown.substr(0, first) + two + ",\n" + one + shown.substr(end);
  std::string result = restored(swapped, whole);
  EXPECT_LT(result.find("hush-4"), result.find("hush-3"));
  EXPECT_LT(result.find("hush-4"), result.find("agent-2"));
  EXPECT_LT(result.find("agent-2"), result.find("hush-3"));
}

TEST(Restore, LetsATokenBecomeAScopedOne) {
  std::string current = R"({"tokens":{"hush-2":"operator"}})";
  std::string token = placeholder_in(redacted(current));
  std::string edited = fmt::format(R"({{"scoped_tokens":[{{"token":"{}","role":"operator"}}]}})", token);
  EXPECT_THAT(restored(edited, current), HasSubstr(R"("token": "hush-2")"));
}

TEST(Restore, CopiesNoSecretToWhereItWouldBeShownOrSent) {
  std::string token = placeholder_in(redacted(whole));
  for (std::string_view place : {R"({"gateway_id":"@"})", R"({"allowed_origins":["@"]})", R"({"risk_tiers":{"x":"@"}})",
                                 R"({"tokens":{"env:X":{"role":"admin","identity":"@"}}})"}) {
    std::string edited = replaced(std::string(place), "@", token);
    EXPECT_THAT(refusal(edited, whole), AllOf(HasSubstr("would show"), Not(HasSubstr("hush")))) << place;
  }
  for (std::string_view place : {R"({"llm_api_key":"@"})", R"({"alert_webhook_headers":{"X":"@"}})",
                                 R"({"_comment":"@"})", R"({"unknown":"@"})"}) {
    std::string edited = replaced(std::string(place), "@", token);
    EXPECT_THAT(refusal(edited, whole), AllOf(HasSubstr("stands for no secret of this field"), Not(HasSubstr("hush"))))
        << place;
  }
}

TEST(Restore, RefusesAPlaceholderThatNobodyGave) {
  EXPECT_THAT(refusal(R"({"auth_token":"[redacted:0123456789ab]"})", whole), StartsWith("auth_token: the placeholder"));
  EXPECT_THAT(refusal(R"({"tokens":{"[redacted:0123456789ab]":"admin"}})", whole),
              StartsWith("tokens[0]: the placeholder"));
  EXPECT_THAT(refusal(R"({"scoped_tokens":[{"token":"[redacted]"}]})", whole),
              StartsWith("scoped_tokens[0].token: the placeholder"));
}

TEST(Restore, RefusesOneTokenTwice) {
  std::string token = placeholder_in(redacted(R"({"tokens":{"hush":"operator"}})"));
  std::string edited = fmt::format(R"({{"tokens":{{"{}":"operator","hush":"admin"}}}})", token);
  EXPECT_THAT(refusal(edited, R"({"tokens":{"hush":"operator"}})"),
              AllOf(HasSubstr("stands in its object already"), Not(HasSubstr("hush"))));
}

TEST(Restore, TakesNewSecretsAndReferencesAsTheyAre) {
  std::string result = restored(R"({"auth_token":"new","llm_api_key":"env:KEY","tokens":{"next":"admin"}})", whole);
  EXPECT_THAT(result,
              AllOf(HasSubstr(R"("auth_token": "new")"), HasSubstr("env:KEY"), HasSubstr(R"("next": "admin")")));
}

TEST(ChangedFields, AreNamedAndSortedWithoutTheirValues) {
  std::string next(whole);
  next = replaced(next, "\":8080\"", "\":8081\"");
  next = replaced(next, "hush-1", "hush-9");
  next = replaced(next, "hush-2", "hush-8");
  next = replaced(next, "\"agent-2\"", "\"agent-3\"");
  next = replaced(next, R"({"run_command": "admin"})", R"({"file_read": "write"})");
  EXPECT_THAT(*changed_fields(whole, next), ElementsAre("auth_token", "http_addr", "risk_tiers.file_read",
                                                        "risk_tiers.run_command", "scoped_tokens", "tokens"));
}

TEST(ChangedFields, AreNoneWhereOnlyTheLookIsAnother) {
  EXPECT_THAT(*changed_fields(whole, restored(whole, whole)), IsEmpty());
  EXPECT_THAT(*changed_fields(R"({"a":null,"risk_tiers":{"x":"read","y":"write"},"_comment":"1"})",
                              R"({"risk_tiers":{"y":"writ\u0065","x":"read"}})"),
              IsEmpty());
}

TEST(ChangedFields, NeverHoldASecretName) {
  std::vector<std::string> fields =
      *changed_fields(R"({"tokens":{"hush":"admin"}})", R"({"tokens":{"hush-2":"admin"},"unknown":{"hush":1}})");
  EXPECT_THAT(fields, ElementsAre("tokens", "unknown"));
}

}  // namespace
}  // namespace hive::config
