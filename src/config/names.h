#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/reader.h"

namespace hive::config {

/// "admin", "operator" or "read-only".
std::optional<std::string> read_role(Reader& reader, const Value& value);

/// A tier by its own name; the names that the reference's documents used are accepted as well: "mutate" is "write",
/// "destructive" is "admin".
std::optional<std::string> read_tier(Reader& reader, const Value& value);

/// An http or https URL with a host and without a user name.
void read_url(Reader& reader, const Value& value);

/// Whether a name can be that of a tool for which a tier is set. A name with an agent's prefix would match nothing.
Result<void> check_tool_name(std::string_view name);

}  // namespace hive::config
