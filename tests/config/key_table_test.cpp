#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/agent_config.h"
#include "config/gateway_config.h"
#include "config/key_info.h"

namespace hive::config {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A value of a type that the key does not have.
std::string_view wrong_value(const KeyInfo& info) {
  return info.type.starts_with("list") || info.type.starts_with("object") ? "7" : "[[]]";
}

/// The text of a file whose only key of interest is at `place` ("a", "a.b", "a[].b").
std::string file_with(std::string_view place, std::string_view value) {
  std::size_t end = place.find_first_of("[.");
  if (end == std::string_view::npos) return fmt::format(R"({{"{}":{}}})", place, value);
  std::string_view outer = place.substr(0, end);
  bool in_list = place.substr(end).starts_with("[].");
  std::string_view inner = place.substr(end + (in_list ? 3 : 1));
  return fmt::format(R"({{"{0}":{3}{{"{1}":{2}}}{4}}})", outer, inner, value, in_list ? "[" : "", in_list ? "]" : "");
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

std::string field_of(std::string place) {
  std::size_t list = place.find("[]");
  return list == std::string::npos ? place : place.replace(list, 2, "[0]");
}

TEST_P(KeyTable, RefusesAWrongTypeForEveryKeyAndNamesTheField) {
  for (const PlacedKey& key : GetParam().keys()) {
    std::string error = GetParam().load(file_with(key.place, wrong_value(key.info)));
    EXPECT_THAT(error, HasSubstr("/f:1: " + field_of(key.place) + ": expected ")) << key.place;
  }
}

TEST_P(KeyTable, NeverShowsTheValueOfASecret) {
  for (const PlacedKey& key : GetParam().keys()) {
    if (!key.info.secret) continue;
    for (std::string_view value : {R"("hush\u0000")", R"({"hush":"hush"})", R"(["hush"])", R"([{"hush":1}])"}) {
      std::string error = GetParam().load(file_with(key.place, value));
      // An unknown key inside an object of a list is named; it is not a secret's place.
      if (value == R"([{"hush":1}])" && key.info.type == "list of objects") continue;
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
