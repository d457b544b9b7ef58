// The pages that people read at three in the morning say what the tables say.
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "config/agent_config.h"
#include "config/gateway_keys.h"
#include "config/key_info.h"
#include "config/secret_reference.h"
#include "crypto/ssh_key.h"

namespace hive::config {
namespace {

using ::testing::HasSubstr;

std::string page(std::string_view name) {
  std::filesystem::path root = HIVE_SOURCE_DIR;
  return read_file((root / "docs" / name).string(), 1 << 20).value_or("");
}

struct Row {
  std::string type;
  std::string default_value;
  std::string meaning;
};

/// The rows of all tables of keys: "| `key` | type | default | meaning |".
std::map<std::string, Row> rows_of(const std::string& text) {
  std::map<std::string, Row> rows;
  bool in_table = false;
  for (std::string_view line : split(text, '\n')) {
    if (line == "| key | type | default | meaning |") in_table = true;
    if (!line.starts_with('|')) in_table = false;
    std::vector<std::string_view> cells = split(line, '|');
    if (!in_table || cells.size() < 6 || !trim(cells[1]).starts_with('`')) continue;
    std::string key(trim(cells[1]));
    std::erase(key, '`');
    std::string default_value(trim(cells[3]));
    std::erase(default_value, '`');
    EXPECT_FALSE(rows.contains(key)) << key << " stands twice";
    rows[key] = {std::string(trim(cells[2])), default_value, std::string(trim(cells[4]))};
  }
  return rows;
}

void expect_documented(const std::string& text, const std::vector<PlacedKey>& keys) {
  std::map<std::string, Row> rows = rows_of(text);
  for (const PlacedKey& key : keys) {
    ASSERT_TRUE(rows.contains(key.place)) << key.place << " is not documented";
    const Row& row = rows[key.place];
    EXPECT_EQ(row.type, key.info.type) << key.place;
    std::string_view shown = key.info.required                ? "**required**"
                             : key.info.default_value.empty() ? "–"
                                                              : key.info.default_value;
    EXPECT_EQ(row.default_value, shown) << key.place;
    EXPECT_GT(row.meaning.size(), 5U) << key.place;
    EXPECT_EQ(key.info.secret, row.meaning.starts_with("Secret.")) << key.place;
    if (!key.info.no_effect.empty()) {
      EXPECT_THAT(row.meaning, HasSubstr(fmt::format("*No effect yet*: {}.", key.info.no_effect))) << key.place;
    } else {
      EXPECT_EQ(row.meaning.find("No effect yet"), std::string::npos) << key.place;
    }
    rows.erase(key.place);
  }
  for (const auto& [key, row] : rows) {
    ADD_FAILURE() << key << " is documented, and no such key exists";
  }
}

/// The blocks of JSON on a page.
std::vector<std::string> examples_of(const std::string& text) {
  std::vector<std::string> examples;
  std::size_t at = 0;
  while ((at = text.find("```json\n", at)) != std::string::npos) {
    std::size_t start = at + 8;
    at = text.find("```", start);
    if (at == std::string::npos) break;
    examples.push_back(text.substr(start, at - start));
  }
  return examples;
}

TEST(Documentation, DescribesEveryKeyOfTheAgent) {
  expect_documented(page("configuration-agent.md"), agent_config_keys());
}

TEST(Documentation, DescribesEveryKeyOfTheGateway) {
  expect_documented(page("configuration-gateway.md"), gateway_config_keys());
}

TEST(Documentation, ShowsAgentConfigurationsThatLoad) {
  std::vector<std::string> examples = examples_of(page("configuration-agent.md"));
  ASSERT_FALSE(examples.empty());
  const crypto::PrivateKey key = crypto::PrivateKey::generate("web-1").value();
  const SecretSources sources{
      .environment = [](const std::string&) -> std::optional<std::string> { return "web-1"; },
      .file = [](const std::string& path) -> Result<std::string> { return "what stands in " + path; },
      .vault = [&](const std::string&, const std::string&) -> Result<std::string> { return key.to_openssh(); },
  };
  for (const std::string& example : examples) {
    Result<AgentConfig> config = parse_agent_config(example, "/etc/myrmex/agent_config.json", sources);
    EXPECT_TRUE(config) << config.error().message;
  }
}

TEST(Documentation, ShowsGatewayConfigurationsThatLoad) {
  const SecretSources sources{
      .environment = [](const std::string& name) -> std::optional<std::string> { return "value-of-" + name; },
      .file = [](const std::string&) -> Result<std::string> { return "token"; },
      .vault = [](const std::string& path, const std::string& field) -> Result<std::string> { return path + field; },
  };
  std::vector<std::string> examples = examples_of(page("configuration-gateway.md"));
  ASSERT_FALSE(examples.empty());
  for (const std::string& example : examples) {
    Result<GatewayConfig> config = read_gateway_config(example, "/etc/myrmex/gateway_config.json", sources, false);
    EXPECT_TRUE(config) << config.error().message;
  }
}

}  // namespace
}  // namespace hive::config
