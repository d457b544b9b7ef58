#pragma once

#include <map>
#include <string>
#include <string_view>

#include "config/key_info.h"

namespace hive::config {

/// The keys of a configuration in the shape of its file, made from their places ("scoped_tokens[].token").
struct KeyTree {
  enum class Shape {
    value,    ///< its members, if any, have free names and are told by `info` alone
    record,   ///< an object whose keys are `children`
    records,  ///< a list of such objects
    map       ///< an object with free names, whose members are such objects or something shorter in their place
  };

  std::string place;
  KeyInfo info;
  Shape shape = Shape::value;
  std::map<std::string, KeyTree, std::less<>> children;
};

/// The tree of gateway_config_keys().
const KeyTree& gateway_key_tree();

}  // namespace hive::config
