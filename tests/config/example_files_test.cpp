// The files that people copy to begin with are sound, and the check finds nothing wide in them.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "config/agent_config.h"
#include "config/command_review.h"
#include "config/gateway_keys.h"

namespace hive::config {
namespace {

using ::testing::AnyOf;
using ::testing::IsEmpty;

std::string example(std::string_view name) {
  std::filesystem::path root = HIVE_SOURCE_DIR;
  return read_file((root / "packaging" / "examples" / name).string(), 1 << 20).value_or("");
}

TEST(ExampleFiles, HaveAnAgentConfigurationThatLoadsAndIsNarrow) {
  Result<AgentConfig> config = parse_agent_config(example("agent_config.json"), "/etc/myrmex-agent/agent_config.json");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_FALSE(config->allowed_commands.empty());
  for (std::size_t i = 0; i < config->allowed_commands.size(); ++i) {
    const AllowedCommand& command = config->allowed_commands[i];
    for (const Finding& finding :
         review_command(command, std::span(config->allowed_commands).first(i), "/usr/bin").findings) {
      // Which programs are installed, and how, is a matter of the machine.
      EXPECT_THAT(finding.code, AnyOf("missing", "writable")) << command.name << ": " << finding.message;
    }
  }
}

TEST(ExampleFiles, HaveAGatewayConfigurationThatLoadsAndHasAnEffect) {
  const SecretSources sources{
      .environment = [](const std::string&) -> std::optional<std::string> { return std::nullopt; },
      .file = [](const std::string& path) -> Result<std::string> { return "token-of-" + path.substr(path.rfind('/')); },
  };
  Result<GatewayConfig> config = read_gateway_config(example("gateway_config.json"), "/etc/g.json", sources, false);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->without_effect, IsEmpty());
  EXPECT_FALSE(config->audit_log_path.empty());
}

}  // namespace
}  // namespace hive::config
