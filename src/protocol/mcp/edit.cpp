#include "protocol/mcp/edit.h"

#include <algorithm>

namespace hive::mcp {

namespace {

// The text of a member in its object: what stands between the comma before it and the end of its value.
std::string_view without_comma(std::string_view text) {
  std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == ',') text.remove_prefix(first + 1);
  return text;
}

}  // namespace

json::Limits edit::limits_of(std::string_view raw) {
  return {.max_bytes = raw.size(), .max_depth = message_limits.max_depth, .max_values = raw.size()};
}

std::vector<json::Member> edit::members_of(std::string_view raw) {
  return json::parse_object(raw, limits_of(raw)).value_or(std::vector<json::Member>{});
}

std::string edit::apply(std::string_view raw_object, std::span<const json::Member> members,
                        std::span<const MemberChange> changes) {
  std::size_t more_bytes = 2;
  for (const MemberChange& change : changes)
    more_bytes += change.key.size() + change.value.size() + 8;
  std::string out;
  out.reserve(raw_object.size() + more_bytes);
  out += '{';
  const char* at = members.empty() ? nullptr : raw_object.data() + raw_object.find('{') + 1;
  for (const json::Member& member : members) {
    const char* end = member.value.data() + member.value.size();
    auto change = std::ranges::find(changes, std::string_view(member.key), &MemberChange::key);
    bool is_changed = change != changes.end();
    if (!is_changed || !change->value.empty()) {
      if (out.size() > 1) out += ',';
      out += without_comma({at, is_changed ? member.value.data() : end});
      if (is_changed) out += change->value;
    }
    at = end;
  }
  for (const MemberChange& change : changes) {
    if (change.value.empty() || json::find(members, change.key)) continue;
    if (out.size() > 1) out += ',';
    json::append_string(out, change.key);
    out += ':';
    out += change.value;
  }
  out += '}';
  return out;
}

std::string with_members(std::string_view raw_object, std::span<const MemberChange> changes) {
  return edit::apply(raw_object, edit::members_of(raw_object), changes);
}

}  // namespace hive::mcp
