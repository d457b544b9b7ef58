#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "container/layout.h"

namespace CLI {
class App;
}

namespace hive::container {

/// The script for "bash", "zsh" or "fish". It asks `hive-container __complete -- WORD...`, so that it never falls
/// behind the program.
std::string completion_script(std::string_view shell);

/// What can stand in the place of the last of `words`, the words behind the program's name up to the cursor: commands,
/// options of the command, names of containers. One a line.
std::string candidates(const CLI::App& app, const std::vector<std::string>& words, const Layout& layout);

}  // namespace hive::container
