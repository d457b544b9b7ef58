#pragma once

#include <forward_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/mcp/edit.h"

/// Inside this room.
namespace hive::mcp {

/// An object on its way to somebody: what is to change in it, and the texts of the changes. The raw text must outlive
/// it.
class Rewrite {
 public:
  explicit Rewrite(std::string_view raw) : raw_(raw), members_(edit::members_of(raw)) {}

  [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const { return json::find(members_, key); }
  [[nodiscard]] bool has(std::string_view key) const { return find(key).has_value(); }
  [[nodiscard]] bool says(std::string_view key, std::string_view text) const {
    return json::decode_string(find(key).value_or("")) == text;
  }

  void set(std::string_view key, std::string value) {
    changes_.push_back({key, texts_.emplace_front(std::move(value))});
  }
  void remove(std::string_view key) {
    if (has(key)) changes_.push_back({key, {}});
  }

  [[nodiscard]] bool is_changed() const { return !changes_.empty(); }
  [[nodiscard]] std::string text() const { return edit::apply(raw_, members_, changes_); }
  /// The new text, or nullopt if nothing is to change.
  [[nodiscard]] std::optional<std::string> changed() const {
    return is_changed() ? std::optional(text()) : std::nullopt;
  }

 private:
  std::string_view raw_;
  std::vector<json::Member> members_;
  std::vector<MemberChange> changes_;
  std::forward_list<std::string> texts_;  // a list: the changes hold views of its elements
};

}  // namespace hive::mcp
