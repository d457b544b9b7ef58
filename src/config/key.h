#pragma once

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/key_info.h"
#include "config/reader.h"

namespace hive::config {

/// A row of a table of keys: what the documentation and the tests know, and how the value is stored in T.
template <class T>
struct Key {
  KeyInfo info;
  void (*read)(Reader& reader, const Value& value, T& target);
};

/// Reads an object by its table. Unknown keys are problems; keys that start with "_comment" and nulls are passed over.
template <class T>
void read_members(Reader& reader, const Value& object, std::span<const Key<T>> keys, T& target) {
  std::vector<std::string_view> seen;
  for (const auto& [name, value] : reader.members(object)) {
    auto key = std::ranges::find_if(keys, [&name = name](const Key<T>& row) { return row.info.name == name; });
    if (key == keys.end()) {
      std::vector<std::string_view> known;
      for (const Key<T>& row : keys) {
        known.push_back(row.info.name);
      }
      reader.unknown_key(value, name, known);
      continue;
    }
    seen.push_back(key->info.name);
    if (!key->info.no_effect.empty() && says_something(value.raw)) {
      reader.note_without_effect(fmt::format("{} ({})", value.field, key->info.no_effect));
    }
    key->read(reader, value, target);
  }
  for (const Key<T>& row : keys) {
    if (!row.info.required || std::ranges::find(seen, row.info.name) != seen.end()) continue;
    reader.problem(
        object, fmt::format("{} is not set{}{}", row.info.name, row.info.remedy.empty() ? "" : "; ", row.info.remedy));
  }
}

/// Readers for rows of a table: value to member, by type.
template <auto Member, class T>
void store_string(Reader& reader, const Value& value, T& target) {
  if (auto text = reader.string(value)) target.*Member = *std::move(text);
}

template <auto Member, class T>
void store_non_empty_string(Reader& reader, const Value& value, T& target) {
  if (auto text = reader.non_empty_string(value)) target.*Member = *std::move(text);
}

template <auto Member, class T>
void store_path(Reader& reader, const Value& value, T& target) {
  if (auto text = reader.path(value)) target.*Member = *std::move(text);
}

template <auto Member, class T>
void store_required_path(Reader& reader, const Value& value, T& target) {
  auto path = reader.path(value);
  if (path && path->empty()) reader.problem(value, "must not be empty");
  if (path) target.*Member = *std::move(path);
}

template <auto Member, class T>
void store_secret(Reader& reader, const Value& value, T& target) {
  if (auto secret = reader.secret(value)) target.*Member = *std::move(secret);
}

template <auto Member, std::int64_t Min, std::int64_t Max, class T>
void store_integer(Reader& reader, const Value& value, T& target) {
  using Number = std::remove_reference_t<decltype(target.*Member)>;
  if (auto number = reader.integer(value, Min, Max)) target.*Member = static_cast<Number>(*number);
}

template <auto Member, std::int64_t Min, std::int64_t Max, class T>
void store_seconds(Reader& reader, const Value& value, T& target) {
  if (auto number = reader.integer(value, Min, Max)) target.*Member = std::chrono::seconds(*number);
}

template <auto Member, class T>
void store_string_list(Reader& reader, const Value& value, T& target) {
  target.*Member = reader.string_list(value);
}

inline constexpr std::string_view log_levels[] = {"debug", "info", "warning", "error"};

template <auto Member, class T>
void store_log_level(Reader& reader, const Value& value, T& target) {
  if (auto text = reader.one_of(value, log_levels)) target.*Member = *std::move(text);
}

/// Readers for keys that are known and checked for type, and kept nowhere.
template <class T>
void check_string(Reader& reader, const Value& value, T& /*target*/) {
  (void)reader.string(value);
}

template <std::int64_t Min, std::int64_t Max, class T>
void check_integer(Reader& reader, const Value& value, T& /*target*/) {
  (void)reader.integer(value, Min, Max);
}

template <class T>
void check_boolean(Reader& reader, const Value& value, T& /*target*/) {
  (void)reader.boolean(value);
}

template <class T>
void check_string_list(Reader& reader, const Value& value, T& /*target*/) {
  (void)reader.string_list(value);
}

/// A secret that may also be left empty, which means off.
template <class T>
void check_optional_secret(Reader& reader, const Value& value, T& /*target*/) {
  if (value.raw != "\"\"") (void)reader.secret(value);
}

template <class T>
void check_secret_map(Reader& reader, const Value& value, T& /*target*/) {
  for (const auto& [name, element] : reader.members(value)) {
    (void)reader.secret(element);
  }
}

}  // namespace hive::config
