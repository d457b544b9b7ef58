#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace hive::net::vault {

/// What a status other than 200 means, with the remedy. Texts of the server are not shown: they can repeat what was
/// sent. `body` tells a deleted version from a path where nothing ever was, and a sealed server from a busy one.
Result<void> judge_status(unsigned status, std::string_view body);

/// The text in a field of a secret, from the body of an answer: `data.data.FIELD` (KV version 2), otherwise
/// `data.FIELD` (version 1). Messages name the field, never another one and never a value.
Result<std::string> field_of(std::string_view body, std::string_view field);

}  // namespace hive::net::vault
