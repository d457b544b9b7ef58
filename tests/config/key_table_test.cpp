#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/agent_config.h"
#include "config/gateway_config.h"
#include "config/key_info.h"
#include "config/key_places.h"

namespace hive::config {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A value of a type that the key does not have.
std::string_view wrong_value(const KeyInfo& info) {
  return info.type.starts_with("list") || info.type.starts_with("object") ? "7" : "[[]]";
}

std::string error_of_agent(const std::string& text) {
  Result<AgentConfig> config = parse_agent_config(text, "/f");
  return config ? "" : config.error().message;
}

std::string error_of_gateway(const std::string& text) {
  Result<GatewayConfig> config = parse_gateway_config(text, "/f");
  return config ? "" : config.error().message;
}

using Loader = std::string (*)(const std::string&);

struct Program {
  std::string_view name;
  std::vector<PlacedKey> (*keys)();
  Loader load;
};

class KeyTable : public ::testing::TestWithParam<Program> {};

/// How messages call it in test::file_with().
std::string field_of(std::string place, const std::vector<PlacedKey>& keys) {
  if (std::size_t list = place.find("[]"); list != std::string::npos) return place.replace(list, 2, "[0]");
  std::size_t object = place.find("{}");
  if (object == std::string::npos) return place;
  auto outer = std::ranges::find(keys, place.substr(0, object), &PlacedKey::place);
  return place.replace(object, 2, outer->info.secret_names ? "[0]" : ".write");
}

TEST_P(KeyTable, RefusesAWrongTypeForEveryKeyAndNamesTheField) {
  const std::vector<PlacedKey> keys = GetParam().keys();
  for (const PlacedKey& key : keys) {
    std::string error = GetParam().load(test::file_with(key.place, wrong_value(key.info)));
    EXPECT_THAT(error, HasSubstr("/f:1: " + field_of(key.place, keys) + ": expected ")) << key.place;
  }
}

TEST_P(KeyTable, NeverShowsTheValueOfASecret) {
  for (const PlacedKey& key : GetParam().keys()) {
    if (!key.info.secret) continue;
    for (std::string_view value : {R"("hush\u0000")", R"({"hush":"hush"})", R"(["hush"])", R"([{"hush":1}])"}) {
      std::string error = GetParam().load(test::file_with(key.place, value));
      EXPECT_NE(error, "") << key.place;
      EXPECT_THAT(error, Not(HasSubstr("hush"))) << key.place << " " << value;
    }
  }
}

TEST_P(KeyTable, NamesEveryRequiredKeyThatIsMissing) {
  std::string error = GetParam().load("{}");
  for (const PlacedKey& key : GetParam().keys()) {
    if (!key.info.required || key.place.contains('.')) continue;
    EXPECT_THAT(error, HasSubstr(key.place + " is not set"));
  }
}

TEST_P(KeyTable, HasEveryKeyOnceWithATypeAndADefaultUnlessItIsRequired) {
  std::set<std::string> places;
  for (const PlacedKey& key : GetParam().keys()) {
    EXPECT_TRUE(places.insert(key.place).second) << key.place;
    EXPECT_FALSE(key.info.type.empty()) << key.place;
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, KeyTable,
                         ::testing::Values(Program{"agent", agent_config_keys, error_of_agent},
                                           Program{"gateway", gateway_config_keys, error_of_gateway}),
                         [](const auto& program) { return std::string(program.param.name); });

}  // namespace
}  // namespace hive::config
