#pragma once

#include <cstddef>

namespace hive::fleet {

/// Bounds what an agent sends besides the answers that it owes: progress, late or invented answers. Each line of it
/// costs the worker that other agents live on, too. Counted in periods of the owner; progress beyond the limit is
/// dropped, and an agent that goes on all the same, or sends masses that nobody asked for, is to be cut off.
class ChatterLimit {
 public:
  /// A new period begins.
  void next_period() { *this = {}; }

  /// Whether a progress message may be passed on.
  [[nodiscard]] bool admit_progress(std::size_t bytes) {
    ++progress_lines_;
    progress_bytes_ += bytes;
    if (progress_lines_ <= max_progress_lines && progress_bytes_ <= max_progress_bytes) return true;
    unasked(bytes);
    return false;
  }
  /// A line that nobody waits for.
  void unasked(std::size_t bytes) {
    ++unasked_lines_;
    unasked_bytes_ += bytes;
  }

  [[nodiscard]] bool is_flood() const {
    return unasked_lines_ > max_unasked_lines || unasked_bytes_ > max_unasked_bytes;
  }

  static constexpr std::size_t max_progress_lines = 2000;
  static constexpr std::size_t max_progress_bytes = std::size_t{8} << 20;
  /// Answers to calls whose time was over come late, all calls of an agent at once in the worst case.
  static constexpr std::size_t max_unasked_lines = 8192;
  static constexpr std::size_t max_unasked_bytes = std::size_t{64} << 20;

 private:
  std::size_t progress_lines_ = 0;
  std::size_t progress_bytes_ = 0;
  std::size_t unasked_lines_ = 0;
  std::size_t unasked_bytes_ = 0;
};

}  // namespace hive::fleet
