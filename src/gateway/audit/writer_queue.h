#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace hive::audit {

using OnDurable = std::move_only_function<void(Result<std::uint64_t>)>;

/// Entries on their way to the disk: their bodies one behind the other in one buffer, so that queueing costs no
/// allocation. Not thread-safe.
class WriterQueue {
 public:
  struct Item {
    std::uint32_t body_bytes = 0;
    bool is_intent = false;
    OnDurable on_durable;
  };

  void push(std::string_view body, bool is_intent, OnDurable on_durable) {
    bodies_ += body;
    items_.push_back({static_cast<std::uint32_t>(body.size()), is_intent, std::move(on_durable)});
  }

  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] size_t entries() const { return items_.size(); }
  [[nodiscard]] size_t bytes() const { return bodies_.size(); }
  [[nodiscard]] std::vector<Item>& items() { return items_; }
  [[nodiscard]] std::string_view bodies() const { return bodies_; }

  /// Takes the callbacks, because a write failed, and removes the intents among their entries: what they announce will
  /// not happen now. Everything else has happened and stays.
  std::vector<OnDurable> give_up_waiting() {
    std::vector<OnDurable> callbacks;
    WriterQueue kept;
    size_t at = 0;
    for (Item& item : items_) {
      std::string_view body = std::string_view(bodies_).substr(at, item.body_bytes);
      at += item.body_bytes;
      bool withdrawn = item.is_intent && item.on_durable;
      if (item.on_durable) callbacks.push_back(std::move(item.on_durable));
      if (!withdrawn) kept.push(body, item.is_intent, nullptr);
    }
    *this = std::move(kept);
    return callbacks;
  }

  /// Puts all of `other` behind.
  void append(WriterQueue other) {
    bodies_ += other.bodies_;
    std::ranges::move(other.items_, std::back_inserter(items_));
  }

  /// Empties it and keeps its memory for the next round, unless a burst made it large.
  void clear() {
    constexpr size_t kept_bytes = size_t{4} << 20;
    items_.clear();
    bodies_.clear();
    if (bodies_.capacity() > kept_bytes) bodies_.shrink_to_fit();
    if (items_.capacity() * sizeof(Item) > kept_bytes) items_.shrink_to_fit();
  }

 private:
  std::string bodies_;
  std::vector<Item> items_;
};

}  // namespace hive::audit
