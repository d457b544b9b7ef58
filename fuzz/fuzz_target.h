#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

/// What libFuzzer calls (https://llvm.org/docs/LibFuzzer.html). A target returns for every input; a broken promise ends
/// it in CHECK, which works in every build type.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace hive::fuzz {

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

[[noreturn]] inline void broken(const char* promise, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, promise);
  std::abort();
}

}  // namespace hive::fuzz

/// Ends the run unless the promise holds.
#define CHECK(...) ((__VA_ARGS__) ? void() : ::hive::fuzz::broken(#__VA_ARGS__, __FILE__, __LINE__))
