#pragma once

#include <string>

namespace hive::config {

/// Something in a configuration that is legal and probably not meant.
struct Finding {
  std::string code;     ///< a short word for programs: "option", "path", "shell", ...
  std::string message;  ///< what it means and what to write instead
  std::string example;  ///< an argument line that is admitted, where there is one
};

}  // namespace hive::config
