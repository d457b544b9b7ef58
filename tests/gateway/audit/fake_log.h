#pragma once

#include <mutex>
#include <vector>

#include "gateway/audit/log.h"

namespace hive::audit {

/// A log in memory. Entries become durable at once, or when the test says so, or never.
class FakeLog final : public Log {
 public:
  enum class Mode { at_once, held, refusing, failing };

  Result<void> append(Record record, std::move_only_function<void(Result<std::uint64_t>)> on_durable) override {
    Mode mode = Mode::at_once;
    std::uint64_t sequence = 0;
    {
      std::lock_guard lock(mutex_);
      if (mode_ == Mode::refusing) return fail(ErrorCode::io, "no space left on device");
      mode = mode_;
      if (mode != Mode::failing) {
        sequence = records_.size();
        records_.push_back(std::move(record));
      }
      if (mode == Mode::held) {
        held_.emplace_back(sequence, std::move(on_durable));
        return {};
      }
    }
    if (!on_durable) return {};
    if (mode == Mode::failing) {
      on_durable(fail(ErrorCode::io, "no space left on device"));
    } else {
      on_durable(sequence);
    }
    return {};
  }

  Result<void> flush() override { return {}; }
  [[nodiscard]] Result<void> health() const override { return {}; }
  [[nodiscard]] const RecoveryReport& recovery() const override { return recovery_; }
  [[nodiscard]] std::uint64_t size() const override {
    std::lock_guard lock(mutex_);
    return records_.size();
  }

  void set_mode(Mode mode) {
    std::lock_guard lock(mutex_);
    mode_ = mode;
  }
  /// Makes everything held durable.
  void release() {
    std::vector<std::pair<std::uint64_t, std::move_only_function<void(Result<std::uint64_t>)>>> held;
    {
      std::lock_guard lock(mutex_);
      held.swap(held_);
    }
    for (auto& [sequence, on_durable] : held) {
      if (on_durable) on_durable(sequence);
    }
  }
  [[nodiscard]] std::vector<Record> records() const {
    std::lock_guard lock(mutex_);
    return records_;
  }

 private:
  mutable std::mutex mutex_;
  Mode mode_ = Mode::at_once;
  std::vector<Record> records_;
  std::vector<std::pair<std::uint64_t, std::move_only_function<void(Result<std::uint64_t>)>>> held_;
  RecoveryReport recovery_;
};

}  // namespace hive::audit
