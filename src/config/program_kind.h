#pragma once

#include <string_view>

namespace hive::config {

/// What an allowlist entry can do beyond its own arguments.
enum class ProgramKind {
  ordinary,
  shell,         ///< runs command lines
  interpreter,   ///< runs code that its arguments hold or name
  runs_programs  ///< starts other programs that its arguments name
};

/// By the program's file name; a version at its end ("python3.11") does not count.
ProgramKind kind_of_program(std::string_view name_or_path);

/// The name without folders.
std::string_view program_name(std::string_view name_or_path);

}  // namespace hive::config
