#pragma once

#include <span>

#include "config/secret_reference.h"

namespace hive::agent {

/// `myrmex-agent doctor`; the words are those behind "doctor". Returns the exit code.
int doctor_command(std::span<char* const> words, const config::SecretSources& sources);

/// `myrmex-agent completion SHELL`.
int completion_command(std::span<char* const> words);

}  // namespace hive::agent
