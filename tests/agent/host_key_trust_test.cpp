#include "agent/host_key_trust.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/file.h"

namespace hive::agent {
namespace {

using testing::HasSubstr;

class HostKeyTrustTest : public testing::Test {
 protected:
  HostKeyTrustTest() {
    std::string name = (std::filesystem::temp_directory_path() / "hive-trust-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder_ = name;
    config_.source_path = "/etc/agent.json";
    config_.private_key_path = folder_ + "/key";
    config_.known_host_key_path = folder_ + "/known";
  }
  ~HostKeyTrustTest() override { std::filesystem::remove_all(folder_); }

  static crypto::PublicKey new_key() { return crypto::PrivateKey::generate("")->public_key(); }

  Result<void> verify(const config::GatewayAddress& gateway, const crypto::PublicKey& key) {
    auto trust = HostKeyTrust::create(config_);
    EXPECT_TRUE(trust) << trust.error().message;
    return trust->verify(gateway, key);
  }
  std::string file() { return *read_file(config_.known_host_key_path, 65536); }
  void write(const std::string& text) { ASSERT_TRUE(write_file_atomically(config_.known_host_key_path, text, 0600)); }

  std::string folder_;
  config::AgentConfig config_;
  config::GatewayAddress first_{"gw-1.example", 2222};
  config::GatewayAddress second_{"gw-2.example", 2222};
};

TEST_F(HostKeyTrustTest, LearnsOnFirstUseAndKnowsTheKeyAfterwards) {
  const auto key = new_key();
  ASSERT_TRUE(verify(first_, key));
  EXPECT_THAT(file(), HasSubstr("[gw-1.example]:2222 " + std::string("ssh-ed25519 ")));
  struct stat status{};
  ASSERT_EQ(::stat(config_.known_host_key_path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  const std::string before = file();
  EXPECT_TRUE(verify(first_, key));
  EXPECT_EQ(file(), before);
}

TEST_F(HostKeyTrustTest, JudgesWithoutWriting) {
  using Standing = HostKeyTrust::Standing;
  const auto key = new_key();
  const auto judge = [&](const crypto::PublicKey& shown) {
    return HostKeyTrust::create(config_)->judge(first_, shown);
  };
  EXPECT_EQ(judge(key), Standing::unknown);
  EXPECT_FALSE(std::filesystem::exists(config_.known_host_key_path));
  ASSERT_TRUE(verify(first_, key));
  EXPECT_EQ(judge(key), Standing::known);
  EXPECT_FALSE(judge(new_key()));
  config_.gateway_host_key = key.to_line();
  EXPECT_EQ(judge(key), Standing::pinned);
  EXPECT_FALSE(judge(new_key()));
}

TEST_F(HostKeyTrustTest, KeepsOneKeyForEachAddress) {
  const auto key_1 = new_key();
  const auto key_2 = new_key();
  ASSERT_TRUE(verify(first_, key_1));
  ASSERT_TRUE(verify(second_, key_2));
  EXPECT_TRUE(verify(first_, key_1));
  EXPECT_TRUE(verify(second_, key_2));
  EXPECT_FALSE(verify(second_, key_1));
}

TEST_F(HostKeyTrustTest, DoesNotTakeAnotherPortOrALongerNameForTheSame) {
  const auto key = new_key();
  ASSERT_TRUE(verify({"gw2", 2222}, key));
  // Unknown, so learned: each has its own line.
  ASSERT_TRUE(verify({"gw", 2222}, new_key()));
  ASSERT_TRUE(verify({"gw2", 2223}, new_key()));
  EXPECT_TRUE(verify({"gw2", 2222}, key));
}

TEST_F(HostKeyTrustTest, RefusesAChangedKeyAndSaysWhatToDo) {
  const auto old_key = new_key();
  const auto shown = new_key();
  ASSERT_TRUE(verify(second_, new_key()));
  ASSERT_TRUE(verify(first_, old_key));
  const std::string before = file();
  const auto verdict = verify(first_, shown);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code, ErrorCode::permission_denied);
  EXPECT_THAT(verdict.error().message, HasSubstr("mismatch"));
  EXPECT_THAT(verdict.error().message, HasSubstr(old_key.fingerprint()));
  EXPECT_THAT(verdict.error().message, HasSubstr(shown.fingerprint()));
  EXPECT_THAT(verdict.error().message, HasSubstr(config_.known_host_key_path + ":2"));
  EXPECT_THAT(verdict.error().message,
              HasSubstr("ssh-keygen -R '[gw-1.example]:2222' -f '" + config_.known_host_key_path + "'"));
  EXPECT_EQ(file(), before);
}

TEST_F(HostKeyTrustTest, TheCommandInTheMessageMendsIt) {
  ASSERT_TRUE(verify(first_, new_key()));
  const auto shown = new_key();
  const auto verdict = verify(first_, shown);
  ASSERT_FALSE(verdict);
  const std::string& message = verdict.error().message;
  const std::string command = message.substr(message.find("run: ") + 5);
  ASSERT_EQ(std::system((command + " >/dev/null 2>&1").c_str()), 0) << command;
  EXPECT_TRUE(verify(first_, shown));
}

TEST_F(HostKeyTrustTest, ReadsTheGoProductsLineWithoutAHostForEveryAddress) {
  const auto key = new_key();
  write(crypto::PublicKey::from_blob(key.blob())->to_line() + "\n");
  const std::string before = file();
  EXPECT_TRUE(verify(first_, key));
  EXPECT_TRUE(verify(second_, key));
  EXPECT_EQ(file(), before);

  const auto verdict = verify(first_, new_key());
  ASSERT_FALSE(verdict);
  EXPECT_THAT(verdict.error().message, HasSubstr("mismatch"));
  const std::string command = verdict.error().message.substr(verdict.error().message.find("run: ") + 5);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  EXPECT_EQ(file(), "");
}

TEST_F(HostKeyTrustTest, ALineOfItsOwnGoesBeforeALineWithoutAHost) {
  const auto general = new_key();
  const auto own = new_key();
  write(general.to_line() + "\n[gw-1.example]:2222 " + own.to_line() + "\n");
  EXPECT_TRUE(verify(first_, own));
  EXPECT_FALSE(verify(first_, general));
  EXPECT_TRUE(verify(second_, general));
}

TEST_F(HostKeyTrustTest, AnEmptyFileIsAFirstUse) {
  write("");
  EXPECT_TRUE(verify(first_, new_key()));
}

TEST_F(HostKeyTrustTest, RefusesAFileThatItDoesNotUnderstand) {
  const std::string key = new_key().to_line();
  for (const std::string& line :
       {std::string("[gw-1.example]:2222 ssh-ed25519 garbage!"), key.substr(0, 40), std::string("ssh-ed25519 garbage!"),
        std::string("garbage"), "@unknown [gw-1.example]:2222 " + key}) {
    write("# a comment is fine\n" + line + "\n");
    const auto verdict = verify(first_, new_key());
    ASSERT_FALSE(verdict) << line;
    EXPECT_EQ(verdict.error().code, ErrorCode::corrupt);
    EXPECT_THAT(verdict.error().message, HasSubstr(config_.known_host_key_path + ":2")) << line;
    EXPECT_THAT(verdict.error().message, HasSubstr("mend or remove that line"));
  }
}

TEST_F(HostKeyTrustTest, TellsARevokedKey) {
  const auto key = new_key();
  write("@revoked * " + key.to_line() + "\n");
  const auto verdict = verify(first_, key);
  ASSERT_FALSE(verdict);
  EXPECT_THAT(verdict.error().message, HasSubstr("revoked"));
}

TEST_F(HostKeyTrustTest, RefusesWhenTheKeyCannotBeRemembered) {
  config_.known_host_key_path = folder_ + "/no-such-folder/known";
  const auto key = new_key();
  const auto verdict = verify(first_, key);
  ASSERT_FALSE(verdict);
  EXPECT_THAT(verdict.error().message, HasSubstr("cannot remember the host key of gw-1.example:2222"));
  EXPECT_THAT(verdict.error().message, HasSubstr("gateway_host_key"));
}

TEST_F(HostKeyTrustTest, RefusesWhenTheFileIsNoFile) {
  config_.known_host_key_path = folder_;
  EXPECT_FALSE(verify(first_, new_key()));
}

TEST_F(HostKeyTrustTest, APinDecidesAloneAndWritesNothing) {
  const auto pinned = new_key();
  config_.gateway_host_key = pinned.to_line();
  EXPECT_TRUE(verify(first_, pinned));
  const auto shown = new_key();
  const auto verdict = verify(first_, shown);
  ASSERT_FALSE(verdict);
  EXPECT_THAT(verdict.error().message, HasSubstr("mismatch"));
  EXPECT_THAT(verdict.error().message, HasSubstr("gateway_host_key in /etc/agent.json"));
  EXPECT_THAT(verdict.error().message, HasSubstr(shown.fingerprint()));
  EXPECT_FALSE(std::filesystem::exists(config_.known_host_key_path));
}

TEST_F(HostKeyTrustTest, ABadPinIsAnErrorBeforeAnyConnection) {
  config_.gateway_host_key = "ssh-ed25519 not-base64";
  const auto trust = HostKeyTrust::create(config_);
  ASSERT_FALSE(trust);
  EXPECT_THAT(trust.error().message, HasSubstr("/etc/agent.json: gateway_host_key"));
}

TEST_F(HostKeyTrustTest, UsesAFileBesideTheKeyWhenNoneIsNamed) {
  config_.known_host_key_path.clear();
  ASSERT_TRUE(verify(first_, new_key()));
  EXPECT_TRUE(std::filesystem::exists(config_.private_key_path + ".gateway_hostkey"));
}

}  // namespace
}  // namespace hive::agent
