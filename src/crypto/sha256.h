#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace hive::crypto {

using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::span<const std::uint8_t> bytes);
Digest sha256(std::string_view text);

/// SHA-256 over parts that arrive one after another. One object can be used again and again: finish() begins a new
/// message. Much cheaper for short messages than the functions above. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::uint8_t> bytes);
  void update(std::string_view text);
  void update(std::uint8_t byte) { update(std::span(&byte, 1)); }
  Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hive::crypto
