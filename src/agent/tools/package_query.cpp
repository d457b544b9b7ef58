#include <algorithm>
#include <array>

#include "agent/arguments.h"
#include "agent/command_tool.h"
#include "agent/tools/tools.h"

namespace hive::agent {

namespace {

struct Manager {
  std::string_view name;
  std::array<std::string_view, 2> query;  // an empty word is left out
};

constexpr std::array<Manager, 5> managers = {{
    {"dpkg", {"-l", ""}},
    {"rpm", {"-qa", ""}},
    {"apk", {"info", ""}},
    {"pacman", {"-Q", ""}},
    {"dnf", {"list", "installed"}},
}};

}  // namespace

CancelHook package_query(ToolServices& services, ToolCall call) {
  Arguments arguments = HIVE_TRY_ARGUMENT(call, Arguments::parse(call.arguments, "package_query", false));
  std::string wanted = HIVE_TRY_ARGUMENT(call, arguments.required_string("manager"));
  std::string package = HIVE_TRY_ARGUMENT(call, arguments.string("name")).value_or("");
  const auto* manager = std::ranges::find(managers, wanted, &Manager::name);
  if (manager == managers.end()) {
    call.reply(invalid_arguments("Invalid manager: use dpkg, rpm, apk, pacman or dnf"));
    return {};
  }
  std::vector<std::string> args;
  for (std::string_view word : manager->query) {
    if (!word.empty()) args.emplace_back(word);
  }
  if (!package.empty()) {
    if (!is_plain_name(package, "._+-")) {
      call.reply(
          invalid_arguments("Invalid package name: use letters, digits and . _ + -, starting with a letter or digit"));
      return {};
    }
    args.push_back(package);
  }
  return run_allowlisted(services, std::move(call), manager->name, args);
}

}  // namespace hive::agent
