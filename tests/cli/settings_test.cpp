#include "cli/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program_run.h"

namespace hive::cli {
namespace {

using test::Variables;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class SettingsTest : public testing::Test {
 protected:
  Result<Connection> resolve(const GlobalOptions& options = {}) {
    variables_.try_emplace("XDG_CONFIG_HOME", folder_.path());
    return resolve_connection(options, [this](std::string_view name) -> std::optional<std::string> {
      auto found = variables_.find(name);
      return found == variables_.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
    });
  }
  Connection resolved(const GlobalOptions& options = {}) {
    auto connection = resolve(options);
    EXPECT_TRUE(connection) << connection.error().message;
    return connection.value_or(Connection{});
  }
  std::string error(const GlobalOptions& options = {}) {
    auto connection = resolve(options);
    return connection ? "no error" : connection.error().message;
  }
  void write_profiles(std::string_view json, unsigned mode = 0600) { folder_.write("myrmex/config.json", json, mode); }

  test::TemporaryFolder folder_;
  Variables variables_;
};

TEST_F(SettingsTest, WithoutAnythingIsTheLocalGatewayWithoutToken) {
  Connection connection = resolved();
  EXPECT_EQ(connection.url, "https://localhost:8080");
  EXPECT_EQ(connection.url_source, "default");
  EXPECT_EQ(connection.token, "");
  EXPECT_TRUE(connection.verify_tls);
  EXPECT_TRUE(connection.warnings.empty());
}

TEST_F(SettingsTest, OptionsWinOverTheEnvironmentAndThatOverTheProfile) {
  write_profiles(R"({"profiles":{"default":{"url":"https://profile:1","token":"p","cacert":"/p.pem"}}})");
  Connection connection = resolved();
  EXPECT_EQ(connection.url, "https://profile:1");
  EXPECT_EQ(connection.token, "p");
  EXPECT_EQ(connection.ca_certificate_path, "/p.pem");
  EXPECT_EQ(connection.token_source, "profile default");

  variables_ = {{"MYRMEX_URL", "https://variable:2"}, {"MYRMEX_TOKEN", "v"}, {"MYRMEX_CACERT", "/v.pem"}};
  connection = resolved();
  EXPECT_EQ(connection.url, "https://variable:2");
  EXPECT_EQ(connection.token, "v");
  EXPECT_EQ(connection.ca_certificate_path, "/v.pem");

  connection = resolved({.url = "https://option:3//", .token = "o", .ca_certificate_path = "/o.pem"});
  EXPECT_EQ(connection.url, "https://option:3");
  EXPECT_EQ(connection.token, "o");
  EXPECT_EQ(connection.ca_certificate_path, "/o.pem");
}

TEST_F(SettingsTest, AProfileAskedForWinsOverTheEnvironment) {
  write_profiles(R"({"profiles":{"prod":{"url":"https://prod:1","token":"p","cacert":"p.pem"}}})");
  variables_ = {{"MYRMEX_URL", "https://test:2"}, {"MYRMEX_TOKEN", "t"}, {"MYRMEX_CACERT", "/t.pem"}};
  Connection connection = resolved({.profile = "prod"});
  EXPECT_EQ(connection.url, "https://prod:1");
  EXPECT_EQ(connection.token, "p");
  EXPECT_EQ(connection.ca_certificate_path, folder_.path() + "/myrmex/p.pem") << "relative to the profile file";
}

TEST_F(SettingsTest, AProfilesTokenNeverGoesToAnotherGateway) {
  write_profiles(R"({"profiles":{"default":{"url":"https://mine:1","token":"secret","cacert":"/p.pem"}}})");
  Connection connection = resolved({.url = "https://other:1"});
  EXPECT_EQ(connection.token, "");
  EXPECT_EQ(connection.ca_certificate_path, "");
  EXPECT_EQ(resolved({.url = "https://mine:1/"}).token, "secret");
}

TEST_F(SettingsTest, AProfileFileMustBelongToItsOwnerAlone) {
  for (unsigned mode : {0640U, 0604U, 0620U, 0602U}) {
    write_profiles(R"({"profiles":{"default":{"token":"secret"}}})", mode);
    EXPECT_THAT(error(), AllOf(HasSubstr("config.json"), HasSubstr("chmod 600"))) << mode;
  }
  write_profiles(R"({"profiles":{"default":{"token":"secret"}}})", 0400);
  EXPECT_EQ(resolved().token, "secret");
}

TEST_F(SettingsTest, MistakesInAProfileFileAreNamed) {
  write_profiles(R"({"profiles":{"default":{"urll":"x"}}})");
  EXPECT_THAT(error(), AllOf(HasSubstr("config.json: profiles.default"), HasSubstr("did you mean \"url\"")));
  write_profiles(R"({"profiles":{"default":{"url":5}}})");
  EXPECT_THAT(error(), HasSubstr("\"url\" must be a text"));
  write_profiles(R"({"profiles":{"default":{"token":"a","token_file":"b"}}})");
  EXPECT_THAT(error(), HasSubstr("exclude each other"));
  write_profiles(R"({"profiles":[]})");
  EXPECT_THAT(error(), HasSubstr("\"profiles\" must be an object"));
  write_profiles("{\"profiles\":");
  EXPECT_THAT(error(), HasSubstr("config.json"));
  write_profiles(R"({"profiles":{"a":{},"b":{}}})");
  EXPECT_THAT(error({.profile = "c"}), AllOf(HasSubstr("no profile \"c\""), HasSubstr("\"a\", \"b\"")));
  write_profiles(R"({"_comment":"fine","profiles":{"default":{"_comment_2":1,"token":"t"}}})");
  EXPECT_EQ(resolved().token, "t");
}

TEST_F(SettingsTest, ANamedProfileMustExistButTheDefaultNeedNot) {
  EXPECT_EQ(resolved().url, "https://localhost:8080");
  EXPECT_THAT(error({.profile = "prod"}), AllOf(HasSubstr("\"prod\""), HasSubstr("config.json")));
  variables_["MYRMEX_PROFILE"] = "test";
  EXPECT_THAT(error(), HasSubstr("\"test\""));
}

TEST_F(SettingsTest, ReadsTheTokenFromAFileThatNobodyElseCanRead) {
  EXPECT_EQ(resolved({.token_file = folder_.write("good", "  token-1\n")}).token, "token-1");
  EXPECT_THAT(error({.token_file = folder_.write("loose", "token-1\n", 0644)}), HasSubstr("chmod 600"));
  EXPECT_THAT(error({.token_file = folder_.write("empty", "\n")}), HasSubstr("is empty"));
  EXPECT_THAT(error({.token_file = folder_.path() + "/missing"}), HasSubstr("missing"));
  EXPECT_THAT(error({.token = "a", .token_file = folder_.write("good", "b")}), HasSubstr("exclude each other"));
}

TEST_F(SettingsTest, ATokenThatWouldBreakAHeaderIsRefusedWithoutShowingIt) {
  for (const char* token : {"se cret", "secret\r\nX: y",
                            "s\xc3\xa9"
                            "cret"}) {
    variables_["MYRMEX_TOKEN"] = token;
    EXPECT_THAT(error(), AllOf(HasSubstr("MYRMEX_TOKEN"), Not(HasSubstr("cret"))));
  }
}

TEST_F(SettingsTest, ATokenOnTheCommandLineWorksWithAWarning) {
  Connection connection = resolved({.token = "t"});
  EXPECT_EQ(connection.token, "t");
  ASSERT_EQ(connection.warnings.size(), 1U);
  EXPECT_THAT(connection.warnings.front(), HasSubstr("process list"));
}

TEST_F(SettingsTest, ATokenDoesNotTravelInTheOpen) {
  variables_["MYRMEX_TOKEN"] = "t";
  EXPECT_THAT(error({.url = "http://gateway.example:8080"}), HasSubstr("not encrypted"));
  EXPECT_EQ(resolved({.url = "http://127.0.0.1:8080"}).url, "http://127.0.0.1:8080");
  EXPECT_EQ(resolved({.url = "http://[::1]:8080/"}).url, "http://[::1]:8080");
  Connection insecure = resolved({.url = "http://gateway.example:8080", .insecure = true});
  EXPECT_EQ(insecure.warnings.size(), 1U);
}

TEST_F(SettingsTest, SaysWhatIsWrongWithAUrl) {
  EXPECT_THAT(error({.url = "localhost:8080"}), AllOf(HasSubstr("--url"), HasSubstr("https://localhost:8080")));
  EXPECT_THAT(error({.url = "ftp://x"}), HasSubstr("https://HOST:PORT"));
  EXPECT_THAT(error({.url = "https://"}), HasSubstr("https://HOST:PORT"));
  EXPECT_THAT(error({.url = "https://u:secret@host"}), AllOf(HasSubstr("must not carry"), Not(HasSubstr("secret"))));
}

TEST_F(SettingsTest, FindsTheProfileFile) {
  auto path = [](Variables variables) {
    return profile_file_path([variables](std::string_view name) -> std::optional<std::string> {
      auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
  };
  EXPECT_EQ(path({{"HOME", "/home/x"}}), "/home/x/.config/myrmex/config.json");
  EXPECT_EQ(path({{"HOME", "/home/x"}, {"XDG_CONFIG_HOME", "/etc/x"}}), "/etc/x/myrmex/config.json");
  EXPECT_EQ(path({}), "");
}

}  // namespace
}  // namespace hive::cli
