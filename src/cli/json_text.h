#pragma once

#include <string>
#include <string_view>

/// JSON that only passes through the command line keeps its numbers and its order: it is laid out anew from the text,
/// never built and written again.
namespace hive::cli {

/// Valid JSON text made safe for a terminal and still the same JSON: code points that could steer a terminal or mislead
/// a reader become \uXXXX escapes.
std::string json_for_terminal(std::string_view json);

/// The same, indented by two spaces, with a final newline. `json` must be valid.
std::string pretty_json(std::string_view json);

/// The same on one line, with a final newline, for streams of objects.
std::string json_line(std::string_view json);

}  // namespace hive::cli
