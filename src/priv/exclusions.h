#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hive::priv {

/// Paths from the root of a tree that are left out, matched name by name; "*" stands for any one name.
class Exclusions {
 public:
  /// How far the patterns have been followed along a path.
  struct Node {
    std::map<std::string, std::unique_ptr<Node>, std::less<>> below;
    bool excluded = false;
  };
  using Position = std::vector<const Node*>;

  Exclusions() = default;
  explicit Exclusions(const std::vector<std::string>& patterns);

  [[nodiscard]] Position root() const { return {&root_}; }

  /// The position behind one more name; `excluded` says whether a pattern ends there.
  static Position enter(const Position& position, std::string_view name, bool& excluded);

 private:
  Node root_;
};

}  // namespace hive::priv
