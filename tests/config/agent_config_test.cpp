#include "config/agent_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/secret_reference.h"
#include "config/temporary_folder.h"
#include "crypto/ssh_key.h"

namespace hive::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view readme_example = R"({
  "agent_id": "agent-nginx",
  "gateway_addr": "gateway-1.internal:2222",
  "gateway_addrs": [ "gateway-1.internal:2222", "gateway-2.internal:2222" ],
  "private_key_path": "/etc/mcp-agent/id_ed25519",
  "allowed_commands": [
    { "name": "uptime", "args_regex": "^$" },
    { "name": "systemctl", "args_regex": "^(status|restart) (nginx|postgresql)$" }
  ]
})";

/// A sound file with `more` put in front of its keys.
std::string with(std::string_view more) {
  return fmt::format(R"({{{}{}"agent_id":"a1","gateway_addr":"gw:2222","private_key_path":"/k"}})", more,
                     more.empty() ? "" : ",");
}

std::string problems_of(std::string_view text) {
  Result<AgentConfig> config = parse_agent_config(text, "/etc/agent.json");
  return config ? "" : config.error().message;
}

TEST(AgentConfig, LoadsTheExampleOfTheReadmeAsItIsWritten) {
  Result<AgentConfig> config = parse_agent_config(readme_example, "/etc/agent.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->agent_id, "agent-nginx");
  ASSERT_EQ(config->gateways.size(), 2U);
  EXPECT_EQ(config->gateways[0].to_string(), "gateway-1.internal:2222");
  EXPECT_EQ(config->gateways[1].to_string(), "gateway-2.internal:2222");
  EXPECT_EQ(config->private_key_path, "/etc/mcp-agent/id_ed25519");
  EXPECT_EQ(config->known_host_key_path, "/etc/mcp-agent/id_ed25519.gateway_hostkey");
  ASSERT_EQ(config->allowed_commands.size(), 2U);
  EXPECT_EQ(config->allowed_commands[0].args_regex, "^$");
  EXPECT_EQ(config->allowed_commands[1].args_regex, "^(status|restart) (nginx|postgresql)$");
  EXPECT_EQ(config->allowed_commands[1].timeout, std::chrono::seconds(30));
}

TEST(AgentConfig, ReportsAllProblemsTogetherEachWithFileLineAndField) {
  std::string problems = problems_of(R"({
    "agent_id": 7,
    "gateway_addrs": ["gw:2222", "gw:70000"],
    "keepalive_seconds": 0,
    "allowed_commands": [
      { "name": "uptime" },
      { "name": "./x", "args_regex": "a)|(?:b", "timeout_seconds": "5" }
    ]
  })");
  EXPECT_THAT(problems, HasSubstr("/etc/agent.json:2: agent_id: expected a string, found a number"));
  EXPECT_THAT(problems, HasSubstr("/etc/agent.json:3: gateway_addrs[1]: "));
  EXPECT_THAT(problems, HasSubstr("from 1 to 65535"));
  EXPECT_THAT(problems, HasSubstr("/etc/agent.json:4: keepalive_seconds: expected a whole number from 1 to 3600"));
  EXPECT_THAT(problems, HasSubstr("/etc/agent.json:7: allowed_commands[1].name: \"./x\" is a relative path"));
  EXPECT_THAT(problems, HasSubstr("/etc/agent.json:7: allowed_commands[1].args_regex: not a valid RE2 pattern"));
  EXPECT_THAT(problems,
              HasSubstr("allowed_commands[1].timeout_seconds: expected a whole number from 1 to 3600, found"));
  EXPECT_THAT(problems, HasSubstr("private_key_path is not set"));
  EXPECT_EQ(std::ranges::count(problems, '\n') + 1, 7);
}

TEST(AgentConfig, NamesTheNearestKeyForAnUnknownOne) {
  EXPECT_THAT(problems_of(with(R"("alowed_commands":[])")),
              HasSubstr("alowed_commands: unknown key; did you mean \"allowed_commands\"?"));
  EXPECT_THAT(problems_of(with(R"("Log_Level":"info")")), HasSubstr("did you mean \"log_level\"?"));
  EXPECT_THAT(problems_of(with(R"("allowed_commands":[{"name":"ls","args":"x"}])")),
              HasSubstr("allowed_commands[0].args: unknown key"));
}

TEST(AgentConfig, PassesOverCommentsAtEveryLevelAndNulls) {
  std::string text = with(R"("_comment":"x","_comment_2":{"a":1},"gateway_addrs":null,
      "allowed_commands":[{"_comment":["y"],"name":"ls","env":{"_comment":"z","LANG":"C"}}])");
  Result<AgentConfig> config = parse_agent_config(text, "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->allowed_commands[0].env.size(), 1U);
}

TEST(AgentConfig, RefusesDuplicateKeysWithTheLine) {
  EXPECT_THAT(problems_of("{\n\"agent_id\":\"a\",\n\"agent_id\":\"b\"}"),
              HasSubstr("the key at line 3, column 1 stands in its object already, at line 2, column 1"));
}

TEST(AgentConfig, RefusesWhatIsNotOneJsonObject) {
  EXPECT_THAT(problems_of(""), HasSubstr("empty"));
  EXPECT_THAT(problems_of(" \n"), HasSubstr("empty"));
  EXPECT_THAT(problems_of("[]"), HasSubstr("found a list"));
  EXPECT_THAT(problems_of("\xef\xbb\xbf{}"), HasSubstr("byte order mark"));
  EXPECT_THAT(problems_of("{\n\t\"agent_id\": yes\n}"), HasSubstr("line 2, column 14"));
  EXPECT_THAT(problems_of(with("") + "x"), HasSubstr("line 1"));
  EXPECT_NE(problems_of(std::string(100'000, '[')), "");
}

TEST(AgentConfig, PutsTheSingleAddressFirstWhenTheListLacksIt) {
  Result<AgentConfig> config = parse_agent_config(with(R"("gateway_addrs":["b:1","c"])"), "f");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->gateways.size(), 3U);
  EXPECT_EQ(config->gateways[0].to_string(), "gw:2222");
  EXPECT_EQ(config->gateways[2].to_string(), "c:2222");
}

TEST(AgentConfig, KeepsTheOrderOfTheListWhenItHoldsTheSingleAddress) {
  Result<AgentConfig> config = parse_agent_config(with(R"("gateway_addrs":["b:1","gw"])"), "f");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->gateways.size(), 2U);
  EXPECT_EQ(config->gateways[0].to_string(), "b:1");
}

TEST(AgentConfig, WantsAtLeastOneGateway) {
  EXPECT_THAT(problems_of(R"({"agent_id":"a","private_key_path":"/k","gateway_addrs":[]})"),
              HasSubstr("no gateway is set"));
}

TEST(AgentConfig, WantsAPrivateKeyPath) {
  EXPECT_THAT(problems_of(R"({"agent_id":"a","private_key_path":"","gateway_addr":"g"})"),
              HasSubstr("private_key_path: must not be empty"));
}

TEST(AgentConfig, TakesRelativePathsFromTheFolderOfTheFile) {
  Result<AgentConfig> config = parse_agent_config(
      R"({"agent_id":"a","gateway_addr":"g","private_key_path":"keys/../id"})", "/etc/hive/agent.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->private_key_path, "/etc/hive/id");
  EXPECT_THAT(problems_of(R"({"agent_id":"a","gateway_addr":"g","private_key_path":"~/id"})"),
              HasSubstr("\"~\" is not expanded"));
}

TEST(AgentConfig, ChecksTheAgentId) {
  for (std::string_view id : {"gateway", "a__b", "", "-a", "a b"}) {
    EXPECT_THAT(problems_of(fmt::format(R"({{"agent_id":"{}","gateway_addr":"g","private_key_path":"/k"}})", id)),
                HasSubstr("agent_id: "))
        << id;
  }
}

TEST(AgentConfig, ReadsEveryKeyOfACommand) {
  Result<AgentConfig> config =
      parse_agent_config(with(R"("allowed_commands":[{"name":"/opt/x","args_regex":"a|b","timeout_seconds":120,
              "max_output_bytes":1000,"user":"nobody","env":{"LANG":"C.UTF-8"}}])"),
                         "f");
  ASSERT_TRUE(config) << config.error().message;
  const AllowedCommand& command = config->allowed_commands[0];
  EXPECT_EQ(command.name, "/opt/x");
  EXPECT_EQ(command.timeout, std::chrono::seconds(120));
  EXPECT_EQ(command.max_output_bytes, 1000U);
  EXPECT_EQ(command.user, "nobody");
  EXPECT_EQ(command.env.at("LANG"), "C.UTF-8");
}

TEST(AgentConfig, RefusesCommandsThatCannotBeMeant) {
  auto problem = [](std::string_view entry) {
    return problems_of(with(fmt::format(R"("allowed_commands":[{}])", entry)));
  };
  EXPECT_THAT(problem(R"({"args_regex":"^$"})"), HasSubstr("name is not set"));
  EXPECT_THAT(problem(R"({"name":""})"), HasSubstr("must not be empty"));
  EXPECT_THAT(problem(R"({"name":"ls -l"})"), HasSubstr("one program"));
  EXPECT_THAT(problem(R"({"name":"ls\u0000"})"), HasSubstr("control characters"));
  EXPECT_THAT(problem(R"({"name":"ls","timeout_seconds":3601})"), HasSubstr("1 to 3600, found 3601"));
  EXPECT_THAT(problem(R"({"name":"ls","timeout_seconds":-1})"), HasSubstr("1 to 3600, found -1"));
  EXPECT_THAT(problem(R"({"name":"ls","timeout_seconds":1.5})"), HasSubstr("whole number"));
  EXPECT_THAT(problem(R"({"name":"ls","max_output_bytes":67108865})"), HasSubstr("67108864"));
  EXPECT_THAT(problem(R"({"name":"ls","user":"a b"})"), HasSubstr("not a user name"));
  EXPECT_THAT(problem(R"({"name":"ls","env":{"A=B":"x"}})"), HasSubstr("environment variable"));
  EXPECT_THAT(problem(R"({"name":"ls","args_regex":"("})"), HasSubstr("args_regex: not a valid RE2 pattern"));
  EXPECT_THAT(problem(R"("ls")"), HasSubstr("expected an object, found a string"));
}

TEST(AgentConfig, RefusesAPatternThatIsSoundOnlyInsideAGroup) {
  EXPECT_THAT(problems_of(with(R"("allowed_commands":[{"name":"ls","args_regex":"a)|(?:b"}])")),
              HasSubstr("not a valid RE2 pattern"));
}

TEST(AgentConfig, NormalisesFoldersAndWantsThemAbsolute) {
  Result<AgentConfig> config = parse_agent_config(with(R"("file_read_roots":["/var/log/","/srv/./a"])"), "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->file_read_roots, ElementsAre("/var/log", "/srv/a"));
  EXPECT_THAT(problems_of(with(R"("file_read_roots":["logs"])")), HasSubstr("not an absolute path"));
}

TEST(AgentConfig, ReadsNoFilesAndTheUsualLogsUnlessToldOtherwise) {
  Result<AgentConfig> config = parse_agent_config(with(""), "f");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->file_read_roots.empty());
  EXPECT_EQ(config->log_paths.size(), 4U);
  EXPECT_EQ(config->keepalive, std::chrono::seconds(15));
  EXPECT_EQ(config->max_concurrent_calls, 64U);
}

TEST(AgentConfig, WantsAnEd25519KeyAsThePinnedKey) {
  EXPECT_THAT(problems_of(with(R"("gateway_host_key":"ssh-ed25519 AAAA")")), HasSubstr("gateway_host_key: "));
  Result<AgentConfig> config = parse_agent_config(
      with(
          R"("gateway_host_key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJGZ1LqRkTgaUlmzBl4XCVA5HuOSXIPS4AmU1kpJQrQh g")"),
      "f");
  EXPECT_TRUE(config) << config.error().message;
}

TEST(AgentConfig, StopsListingProblemsAtSomePoint) {
  std::string keys;
  for (int i = 0; i < 1000; ++i) {
    keys += fmt::format("{}\"zzzzzz{}\":1", i == 0 ? "" : ",", i);
  }
  EXPECT_THAT(problems_of(with(keys)), HasSubstr("and 950 more problems"));
}

TEST(LoadAgentConfig, RefusesAPrivateKeyThatOthersCanReadWithTheRemedy) {
  TemporaryFolder folder;
  folder.write("id", "key", 0640);
  std::string path = folder.write("agent.json", R"({"agent_id":"a","gateway_addr":"g","private_key_path":"id"})", 0644);
  Result<AgentConfig> config = load_agent_config(path);
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("private_key_path: "));
  EXPECT_THAT(config.error().message, HasSubstr("chmod 600 " + (folder / "id")));
  folder.write("id", "key", 0600);
  EXPECT_TRUE(load_agent_config(path));
}

TEST(LoadAgentConfig, RefusesAFileThatEveryoneMayChange) {
  TemporaryFolder folder;
  std::string path = folder.write("agent.json", R"({"agent_id":"a","gateway_addr":"g","private_key_path":"id"})", 0646);
  Result<AgentConfig> config = load_agent_config(path);
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("chmod o-w"));
}

TEST(LoadAgentConfig, NamesTheFileThatIsMissing) {
  Result<AgentConfig> config = load_agent_config("/nonexistent/agent.json");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("/nonexistent/agent.json"));
}

TEST(ParseGatewayAddress, ReadsNamesAndAddressesWithAndWithoutPort) {
  auto read = [](std::string_view text) {
    Result<GatewayAddress> address = parse_gateway_address(text);
    return address ? address->to_string() : "refused";
  };
  EXPECT_EQ(read("gw.example"), "gw.example:2222");
  EXPECT_EQ(read("gw.example:22"), "gw.example:22");
  EXPECT_EQ(read("10.0.0.1:2222"), "10.0.0.1:2222");
  EXPECT_EQ(read("[::1]:22"), "[::1]:22");
  EXPECT_EQ(read("[fe80::1%eth0]:22"), "[fe80::1%eth0]:22");
  EXPECT_EQ(read("[2001:db8::1]"), "[2001:db8::1]:2222");
}

TEST(ParseGatewayAddress, RefusesWhatIsNotAnAddress) {
  for (std::string_view text : {"",
                                ":2222",
                                "gw:",
                                "gw:0",
                                "gw:65536",
                                "gw:+22",
                                "gw:22x",
                                "::1",
                                "[::1",
                                "[gw]:22",
                                "[::1]22",
                                "[fe80::1%]:22",
                                "http://gw:1",
                                "256.1.1.1:22",
                                "1.2.3:22",
                                "a b:22",
                                "-x:22",
                                "ｅｘａｍｐｌｅ.com:22",
                                "gw..x:1",
                                "a\nb:1"}) {
    EXPECT_FALSE(parse_gateway_address(text)) << text;
  }
}

class ReferringAgentConfig : public ::testing::Test {
 protected:
  Result<AgentConfig> read(std::string_view text) { return parse_agent_config(text, "/etc/hive/agent.json", sources_); }
  std::string problems(std::string_view text) {
    Result<AgentConfig> config = read(text);
    return config ? "" : config.error().message;
  }

  std::string key_ = crypto::PrivateKey::generate("a1").value().to_openssh();
  SecretSources sources_{
      .environment = [this](const std::string& name) -> std::optional<std::string> {
        if (name == "ID") return "a1";
        if (name == "GATEWAY") return "gw-1:2222\n";
        if (name == "LINES") return "gw-1\ngw-2";
        if (name == "KEY") return key_;
        if (name == "JUNK") return "hush-junk";
        return std::nullopt;
      },
      .file = [](const std::string& path) -> Result<std::string> { return fail(ErrorCode::not_found, "{}", path); },
      .vault = [this](const std::string& path, const std::string& field) -> Result<std::string> {
        if (path == "secret/data/a1" && field == "key") return key_;
        return fail(ErrorCode::unavailable, "vault.example:8200: connection refused");
      },
  };
};

TEST_F(ReferringAgentConfig, TakesItsIdentityAndItsKeyFromElsewhere) {
  Result<AgentConfig> config =
      read(R"({"agent_id":"env:ID","gateway_addr":"${GATEWAY}","gateway_addrs":["env:GATEWAY","gw-2"],
               "private_key":"vault:secret/data/a1#key"})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->agent_id, "a1");
  ASSERT_EQ(config->gateways.size(), 2U);
  EXPECT_EQ(config->gateways[0].to_string(), "gw-1:2222");
  EXPECT_TRUE(crypto::PrivateKey::from_openssh(config->private_key.reveal()));
  EXPECT_EQ(config->private_key_path, "");
  EXPECT_EQ(config->known_host_key_path, "/etc/hive/gateway_hostkey");
}

TEST_F(ReferringAgentConfig, WantsOneKeyAndNotInTheFile) {
  EXPECT_THAT(problems(R"({"agent_id":"a","gateway_addr":"g"})"), HasSubstr("private_key_path is not set"));
  for (std::string_view order :
       {R"("private_key_path":"/k","private_key":"env:KEY")", R"("private_key":"env:KEY","private_key_path":"/k")"}) {
    EXPECT_THAT(problems(fmt::format(R"({{"agent_id":"a","gateway_addr":"g",{}}})", order)),
                HasSubstr("one of the two"))
        << order;
  }
  std::string plain = problems(R"({"agent_id":"a","gateway_addr":"g","private_key":"hush"})");
  EXPECT_THAT(plain, HasSubstr("private_key: must not stand in the file; write a reference"));
  EXPECT_THAT(plain, Not(HasSubstr("hush")));
}

TEST_F(ReferringAgentConfig, NamesTheReferenceThatCannotBeUsedAndNeverAValue) {
  auto with_key = [&](std::string_view reference) {
    return problems(fmt::format(R"({{"agent_id":"a","gateway_addr":"g","private_key":"{}"}})", reference));
  };
  EXPECT_THAT(with_key("env:NONE"), HasSubstr("\"env:NONE\" cannot be resolved"));
  EXPECT_THAT(with_key("vault:secret/data/b#key"), HasSubstr("vault.example:8200: connection refused"));
  EXPECT_THAT(with_key("env:JUNK"), HasSubstr("private_key: "));
  EXPECT_THAT(with_key("env:JUNK"), Not(HasSubstr("hush")));
  EXPECT_THAT(problems(R"({"agent_id":"a","gateway_addr":"env:LINES","private_key":"env:KEY"})"),
              HasSubstr("gateway_addr: \"env:LINES\" resolves to a text with control characters"));
  EXPECT_THAT(problems(R"({"agent_id":"env:NONE","gateway_addr":"g","private_key":"env:KEY"})"),
              HasSubstr("agent_id: the secret reference \"env:NONE\""));
}

}  // namespace
}  // namespace hive::config
