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
/// "destructive" is "admin". The result is the tier's own name.
std::optional<std::string> read_tier(Reader& reader, const Value& value);
/// The same for the key of an object; the problem is recorded at its value.
std::optional<std::string> read_tier_name(Reader& reader, const Value& at, std::string_view name);

/// Whether a text can stand for a person, a machine or a group: 1 to 128 bytes without control characters and without
/// blanks around it, and nothing that the audit log writes for credentials without an identity ("token:...").
Result<void> check_identity(std::string_view text);

/// An http or https URL with a host and without a user name; nullopt after recording a problem.
std::optional<std::string> read_url(Reader& reader, const Value& value);
/// The same for an URL that is itself a secret, as those of webhooks are, and may be a reference.
void read_secret_url(Reader& reader, const Value& value);

/// Whether a text is an absolute path or a bare word, as allowed_commands names programs.
Result<void> check_command_name(std::string_view name);

/// Whether a name can be that of a tool for which a tier is set. A name with an agent's prefix would match nothing.
Result<void> check_tool_name(std::string_view name);

}  // namespace hive::config
