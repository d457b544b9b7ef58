#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace hive::utf8 {

namespace {

struct Sequence {
  size_t length = 0;        // of the whole code point; 0 when the first byte cannot start one
  std::uint8_t low = 0x80;  // bounds of the second byte, which exclude overlong forms and surrogates
  std::uint8_t high = 0xbf;
};

Sequence sequence_of(std::uint8_t first) {
  if (first < 0x80) return {1};
  if (first < 0xc2) return {0};
  if (first < 0xe0) return {2};
  if (first == 0xe0) return {3, 0xa0, 0xbf};
  if (first == 0xed) return {3, 0x80, 0x9f};
  if (first < 0xf0) return {3};
  if (first == 0xf0) return {4, 0x90, 0xbf};
  if (first < 0xf4) return {4};
  if (first == 0xf4) return {4, 0x80, 0x8f};
  return {0};
}

// How many bytes from the start of `text` agree with a code point of this sequence.
size_t matching_prefix(std::string_view text, const Sequence& sequence) {
  size_t count = 1;
  while (count < sequence.length && count < text.size()) {
    auto byte = static_cast<std::uint8_t>(text[count]);
    bool fits = count == 1 ? byte >= sequence.low && byte <= sequence.high : (byte & 0xc0) == 0x80;
    if (!fits) break;
    ++count;
  }
  return count;
}

}  // namespace

Decoded decode_first(std::string_view text) {
  auto first = static_cast<std::uint8_t>(text[0]);
  if (first < 0x80) return {first, 1, true};
  Sequence sequence = sequence_of(first);
  if (sequence.length == 0 || matching_prefix(text, sequence) < sequence.length) return {};
  char32_t code_point = first & (0xff >> (sequence.length + 1));
  for (size_t i = 1; i < sequence.length; ++i)
    code_point = code_point << 6 | (static_cast<std::uint8_t>(text[i]) & 0x3f);
  return {code_point, sequence.length, true};
}

bool is_valid(std::string_view text) {
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    if (end - at >= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, 8);
      if ((word & 0x8080808080808080ULL) == 0) {
        at += 8;
        continue;
      }
    }
    if (static_cast<std::uint8_t>(*at) < 0x80) {
      ++at;
      continue;
    }
    Decoded decoded = decode_first({at, static_cast<size_t>(end - at)});
    if (!decoded.valid) return false;
    at += decoded.size_bytes;
  }
  return true;
}

std::string replace_invalid(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    Decoded decoded = decode_first(text);
    size_t step = decoded.size_bytes;
    if (decoded.valid) {
      valid += text.substr(0, step);
    } else {
      Sequence sequence = sequence_of(static_cast<std::uint8_t>(text[0]));
      step = sequence.length == 0 ? 1 : matching_prefix(text, sequence);
      valid += "\xef\xbf\xbd";
    }
    text.remove_prefix(step);
  }
  return valid;
}

std::string_view truncate(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::string_view prefix = text.substr(0, max_bytes);
  prefix.remove_suffix(incomplete_suffix(prefix));
  return prefix;
}

size_t incomplete_suffix(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    std::string_view tail = text.substr(text.size() - back);
    auto first = static_cast<std::uint8_t>(tail[0]);
    if ((first & 0xc0) == 0x80) continue;
    Sequence sequence = sequence_of(first);
    bool complete = sequence.length <= back;
    return !complete && matching_prefix(tail, sequence) == back ? back : 0;
  }
  return 0;
}

}  // namespace hive::utf8
