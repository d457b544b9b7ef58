#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hive::config {

/// A gateway configuration for people to look at and to edit: the same members in the same order, indented, in which
/// every secret that is written out is replaced by a placeholder, "[redacted:" and twelve hexadecimal digits and "]".
/// What is secret, the tables of keys say (KeyInfo); keys that they do not know, notes ("_comment..."), and values of a
/// wrong type count as secrets. References (env:NAME, ...) stay as they are written, and so do empty texts.
/// Fails for what is not one JSON object; messages show neither keys nor values. Thread-safe, as all functions here.
Result<std::string> redact(std::string_view text);

/// Puts the secrets of `current` back in place of their placeholders in `edited`, wherever they were moved: the digits
/// are a digest under a key of this process. A placeholder stands for a secret of one kind (tokens are one kind, each
/// other key is its own), so that no secret can be copied to a field that shows it. Fails for a placeholder that is not
/// known there, naming the field. The result is indented, and to be validated as a configuration before it is used.
Result<std::string> restore(std::string_view edited, std::string_view current);

/// The fields in which two configurations differ, sorted, never their values: "listen_addr", "risk_tiers.run_command".
/// Lists, and objects whose keys are secrets, are named as a whole. Notes, order and spacing are no difference.
Result<std::vector<std::string>> changed_fields(std::string_view old_text, std::string_view new_text);

}  // namespace hive::config
