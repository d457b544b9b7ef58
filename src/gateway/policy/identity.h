#pragma once

#include <string_view>

#include "base/result.h"

namespace hive::policy {

/// Whether a name that comes from outside may stand for somebody in the audit log: 1 to 256 bytes of UTF-8 without
/// control and direction characters, and nothing that the gateway uses itself ("token:...", "gateway", "system",
/// "stdio"). Failure names the rule that is broken, not the name.
Result<void> check_identity(std::string_view identity);

/// Whether two texts are the same but for upper and lower case of ASCII letters. So identities are compared where two
/// people are needed: directories disagree on case, and nobody may become a second person by another spelling.
bool equal_ignoring_case(std::string_view left, std::string_view right);

}  // namespace hive::policy
