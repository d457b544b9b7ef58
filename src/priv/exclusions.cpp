#include "priv/exclusions.h"

#include "base/strings.h"

namespace hive::priv {

Exclusions::Exclusions(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    Node* node = &root_;
    for (std::string_view part : split(pattern, '/')) {
      auto found = node->below.find(part);
      if (found == node->below.end()) found = node->below.emplace(part, std::make_unique<Node>()).first;
      node = found->second.get();
    }
    node->excluded = true;
  }
}

Exclusions::Position Exclusions::enter(const Position& position, std::string_view name, bool& excluded) {
  excluded = false;
  Position next;
  for (const Node* node : position) {
    for (std::string_view key : {name, std::string_view("*")}) {
      auto found = node->below.find(key);
      if (found == node->below.end()) continue;
      next.push_back(found->second.get());
      excluded = excluded || found->second->excluded;
    }
  }
  return next;
}

}  // namespace hive::priv
