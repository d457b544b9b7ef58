// The page about this surface says what its table says.

#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "gateway/surfaces/rest/route.h"

namespace hive::rest {
namespace {

std::string page() {
  std::filesystem::path root = HIVE_SOURCE_DIR;
  return read_file((root / "docs/http-api.md").string(), 1 << 20).value_or("");
}

/// Who may use a route, by "GET /path": the second cell of "| `GET /path` | who | what |".
std::map<std::string, std::string> documented_routes(const std::string& text) {
  std::map<std::string, std::string> routes;
  for (std::string_view line : split(text, '\n')) {
    std::vector<std::string_view> cells = split(line, '|');
    if (cells.size() < 4) continue;
    std::string name(trim(cells[1]));
    bool is_route = name.starts_with("`GET /") || name.starts_with("`POST /") || name.starts_with("`DELETE /");
    if (!is_route) continue;
    std::erase(name, '`');
    EXPECT_TRUE(routes.emplace(name, trim(cells[2])).second) << name << " stands twice";
  }
  return routes;
}

std::string who(const Route& route) {
  if (route.is_public) return "everybody";
  std::string text = "admin";
  if (route.roles.contains(policy::Role::operator_)) text = "operator, admin";
  if (route.roles.contains(policy::Role::read_only)) text = "every role";
  return route.whole_fleet ? text + ", whole fleet" : text;
}

TEST(HttpApiPage, HasEveryRouteAndWhoMayUseIt) {
  std::map<std::string, std::string> documented = documented_routes(page());
  for (const Route& route : routes()) {
    std::string name = std::string(route.method) + " " + std::string(route.path);
    ASSERT_TRUE(documented.contains(name)) << name << " is not in docs/http-api.md";
    EXPECT_EQ(documented[name], who(route)) << name;
  }
}

TEST(HttpApiPage, NamesEveryQueryParameter) {
  std::string text = page();
  for (const Route& route : routes()) {
    for (const QueryParameter& parameter : route.parameters)
      EXPECT_NE(text.find(parameter.name), std::string::npos) << route.path << ": " << parameter.name;
  }
}

}  // namespace
}  // namespace hive::rest
