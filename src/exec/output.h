#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hive::exec {

/// What a command printed, within bounds.
struct CapturedOutput {
  std::string head;                 ///< the first bytes; all of them when nothing was omitted
  std::string tail;                 ///< the last bytes, when something between was omitted
  std::uint64_t total_bytes = 0;    ///< how much was printed
  std::uint64_t omitted_bytes = 0;  ///< how much of it is neither in head nor in tail
};

/// Collects output of any length in bounded memory: the start and the end are kept, for errors tend to come last.
class OutputCapture {
 public:
  explicit OutputCapture(size_t max_bytes);
  void append(std::string_view bytes);
  /// Takes what was collected; the capture is empty afterwards.
  [[nodiscard]] CapturedOutput take();
  [[nodiscard]] std::uint64_t total_bytes() const { return total_; }

 private:
  size_t head_limit_;
  size_t tail_limit_;
  std::string head_;
  std::string tail_;       // a ring once it has reached its limit
  size_t tail_start_ = 0;  // oldest byte of the ring
  std::uint64_t total_ = 0;
};

/// Captured bytes as text for people and as exact bytes for programs.
struct RenderedOutput {
  std::string text;           ///< valid UTF-8; says in brackets what is missing
  std::string base64;         ///< the kept bytes from the start, when the output is binary
  bool is_binary = false;     ///< has NUL bytes or is mostly not UTF-8
  bool was_replaced = false;  ///< the text holds U+FFFD in the place of invalid bytes
  std::uint64_t total_bytes = 0;
  std::uint64_t omitted_bytes = 0;
};

/// Renders at most about `max_bytes` of it; what goes beyond counts as omitted.
RenderedOutput render(const CapturedOutput& output, size_t max_bytes);

/// Turns bytes that arrive in arbitrary pieces into pieces of valid UTF-8 for progress messages: a code point that is
/// cut by a read is joined again. Bounded: what does not fit is counted and announced.
class OutputStream {
 public:
  explicit OutputStream(size_t max_pending_bytes = size_t{16} << 10) : max_pending_(max_pending_bytes) {}
  void append(std::string_view bytes);
  [[nodiscard]] bool has_text() const;
  /// The text since the last call.
  [[nodiscard]] std::string take();

 private:
  size_t max_pending_;
  std::string pending_;
  std::uint64_t skipped_ = 0;
};

}  // namespace hive::exec
