#include "gateway/surfaces/rest/members.h"

#include <algorithm>

#include "base/strings.h"

namespace hive::rest {

namespace {

Result<std::string> text_of(std::string_view raw, std::string_view name, std::size_t max_bytes) {
  std::optional<std::string> text = json::decode_string(raw);
  if (!text) return fail(ErrorCode::invalid_argument, "{}: must be a string", name);
  if (text->size() > max_bytes) {
    return fail(ErrorCode::invalid_argument, "{}: longer than {} bytes", name, max_bytes);
  }
  return *std::move(text);
}

}  // namespace

Result<std::vector<json::Member>> parse_members(std::string_view body, std::span<const std::string_view> known) {
  std::vector<json::Member> members = TRY(json::parse_object(body, {.max_bytes = body.size()}));
  for (const json::Member& member : members) {
    if (std::ranges::find(known, member.key) != known.end()) continue;
    if (std::optional<std::string_view> nearest = nearest_name(member.key, known)) {
      return fail(ErrorCode::invalid_argument, "{}: unknown member; did you mean \"{}\"?", quote(member.key), *nearest);
    }
    std::vector<std::string> names(known.begin(), known.end());
    return fail(ErrorCode::invalid_argument, "{}: unknown member; known are {}", quote(member.key), join(names, ", "));
  }
  return members;
}

Result<std::optional<std::string>> optional_text(std::span<const json::Member> members, std::string_view key,
                                                 std::size_t max_bytes) {
  std::optional<std::string_view> raw = json::find(members, key);
  if (!raw || json::is_null(*raw)) return std::nullopt;
  return TRY(text_of(*raw, key, max_bytes));
}

Result<std::string> required_text(std::span<const json::Member> members, std::string_view key, std::size_t max_bytes) {
  std::optional<std::string> text = TRY(optional_text(members, key, max_bytes));
  if (!text || text->empty()) return fail(ErrorCode::invalid_argument, "{}: missing or empty", key);
  return *std::move(text);
}

Result<std::optional<std::vector<std::string>>> optional_texts(std::span<const json::Member> members,
                                                               std::string_view key, std::size_t max_texts) {
  std::optional<std::string_view> raw = json::find(members, key);
  if (!raw || json::is_null(*raw)) return std::nullopt;
  if (!json::is_array(*raw)) return fail(ErrorCode::invalid_argument, "{}: must be a list of strings", key);
  std::vector<std::string_view> elements = TRY(json::parse_array(*raw, {.max_bytes = raw->size()}));
  if (elements.size() > max_texts) {
    return fail(ErrorCode::invalid_argument, "{}: more than {} entries", key, max_texts);
  }
  std::vector<std::string> texts;
  for (std::string_view element : elements)
    texts.push_back(TRY(text_of(element, fmt::format("{}[{}]", key, texts.size()), max_text_bytes)));
  return texts;
}

Result<std::optional<bool>> optional_flag(std::span<const json::Member> members, std::string_view key) {
  std::optional<std::string_view> raw = json::find(members, key);
  if (!raw || json::is_null(*raw)) return std::nullopt;
  std::optional<bool> flag = json::decode_boolean(*raw);
  if (!flag) return fail(ErrorCode::invalid_argument, "{}: must be true or false", key);
  return flag;
}

Result<std::optional<std::int64_t>> optional_number(std::span<const json::Member> members, std::string_view key,
                                                    std::int64_t min, std::int64_t max) {
  std::optional<std::string_view> raw = json::find(members, key);
  if (!raw || json::is_null(*raw)) return std::nullopt;
  std::optional<std::int64_t> number = json::decode_integer(*raw);
  if (!number || *number < min || *number > max) {
    return fail(ErrorCode::invalid_argument, "{}: must be a whole number from {} to {}", key, min, max);
  }
  return number;
}

}  // namespace hive::rest
