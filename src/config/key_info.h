#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hive::config {

/// What is known of one configuration key. Drives the loader; the documentation is checked against it.
struct KeyInfo {
  std::string_view name;
  std::string_view type;           ///< "string", "whole number", "list of strings", ...
  std::string_view default_value;  ///< as the documentation shows it; "" when there is none
  bool required = false;
  bool secret = false;           ///< the value (of an object: each of its values) is a secret and may be a reference
  bool secret_names = false;     ///< the names of the object's members are the secrets, and its values are not
  std::string_view remedy{};     ///< for a required key: what to write or to make when it is missing
  std::string_view no_effect{};  ///< for a known key whose feature is not built: what happens meanwhile
};

/// A key with its place: "allowed_commands[].name"; "tokens{}.role" is a key of the objects that are members of
/// `tokens`.
struct PlacedKey {
  std::string place;
  KeyInfo info;
};

std::vector<PlacedKey> agent_config_keys();
std::vector<PlacedKey> gateway_config_keys();

}  // namespace hive::config
