#include "config/gateway_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "config/gateway_keys.h"
#include "config/temporary_folder.h"

namespace hive::config {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr std::string_view readme_gateway = R"(
  "listen_addr": ":2222",
  "http_addr": ":8080",
  "host_key_path": "host_key",
  "authorized_keys_path": "authorized_keys",
  "ollama_url": "http://localhost:11434",
  "ollama_model": "gemma4:e4b",
  "auth_token": "fallback_admin_token",
  "tokens": {
    "admin-token-123": "admin",
    "operator-token-456": "operator",
    "read-token-789": "read-only"
  },
  "audit_log_path": "audit.log",
  "metrics_enabled": true)";

constexpr std::string_view readme_governance = R"(
  "risk_tiers": { "run_command": "admin", "service_control": "write" },
  "require_approval_tiers": ["write", "admin"],
  "rate_limit_per_minute": 30,
  "scheduled_tasks": [
    {
      "name": "nightly-disk-check",
      "agent_id": "agent-nginx",
      "prompt": "Report disk usage and flag anything over 85%",
      "interval_seconds": 3600
    }
  ])";

std::string with(std::string_view more) {
  return fmt::format(R"({{"listen_addr":":2222","authorized_keys_path":"/a","host_key_path":"/h"{}{}}})",
                     more.empty() ? "" : ",", more);
}

const SecretSources& test_sources() {
  static const SecretSources sources{
      .environment = [](const std::string& name) -> std::optional<std::string> {
        if (name == "TOKEN") return "from-environment\n";
        if (name == "BLANK") return "  ";
        return std::nullopt;
      },
      .file = [](const std::string& path) -> Result<std::string> {
        if (path == "/run/agenix/token") return "from-agenix\n";
        if (path == "/run/token") return "from-file\n";
        return fail(ErrorCode::not_found, "{}: No such file or directory", path);
      },
  };
  return sources;
}

Result<GatewayConfig> read(std::string_view text) {
  return read_gateway_config(text, "/etc/gateway.json", test_sources(), false);
}

std::string problems_of(std::string_view more) {
  Result<GatewayConfig> config = read(with(more));
  return config ? "" : config.error().message;
}

TEST(GatewayConfig, LoadsTheExampleOfTheReadmeAsItIsWritten) {
  Result<GatewayConfig> config =
      parse_gateway_config(fmt::format("{{{}}}", readme_gateway), "/etc/hive/gateway_config.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->listen_addr, ":2222");
  EXPECT_EQ(config->http_addr, ":8080");
  EXPECT_EQ(config->host_key_path, "/etc/hive/host_key");
  EXPECT_EQ(config->authorized_keys_path, "/etc/hive/authorized_keys");
  EXPECT_EQ(config->audit_log_path, "/etc/hive/audit.log");
  EXPECT_EQ(config->state_dir, "/etc/hive");
  EXPECT_EQ(config->auth_token.reveal(), "fallback_admin_token");
  ASSERT_EQ(config->tokens.size(), 3U);
  EXPECT_EQ(config->tokens[2].token.reveal(), "read-token-789");
  EXPECT_EQ(config->tokens[2].role, "read-only");
  EXPECT_THAT(config->without_effect,
              ElementsAre(StartsWith("ollama_url ("), StartsWith("ollama_model ("), StartsWith("metrics_enabled (")));
}

TEST(GatewayConfig, LoadsTheGovernanceExampleOfTheReadmeNextToTheFirst) {
  Result<GatewayConfig> config = read(fmt::format("{{{},{}}}", readme_gateway, readme_governance));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->risk_tiers, UnorderedElementsAre(Pair("run_command", "admin"), Pair("service_control", "write")));
  EXPECT_THAT(config->require_approval_tiers, ElementsAre("write", "admin"));
  EXPECT_EQ(config->rate_limit_per_minute, 30);
  EXPECT_THAT(config->without_effect, Contains(StartsWith("scheduled_tasks (")));
  EXPECT_THAT(config->without_effect, Not(Contains(StartsWith("require_approval_tiers"))));
}

TEST(GatewayConfig, FindsNothingWrongInTheGovernanceExampleButWhatItDoesNotSay) {
  Result<GatewayConfig> config = read(fmt::format("{{{}}}", readme_governance));
  ASSERT_FALSE(config);
  EXPECT_THAT(split(config.error().message, '\n'),
              ElementsAre(StartsWith("/etc/gateway.json:1: listen_addr is not set"),
                          StartsWith("/etc/gateway.json:1: host_key_path is not set"),
                          StartsWith("/etc/gateway.json:1: authorized_keys_path is not set")));
}

TEST(GatewayConfig, ReportsAllProblemsTogether) {
  Result<GatewayConfig> config = read(R"({
    "listen_addr": "nonsense",
    "tls_cert_path": "/c",
    "tokens": {"very-secret": "root"},
    "audit_log_path": "/log",
    "metrics_poll_seconds": -1
  })");
  ASSERT_FALSE(config);
  const std::string& message = config.error().message;
  EXPECT_THAT(message, HasSubstr(":2: listen_addr: "));
  EXPECT_THAT(message, HasSubstr("tls_cert_path is set and tls_key_path is not"));
  EXPECT_THAT(message, HasSubstr(":4: tokens[0]: is not a role; write"));
  EXPECT_THAT(message, HasSubstr("host_key_path is not set; by this key"));
  EXPECT_THAT(message, HasSubstr("metrics_poll_seconds: expected a whole number from 0"));
  EXPECT_THAT(message, HasSubstr("authorized_keys_path is not set"));
}

TEST(GatewayConfig, NeverShowsASecretInAMessage) {
  std::string problems = problems_of(R"("http_addr":":1","auth_token":"hush 1","tokens":{"hush-2":"root","hush-3":7,
      "hush\u00004":"admin"},"scoped_tokens":[{"token":"hush-5"}],"llm_api_key":["hush-6"])");
  EXPECT_NE(problems, "");
  EXPECT_THAT(problems, Not(HasSubstr("hush")));
}

TEST(GatewayConfig, RefusesAHalfSetTlsPair) {
  EXPECT_THAT(problems_of(R"("tls_key_path":"/k")"), HasSubstr("tls_key_path is set and tls_cert_path is not"));
  EXPECT_EQ(problems_of(R"("tls_key_path":"/k","tls_cert_path":"/c")"), "");
}

TEST(GatewayConfig, RefusesAnEmptySecret) {
  EXPECT_THAT(problems_of(R"("auth_token":"")"), HasSubstr("auth_token: the secret is empty"));
  EXPECT_THAT(problems_of(R"("tokens":{"":"admin"})"), HasSubstr("tokens[0]: the secret is empty"));
  EXPECT_THAT(problems_of(R"("tokens":{"  ":"admin"})"), HasSubstr("tokens[0]: the secret is empty"));
}

TEST(GatewayConfig, RefusesToServeWithoutAnyCredentialAndSaysHowToMakeOne) {
  EXPECT_THAT(problems_of(R"("http_addr":":8080")"), HasSubstr("openssl rand -hex 32"));
  EXPECT_THAT(problems_of(R"("plaintext_http_addr":"127.0.0.1:8080")"), HasSubstr("openssl rand -hex 32"));
  EXPECT_EQ(problems_of(R"("http_addr":":8080","auth_token":"t")"), "");
  EXPECT_EQ(problems_of(R"("http_addr":":8080","tokens":{"t":"operator"})"), "");
}

TEST(GatewayConfig, LetsPlaintextOnlyOnLoopbackLiterals) {
  for (std::string_view address : {":8081", "0.0.0.0:8081", "10.0.0.1:1", "localhost:8081", "[::]:1", "128.0.0.1:1"}) {
    EXPECT_THAT(problems_of(fmt::format(R"("auth_token":"t","plaintext_http_addr":"{}")", address)),
                HasSubstr("not a loopback address"))
        << address;
  }
  for (std::string_view address : {"127.0.0.1:8081", "127.9.9.9:0", "[::1]:8081"}) {
    EXPECT_EQ(problems_of(fmt::format(R"("auth_token":"t","plaintext_http_addr":"{}")", address)), "") << address;
  }
}

TEST(GatewayConfig, RefusesTwoListenersOnOnePort) {
  EXPECT_THAT(problems_of(R"("auth_token":"t","http_addr":"127.0.0.1:2222")"), HasSubstr("same port"));
  EXPECT_EQ(problems_of(R"("auth_token":"t","http_addr":"127.0.0.1:0","plaintext_http_addr":"127.0.0.1:0")"), "");
}

TEST(GatewayConfig, ResolvesReferencesOfEveryKind) {
  Result<GatewayConfig> config =
      read(with(R"("auth_token":"env:TOKEN","tokens":{"file:/run/token":"operator","agenix:token":"read-only"})"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->auth_token.reveal(), "from-environment");
  EXPECT_EQ(config->tokens[0].token.reveal(), "from-file");
  EXPECT_EQ(config->tokens[1].token.reveal(), "from-agenix");
}

TEST(GatewayConfig, RefusesAReferenceThatCannotBeResolved) {
  EXPECT_THAT(problems_of(R"("auth_token":"env:MISSING")"),
              HasSubstr("auth_token: the secret reference \"env:MISSING\" cannot be resolved"));
  EXPECT_THAT(problems_of(R"("auth_token":"${BLANK}")"), HasSubstr("resolves to nothing"));
  EXPECT_THAT(problems_of(R"("auth_token":"file:/nowhere")"), HasSubstr("/nowhere: No such file"));
  EXPECT_THAT(problems_of(R"("auth_token":"vault:secret/x#y")"), HasSubstr("does not read from Vault"));
}

TEST(GatewayConfig, RefusesPeersWithoutASharedSecret) {
  EXPECT_THAT(problems_of(R"("peer_gateways":["https://b"])"), HasSubstr("cluster_secret is not"));
  EXPECT_EQ(problems_of(R"("peer_gateways":["https://b"],"cluster_secret":"s")"), "");
}

TEST(GatewayConfig, WantsAHostKeyWithAndWithoutAnAuditLog) {
  Result<GatewayConfig> config = read(R"({"listen_addr":":2222","authorized_keys_path":"/a","audit_log_path":"/l"})");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, AllOf(HasSubstr("host_key_path is not set"), HasSubstr("ssh-keygen -t ed25519")));
  config = read(R"({"listen_addr":":2222","authorized_keys_path":"/a","host_key_path":""})");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("host_key_path: must not be empty"));
}

TEST(GatewayConfig, WantsAGatewayIdThatCanNameALog) {
  EXPECT_EQ(problems_of(R"("gateway_id":"gw-1.eu")"), "");
  for (std::string_view id : {"a b", "a+b", "a/b", "\u00e9"}) {
    EXPECT_THAT(problems_of(fmt::format(R"("gateway_id":"{}")", id)), HasSubstr("gateway_id: must be")) << id;
  }
}

TEST(GatewayConfig, RefusesAWildcardOrigin) {
  EXPECT_THAT(problems_of(R"("allowed_origins":["*"])"), HasSubstr("not an origin"));
  EXPECT_THAT(problems_of(R"("allowed_origins":["https://a/"])"), HasSubstr("not an origin"));
  EXPECT_EQ(problems_of(R"("allowed_origins":["https://a:1","http://127.0.0.1:3000"])"), "");
}

TEST(GatewayConfig, NamesTheNearestKeyForAnUnknownOne) {
  EXPECT_THAT(problems_of(R"("authtoken":"x")"), HasSubstr("authtoken: unknown key; did you mean \"auth_token\"?"));
  EXPECT_THAT(problems_of(R"("scheduled_tasks":[{"nmae":"x"}])"), HasSubstr("did you mean \"name\"?"));
}

TEST(GatewayConfig, KeepsQuietAboutLaterFeaturesThatAreOff) {
  Result<GatewayConfig> config = read(with(
      R"("upstream_servers":null,"metrics_enabled":false,"metrics_poll_seconds":0,"oidc_issuer":"","scoped_tokens":[ ],
         "mtls_cn_roles":{},"llm_api_key":"","cluster_secret":"","llm_provider":"","ollama_url":"","mtls_role":"")"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->without_effect, IsEmpty());
}

TEST(GatewayConfig, HasDefaultsThatAreStated) {
  Result<GatewayConfig> config = read(with(""));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->keepalive, std::chrono::seconds(15));
  EXPECT_EQ(config->call_timeout, std::chrono::seconds(35));
  EXPECT_EQ(config->workers, 0U);
  EXPECT_EQ(config->log_level, "info");
}

TEST(GatewaySecret, ShowsNothingWhenItIsFormatted) {
  EXPECT_EQ(fmt::format("<{}>", Secret("hush")), "<[redacted]>");
}

class LoadGatewayConfig : public ::testing::Test {
 protected:
  std::string problems_of_file(unsigned mode, std::string_view more) {
    std::string path =
        folder_.write("g.json",
                      fmt::format(R"({{"listen_addr":":2222","authorized_keys_path":"a","host_key_path":"h"{}{}}})",
                                  more.empty() ? "" : ",", more),
                      mode);
    Result<GatewayConfig> config = load_gateway_config(path);
    return config ? "" : config.error().message;
  }
  TemporaryFolder folder_;
};

TEST_F(LoadGatewayConfig, RefusesKeysThatOthersCanRead) {
  folder_.write("h", "key", 0644);
  folder_.write("k", "key", 0660);
  std::string problems = problems_of_file(0600, R"("tls_cert_path":"c","tls_key_path":"k")");
  EXPECT_THAT(problems, HasSubstr("host_key_path: " + (folder_ / "h") + " has mode 0644"));
  EXPECT_THAT(problems, HasSubstr("tls_key_path: " + (folder_ / "k") + " has mode 0660"));
  EXPECT_THAT(problems, HasSubstr("chmod 600"));
}

TEST_F(LoadGatewayConfig, RefusesAFileOfSecretsThatEveryoneCanRead) {
  EXPECT_THAT(problems_of_file(0644, R"("auth_token":"t")"), HasSubstr("run: chmod 600 " + (folder_ / "g.json")));
  EXPECT_EQ(problems_of_file(0640, R"("auth_token":"t")"), "");
}

TEST_F(LoadGatewayConfig, LetsAFileBeReadThatOnlyRefersToSecrets) {
  folder_.write("t", "token", 0600);
  EXPECT_EQ(problems_of_file(0644, fmt::format(R"("auth_token":"file:{}")", folder_ / "t")), "");
}

TEST_F(LoadGatewayConfig, RefusesASecretFileThatEveryoneCanRead) {
  folder_.write("t", "token", 0644);
  EXPECT_THAT(problems_of_file(0644, fmt::format(R"("auth_token":"file:{}")", folder_ / "t")),
              HasSubstr("run: chmod 600 " + (folder_ / "t")));
}

TEST_F(LoadGatewayConfig, RefusesAFileThatEveryoneMayChange) {
  EXPECT_THAT(problems_of_file(0622, ""), HasSubstr("chmod o-w"));
}

}  // namespace
}  // namespace hive::config
