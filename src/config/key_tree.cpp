#include "config/key_tree.h"

namespace hive::config {

namespace {

KeyTree::Shape shape_of(std::string_view separator) {
  if (separator.starts_with("[]")) return KeyTree::Shape::records;
  if (separator.starts_with("{}")) return KeyTree::Shape::map;
  return KeyTree::Shape::record;
}

KeyTree build(const std::vector<PlacedKey>& keys) {
  KeyTree root;
  root.shape = KeyTree::Shape::record;
  for (const PlacedKey& key : keys) {
    KeyTree* node = &root;
    std::string_view rest = key.place;
    while (!rest.empty()) {
      std::size_t end = std::min(rest.find_first_of("[{."), rest.size());
      node = &node->children[std::string(rest.substr(0, end))];
      rest.remove_prefix(end);
      if (rest.empty()) break;
      node->shape = shape_of(rest);
      rest.remove_prefix(rest.find('.') + 1);
    }
    node->place = key.place;
    node->info = key.info;
  }
  return root;
}

}  // namespace

const KeyTree& gateway_key_tree() {
  static const KeyTree tree = build(gateway_config_keys());
  return tree;
}

}  // namespace hive::config
