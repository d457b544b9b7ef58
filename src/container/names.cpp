#include "container/names.h"

#include "base/strings.h"
#include "priv/names.h"

namespace hive::container {

namespace {
constexpr std::string_view prefix = "h-";
}

Result<std::string> container_of(std::string_view id_or_name) {
  std::string name(id_or_name);
  if (!name.starts_with(prefix)) name.insert(0, prefix);
  if (!priv::check_agent_container(name)) {
    return fail(ErrorCode::invalid_argument,
                "{} is no name of an agent's container: 1 to 9 characters of a-z 0-9 -, a letter or digit first and "
                "last",
                quote(id_or_name.substr(0, 64)));
  }
  return name;
}

std::string_view agent_of(std::string_view name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

std::string port_of(std::string_view name) {
  return "vb-" + std::string(name);
}

}  // namespace hive::container
