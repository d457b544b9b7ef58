#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace hive::crypto {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::span<const std::uint8_t> bytes);
Digest sha256(std::string_view text);

}  // namespace hive::crypto
