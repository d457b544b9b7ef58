#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::cli {

/// The arguments of a call from words of the command line, as raw JSON. Each word is `key=value` or `key:=json`.
///   key=value   typed by the tool's input schema where it knows the key: a string stays a string, a value for an array
///               becomes an element. Otherwise a JSON number, true, false, null, array or object is that, and anything
///               else is a string
///   key:=json   the value is taken as JSON, whatever the schema says
/// A key that comes again makes an array of its values, in order. Words are added to `base`, a JSON object, and must
/// not repeat a key of it. `input_schema` is raw JSON, or empty when it is not known. Errors name the word and the
/// rule.
Result<std::string> call_arguments(std::string_view base, std::span<const std::string> words,
                                   std::string_view input_schema = {});

/// Whether a call with these words must know the tool's schema: key=value has no type of its own.
bool needs_schema(std::span<const std::string> words);

/// Compares the names in `arguments`, a raw JSON object, with the tool's schema: none that it does not know, unless it
/// admits others, and all that it requires. Values are the agent's to check.
Result<void> check_argument_names(std::string_view arguments, std::string_view input_schema);

/// A word of the command line for a message: in quotes, at most 200 bytes of it.
std::string quote_briefly(std::string_view word);

}  // namespace hive::cli
