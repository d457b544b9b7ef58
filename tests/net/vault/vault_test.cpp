#include "net/vault/vault.h"

#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "net/http/scripted_server.h"

namespace hive::net::vault {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

/// Answers every request in the same way, and remembers what was asked.
class FakeVault {
 public:
  explicit FakeVault(int status, std::string body, std::string headers = "Content-Type: application/json\r\n")
      : server_([this, status, body = std::move(body), headers = std::move(headers)](test::Peer& peer) {
          while (true) {
            std::string request = peer.read_request();
            if (request.empty()) return;
            {
              std::lock_guard lock(mutex_);
              requests_.push_back(request);
            }
            if (!peer.answer(status, body, headers)) return;
          }
        }) {}

  [[nodiscard]] Settings settings() const {
    return {.address = server_.url(),
            .token = config::Secret("hush-token"),
            .namespace_name = {},
            .ca_certificate_path = {}};
  }
  [[nodiscard]] std::vector<std::string> requests() {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  [[nodiscard]] std::string url() const { return server_.url(); }

 private:
  std::mutex mutex_;
  std::vector<std::string> requests_;
  test::ScriptedServer server_;
};

Result<std::string> read_from(FakeVault& vault, const std::string& path = "secret/data/gateway",
                              const std::string& field = "token") {
  return Client(vault.settings()).read(path, field);
}

Error error_of(int status, std::string body) {
  FakeVault vault(status, std::move(body));
  Result<std::string> value = read_from(vault);
  EXPECT_FALSE(value);
  Error error = value ? Error{} : value.error();
  EXPECT_THAT(error.message, AllOf(HasSubstr("127.0.0.1:"), Not(HasSubstr("hush"))));
  return error;
}

config::SecretSources environment(std::map<std::string, std::string> variables) {
  return {.environment = [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
            auto entry = variables.find(name);
            if (entry == variables.end()) return std::nullopt;
            return entry->second;
          },
          .file = [](const std::string& path) -> Result<std::string> {
            if (path == "/run/vault-token") return "hush-from-file\n";
            return fail(ErrorCode::not_found, "{}: No such file or directory", path);
          }};
}

TEST(Vault, ReadsAFieldOfVersionTwoWithTokenAndWithoutFollowingCachesOfBrowsers) {
  FakeVault vault(200, R"({"data":{"data":{"token":"hush-1"},"metadata":{"version":3,"deletion_time":""}}})");
  Settings settings = vault.settings();
  settings.namespace_name = "team/a";
  EXPECT_EQ(Client(settings).read("secret/data/gateway", "token"), "hush-1");
  ASSERT_THAT(vault.requests(), SizeIs(1));
  EXPECT_THAT(vault.requests()[0],
              AllOf(HasSubstr("GET /v1/secret/data/gateway HTTP/1.1\r\n"), HasSubstr("X-Vault-Token: hush-token\r\n"),
                    HasSubstr("X-Vault-Request: true\r\n"), HasSubstr("X-Vault-Namespace: team/a\r\n")));
}

TEST(Vault, ReadsAFieldOfVersionOne) {
  FakeVault vault(200, R"({"data":{"token":"hush-1"}})");
  EXPECT_EQ(read_from(vault, "kv/gateway"), "hush-1");
  FakeVault field_called_data(200, R"({"data":{"data":"hush-2"}})");
  EXPECT_EQ(read_from(field_called_data, "kv/gateway", "data"), "hush-2");
  FakeVault object_called_data(200, R"({"data":{"data":{"x":"1"},"token":"hush-3"}})");
  EXPECT_EQ(read_from(object_called_data, "kv/gateway", "token"), "hush-3");
}

TEST(Vault, ReadsAPathOnceForAllItsFields) {
  FakeVault vault(200, R"({"data":{"data":{"a":"1","b":"2"}}})");
  Client client(vault.settings());
  EXPECT_EQ(client.read("secret/data/gateway", "a"), "1");
  EXPECT_EQ(client.read("secret/data/gateway", "b"), "2");
  EXPECT_FALSE(client.read("secret/data/gateway", "c"));
  EXPECT_THAT(vault.requests(), SizeIs(1));
  EXPECT_EQ(client.read("secret/data/other", "a"), "1");
  EXPECT_THAT(vault.requests(), SizeIs(2));
}

TEST(Vault, SaysWhatIsWrongWithTheSecretAndNeverShowsAnother) {
  EXPECT_THAT(error_of(200, R"({"data":{"data":{"other":"hush"}}})").message, HasSubstr("no field \"token\""));
  EXPECT_THAT(error_of(200, R"({"data":{"data":{"token":4711}}})").message,
              AllOf(HasSubstr("\"token\" is not a text"), Not(HasSubstr("4711"))));
  EXPECT_EQ(error_of(200, "<html>hush</html>").code, ErrorCode::corrupt);
  EXPECT_THAT(error_of(200, "<html>hush</html>").message, HasSubstr("not JSON"));
  EXPECT_THAT(error_of(200, R"({"hush":1})").message, HasSubstr("holds no secret"));
  EXPECT_THAT(error_of(200, std::string(100, '[') + std::string(100, ']')).message, HasSubstr("not JSON"));
}

TEST(Vault, TellsADeletedVersionFromAPathWhereNothingIs) {
  std::string body = R"({"data":{"data":null,"metadata":{"deletion_time":"2026-11-30T10:00:00Z","destroyed":false}}})";
  EXPECT_THAT(error_of(404, body).message, HasSubstr("is deleted"));
  EXPECT_THAT(error_of(200, body).message, HasSubstr("is deleted"));
  EXPECT_THAT(error_of(404, R"({"data":{"data":null,"metadata":{"deletion_time":"","destroyed":true}}})").message,
              HasSubstr("is deleted"));
  EXPECT_THAT(error_of(404, R"({"errors":[]})").message, HasSubstr("secret/data/gateway"));
}

TEST(Vault, SaysWhatARefusalMeans) {
  EXPECT_EQ(error_of(403, R"({"errors":["hush"]})").code, ErrorCode::permission_denied);
  EXPECT_THAT(error_of(503, R"({"errors":["Vault is sealed"]})").message, HasSubstr("unseal"));
  EXPECT_THAT(error_of(503, "busy").message, HasSubstr("maintenance"));
  EXPECT_THAT(error_of(429, "").message, HasSubstr("429"));
  EXPECT_THAT(error_of(500, "hush").message, HasSubstr("status 500"));
  EXPECT_THAT(error_of(302, "").message, HasSubstr("status 302"));
}

TEST(Vault, TakesTheTokenToNoOtherServer) {
  FakeVault other(200, R"({"data":{"token":"hush"}})");
  FakeVault vault(307, "", "Location: " + other.url() + "/v1/secret/data/gateway\r\n");
  Result<std::string> value = read_from(vault);
  ASSERT_FALSE(value);
  EXPECT_THAT(value.error().message, HasSubstr("redirects to another server"));
  EXPECT_THAT(other.requests(), SizeIs(0));
  for (std::string_view location : {"//evil/v1/x", "http://127.0.0.1:1@evil/", ""}) {
    FakeVault sly(307, "", fmt::format("Location: {}\r\n", location));
    ASSERT_FALSE(read_from(sly)) << location;
    EXPECT_THAT(sly.requests(), SizeIs(1)) << location;
  }
}

TEST(Vault, EndsARedirectInACircle) {
  FakeVault vault(307, "", "Location: /v1/secret/data/gateway\r\n");
  Result<std::string> value = read_from(vault);
  ASSERT_FALSE(value);
  EXPECT_THAT(value.error().message, HasSubstr("again and again"));
  EXPECT_THAT(vault.requests(), SizeIs(3));
}

TEST(Vault, TakesNoAnswerWithoutEnd) {
  FakeVault vault(200, std::string(2 << 20, ' '));
  Result<std::string> value = read_from(vault);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::resource_exhausted);
}

TEST(Vault, WaitsForAServerThatIsSilentOnceAndNotForEverySecret) {
  test::ScriptedServer server([](test::Peer& peer) { peer.wait_for_close(); });
  Client client({.address = server.url(),
                 .token = config::Secret("hush"),
                 .namespace_name = {},
                 .ca_certificate_path = {},
                 .timeout = std::chrono::milliseconds(200)});
  EXPECT_EQ(client.read("secret/data/a", "x").error().code, ErrorCode::timed_out);
  EXPECT_EQ(client.read("secret/data/b", "x").error().code, ErrorCode::timed_out);
  EXPECT_EQ(server.accepted(), 1);
}

TEST(Vault, TrustsTheAuthoritiesThatAreNamedAndNoOthers) {
  test::TestCertificate certificate = test::make_certificate("IP:127.0.0.1");
  test::ScriptedServer server(
      [](test::Peer& peer) {
        if (!peer.read_request().empty()) peer.answer(200, R"({"data":{"token":"hush-1"}})");
      },
      &certificate);
  std::string path = ::testing::TempDir() + "vault-ca.pem";
  FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs(certificate.pem().c_str(), file);
  std::fclose(file);
  Settings settings{
      .address = server.url(), .token = config::Secret("t"), .namespace_name = {}, .ca_certificate_path = path};
  EXPECT_EQ(Client(settings).read("kv/a", "token"), "hush-1");
  settings.ca_certificate_path.clear();
  EXPECT_EQ(Client(settings).read("kv/a", "token").error().code, ErrorCode::permission_denied);
}

TEST(Vault, SendsNoPathThatMeansSomethingElseToTheServer) {
  FakeVault vault(200, R"({"data":{"token":"hush"}})");
  for (std::string path : {"", "/secret/x", "secret//x", "secret/../sys/seal", "secret/./x", "secret/x?list=true",
                           "secret/x%2f", "secret/a b", "secret/x/", "secret/\r\nX: y"}) {
    Result<std::string> value = read_from(vault, path);
    ASSERT_FALSE(value) << path;
    EXPECT_EQ(value.error().code, ErrorCode::invalid_argument) << path;
  }
  EXPECT_THAT(vault.requests(), SizeIs(0));
}

TEST(VaultSettings, ComeFromTheVariablesThatVaultItselfReads) {
  Result<Settings> settings = settings_from(environment({{"VAULT_TOKEN", " hush\n"}}));
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->address, "http://127.0.0.1:8200");
  EXPECT_EQ(settings->token.reveal(), "hush");
  settings = settings_from(environment({{"VAULT_ADDR", "https://vault.example:8200/"},
                                        {"VAULT_TOKEN_FILE", "/run/vault-token"},
                                        {"VAULT_NAMESPACE", "a/b"},
                                        {"VAULT_CACERT", "/etc/ca.pem"}}));
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->address, "https://vault.example:8200");
  EXPECT_EQ(settings->token.reveal(), "hush-from-file");
  EXPECT_EQ(settings->namespace_name, "a/b");
  EXPECT_EQ(settings->ca_certificate_path, "/etc/ca.pem");
}

TEST(VaultSettings, AreRefusedByTheNameOfTheVariableAndWithoutItsSecret) {
  auto problem = [](std::map<std::string, std::string> variables) {
    Result<Settings> settings = settings_from(environment(std::move(variables)));
    return settings ? std::string() : settings.error().message;
  };
  EXPECT_THAT(problem({}), HasSubstr("neither VAULT_TOKEN nor VAULT_TOKEN_FILE"));
  EXPECT_THAT(problem({{"VAULT_TOKEN_FILE", "/none"}}), AllOf(HasSubstr("VAULT_TOKEN_FILE"), HasSubstr("/none")));
  EXPECT_THAT(problem({{"VAULT_TOKEN", "hu\nsh"}}), AllOf(HasSubstr("token"), Not(HasSubstr("hu"))));
  EXPECT_THAT(problem({{"VAULT_TOKEN", "t"}, {"VAULT_NAMESPACE", "a\r\nb"}}), HasSubstr("VAULT_NAMESPACE"));
  for (std::string address : {"vault:8200", "http://vault:8200", "http://10.0.0.1:8200", "https://", "https://h/path",
                              "https://u:hush@h", "https://h?x", "ftp://h", "http://127.0.0.1.evil:8200"}) {
    EXPECT_THAT(problem({{"VAULT_TOKEN", "t"}, {"VAULT_ADDR", address}}),
                AllOf(HasSubstr("VAULT_ADDR"), Not(HasSubstr("hush"))))
        << address;
  }
  for (std::string address :
       {"http://localhost:8200", "http://[::1]:8200", "https://vault", "https://[fd00::1]:8200"}) {
    EXPECT_EQ(problem({{"VAULT_TOKEN", "t"}, {"VAULT_ADDR", address}}), "") << address;
  }
}

TEST(VaultReferences, AreResolvedThroughTheSettingsOfTheEnvironment) {
  FakeVault vault(200, R"({"data":{"data":{"token":" hush-1\n"}}})");
  config::SecretSources sources = with_vault(environment({{"VAULT_ADDR", vault.url()}, {"VAULT_TOKEN", "hush-token"}}));
  EXPECT_EQ(config::resolve_secret("vault:secret/data/gateway#token", sources), "hush-1");
  Result<std::string> missing = config::resolve_secret("vault:secret/data/gateway#other", sources);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, AllOf(HasSubstr("\"vault:secret/data/gateway#other\""), HasSubstr("127.0.0.1:"),
                                             HasSubstr("no field"), Not(HasSubstr("hush"))));
  EXPECT_THAT(vault.requests(), SizeIs(1));
}

TEST(VaultReferences, NameWhatIsMissingForThem) {
  config::SecretSources sources = with_vault(environment({}));
  for (std::string reference : {"vault:", "vault:secret/x", "vault:#x", "vault:secret/x#"}) {
    EXPECT_THAT(config::resolve_secret(reference, sources).error().message, HasSubstr("needs a path and a field"))
        << reference;
  }
  EXPECT_THAT(config::resolve_secret("vault:secret/x#y", sources).error().message,
              AllOf(HasSubstr("vault:secret/x#y"), HasSubstr("VAULT_TOKEN")));
  EXPECT_EQ(config::resolve_secret("env:X", with_vault(environment({{"X", "y"}}))), "y") << "the others still work";
}

}  // namespace
}  // namespace hive::net::vault
