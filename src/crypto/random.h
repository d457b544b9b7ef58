#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hive::crypto {

/// Fills `bytes` from the kernel's generator; ends the program if there is none.
void random_bytes(std::span<std::uint8_t> bytes);

/// `count` random bytes as hexadecimal text.
std::string random_hex(size_t count);

}  // namespace hive::crypto
