#include "config/gateway_check.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "config/temporary_folder.h"
#include "crypto/scratch_folder.h"
#include "crypto/ssh_key.h"

namespace hive::config {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class GatewayCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    config_.source_path = folder_ / "gateway_config.json";
    config_.state_dir = folder_ / ".";
    config_.http_addr = ":8080";
    config_.host_key_path = folder_.write("host_key", key_.to_openssh());
    config_.authorized_keys_path = folder_.write("authorized_keys", key_.public_key().to_line() + "\n");
    config_.audit_log_path = folder_ / "audit.log";
    config_.auth_token = Secret("0123456789abcdef");
  }

  [[nodiscard]] GatewayFindings check() const { return check_gateway_files(config_); }

  [[nodiscard]] std::string make_tls(const std::string& name) const {
    auto made = test::run_command(
        "umask 077; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
        "-subj /CN=test -keyout '" +
        (folder_ / (name + ".key")) + "' -out '" + (folder_ / (name + ".crt")) + "'");
    EXPECT_EQ(made.status, 0) << made.output;
    return folder_ / name;
  }

  TemporaryFolder folder_;
  crypto::PrivateKey key_ = crypto::PrivateKey::generate("agent-1").value();
  GatewayConfig config_;
};

TEST_F(GatewayCheck, FilesThatAreAllThereAreGood) {
  GatewayFindings findings = check();
  EXPECT_THAT(findings.errors, IsEmpty());
  EXPECT_THAT(findings.warnings, IsEmpty());
}

TEST_F(GatewayCheck, AMissingHostKeyIsAnErrorWithTheCommandThatMakesIt) {
  config_.host_key_path = folder_ / "none";
  EXPECT_THAT(check().errors, ElementsAre(AllOf(StartsWith(config_.source_path + ": host_key_path: "),
                                                HasSubstr("ssh-keygen -t ed25519"))));
}

TEST_F(GatewayCheck, AHostKeyThatIsNoUsableEd25519KeyIsAnError) {
  for (std::string options : {"-t ecdsa -N ''", "-t ed25519 -N secret"}) {
    std::string path = folder_ / "other";
    auto made = test::run_command("rm -f '" + path + "' && ssh-keygen -q " + options + " -f '" + path + "'");
    ASSERT_EQ(made.status, 0) << made.output;
    config_.host_key_path = path;
    EXPECT_THAT(check().errors, ElementsAre(HasSubstr("host_key_path"))) << options;
  }
  config_.host_key_path = folder_.write("loose", key_.to_openssh(), 0644);
  EXPECT_THAT(check().errors, ElementsAre(AllOf(HasSubstr("host_key_path"), HasSubstr("chmod"))));
}

TEST_F(GatewayCheck, MissingAuthorizedKeysAreAnErrorAndRefusedLinesAWarning) {
  std::string line = key_.public_key().to_line();
  folder_.write("authorized_keys", line + "\ncommand=\"x\" " + line + "\n# note\njunk\n");
  GatewayFindings findings = check();
  EXPECT_THAT(findings.errors, IsEmpty());
  EXPECT_THAT(findings.warnings, ElementsAre(HasSubstr("line 2 authorises nobody"), HasSubstr("line 4 ")));
  folder_.write("authorized_keys", "# none yet\n");
  EXPECT_THAT(check().warnings, ElementsAre(HasSubstr("no agent can connect")));
  config_.authorized_keys_path = folder_ / "none";
  EXPECT_THAT(check().errors, ElementsAre(AllOf(HasSubstr("authorized_keys_path"), HasSubstr("none"))));
}

TEST_F(GatewayCheck, TlsFilesMustBeThereAndBelongTogether) {
  std::string one = make_tls("one");
  std::string two = make_tls("two");
  config_.tls_cert_path = one + ".crt";
  config_.tls_key_path = one + ".key";
  EXPECT_THAT(check().errors, IsEmpty());
  config_.tls_key_path = two + ".key";
  EXPECT_THAT(check().errors, ElementsAre(AllOf(HasSubstr("tls_key_path"), HasSubstr("another certificate"))));
  config_.tls_key_path = folder_ / "none";
  EXPECT_THAT(check().errors, ElementsAre(HasSubstr("none")));
  // Nobody reads them without a listener.
  config_.http_addr.clear();
  EXPECT_THAT(check().errors, IsEmpty());
  EXPECT_THAT(check().warnings, ElementsAre(HasSubstr("none")));
}

TEST_F(GatewayCheck, AnAuditLogNeedsAFolderToStandIn) {
  config_.audit_log_path = folder_ / "none/audit.log";
  EXPECT_THAT(check().errors, ElementsAre(AllOf(HasSubstr("audit_log_path"), HasSubstr("does not exist"))));
  config_.audit_log_path = folder_ / "host_key/audit.log";
  EXPECT_THAT(check().errors, ElementsAre(HasSubstr("audit_log_path")));
  config_.audit_log_path = folder_ / ".";
  EXPECT_THAT(check().errors, ElementsAre(HasSubstr("not a regular file")));
}

TEST_F(GatewayCheck, NoAuditLogIsAWarningThatSaysWhatWillBeRefused) {
  config_.audit_log_path.clear();
  GatewayFindings findings = check();
  EXPECT_THAT(findings.errors, IsEmpty());
  EXPECT_THAT(findings.warnings, ElementsAre(HasSubstr("calls of tier write and admin will be refused")));
}

TEST_F(GatewayCheck, AStateDirThatIsAFileIsAnError) {
  config_.state_dir = config_.host_key_path;
  EXPECT_THAT(check().errors, ElementsAre(HasSubstr("state_dir")));
}

TEST_F(GatewayCheck, ShortTokensAreNamedByTheirPlaceAndNeverPrinted) {
  config_.auth_token = Secret("hunter2");
  config_.tokens = {{.token = Secret("0123456789abcdef"), .role = "operator", .field = "tokens[0]"},
                    {.token = Secret("0123456789abcde"), .role = "read-only", .field = "tokens[1]"}};
  GatewayFindings findings = check();
  EXPECT_THAT(findings.warnings, ElementsAre(HasSubstr(": auth_token: "), HasSubstr(": tokens[1]: ")));
  EXPECT_THAT(findings.warnings, Each(AllOf(Not(HasSubstr("hunter2")), Not(HasSubstr("0123456789abcde")))));
}

TEST_F(GatewayCheck, AHashIsNotMeasured) {
  config_.auth_token = Secret("sha256:" + std::string(64, 'a'));
  EXPECT_THAT(check().warnings, IsEmpty());
}

TEST_F(GatewayCheck, AuthoritiesMustBeCertificates) {
  config_.client_ca_cert_path = make_tls("ca") + ".crt";
  config_.oidc_ca_cert_path = config_.client_ca_cert_path;
  EXPECT_THAT(check().errors, IsEmpty());
  config_.client_ca_cert_path = folder_ / "ca.key";
  config_.oidc_ca_cert_path = folder_ / "none";
  EXPECT_THAT(check().errors, ElementsAre(AllOf(HasSubstr("client_ca_cert_path"), HasSubstr("holds no certificate")),
                                          AllOf(HasSubstr("oidc_ca_cert_path"), HasSubstr("none"))));
  config_.client_ca_cert_path =
      folder_.write("broken", read_file(folder_ / "ca.crt", 1 << 20).value() +
                                  "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  config_.oidc_ca_cert_path.clear();
  EXPECT_THAT(check().errors, ElementsAre(HasSubstr("certificate 2 cannot be read")));
}

TEST_F(GatewayCheck, ATagThatNobodyHasIsAWarning) {
  config_.agent_tags = {{"agent-1", {"web"}}};
  config_.scoped_tokens = {
      {.credential = {.token = Secret("0123456789abcdef"), .role = "operator", .field = "scoped_tokens[0]"},
       .agents = {},
       .tags = {"web", "wbe", "w*"},
       .tools = {"*"},
       .expires_at = {}}};
  EXPECT_THAT(check().warnings, ElementsAre(AllOf(HasSubstr("scoped_tokens[0].tags"), HasSubstr("\"wbe\""))));
}

TEST_F(GatewayCheck, TokensWithoutIdentityAreAWarningWhereASecondPersonIsWanted) {
  config_.tokens = {{.token = Secret("0123456789abcdef0"), .role = "admin", .field = "tokens[0]"},
                    {.token = Secret("0123456789abcdef1"), .role = "admin", .identity = "alice", .field = "tokens[1]"}};
  EXPECT_THAT(check().warnings, IsEmpty());
  config_.require_approval_tiers = {"admin"};
  EXPECT_THAT(check().warnings,
              ElementsAre(AllOf(HasSubstr("tokens[0]: no identity is set"), Not(HasSubstr("tokens[1]")))));
}

TEST_F(GatewayCheck, ApprovalsThatNobodyCanGiveAreAWarning) {
  config_.require_approval_tiers = {"admin"};
  config_.approvals_required = {{"admin", {.count = 3, .groups = {"ops", "leads"}}}};
  config_.approval_groups = {{"ops", {"alice", "bob"}}, {"leads", {"alice"}}};
  EXPECT_THAT(check().warnings,
              ElementsAre(HasSubstr("approvals_required.admin: wants 3 people and its groups have 2")));
  config_.oidc_issuer = "https://idp";
  EXPECT_THAT(check().warnings, IsEmpty());
  config_.require_approval_tiers.clear();
  EXPECT_THAT(check().warnings, ElementsAre(HasSubstr("changes nothing")));
}

TEST_F(GatewayCheck, AnUpstreamServerThatCannotBeTrustedOrToldApartIsAWarning) {
  UpstreamConfig upstream;
  upstream.name = "edge-1";
  upstream.field = "external_mcp_servers[0]";
  upstream.ca_certificate_path = folder_ / "missing.pem";
  config_.upstreams = {upstream};
  config_.agent_tags = {{"edge-1", {"lab"}}};
  EXPECT_THAT(check().warnings, ElementsAre(HasSubstr("external_mcp_servers[0].name: \"edge-1\" is the id of an agent"),
                                            HasSubstr("external_mcp_servers[0].ca_cert_path: ")));
}

TEST_F(GatewayCheck, AProxyThatIsHalfSetIsAWarning) {
  config_.trusted_proxy_identity_header = "x-forwarded-user";
  EXPECT_THAT(check().warnings, ElementsAre(HasSubstr("the headers of a proxy are ignored")));
}

}  // namespace
}  // namespace hive::config
