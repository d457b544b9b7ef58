#include <algorithm>
#include <iterator>

#include "protocol/mcp/message.h"

namespace hive::mcp {

namespace {

constexpr std::string_view line_breaks = "\r\n";

// Valid JSON has line breaks between tokens alone, where a space is as good.
void append_raw(std::string& out, std::string_view raw) {
  std::size_t first = out.size();
  out += raw;
  if (raw.find_first_of(line_breaks) == std::string_view::npos) return;
  std::replace_if(
      out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), [](char c) { return line_breaks.contains(c); }, ' ');
}

std::string begin(std::string_view raw_id, std::size_t more_bytes) {
  std::string out;
  out.reserve(48 + raw_id.size() + more_bytes);
  out += R"({"jsonrpc":"2.0")";
  if (!raw_id.empty()) {
    out += R"(,"id":)";
    out += raw_id;
  }
  return out;
}

void append_call(std::string& out, std::string_view method, std::string_view raw_params) {
  out += R"(,"method":)";
  json::append_string(out, method);
  if (!raw_params.empty()) {
    out += R"(,"params":)";
    append_raw(out, raw_params);
  }
  out += '}';
}

// The text of a member in its object: what stands between the comma before it and the end of its value.
std::string_view without_comma(std::string_view text) {
  std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == ',') text.remove_prefix(first + 1);
  return text;
}

}  // namespace

std::string encode_request(std::string_view raw_id, std::string_view method, std::string_view raw_params) {
  std::string out = begin(raw_id, method.size() + raw_params.size());
  append_call(out, method, raw_params);
  return out;
}

std::string encode_notification(std::string_view method, std::string_view raw_params) {
  return encode_request({}, method, raw_params);
}

std::string encode_result(std::string_view raw_id, std::string_view raw_result) {
  std::string out = begin(raw_id, raw_result.size());
  out += R"(,"result":)";
  append_raw(out, raw_result);
  out += '}';
  return out;
}

std::string encode_error(std::string_view raw_id, int code, std::string_view message, std::string_view raw_data) {
  std::string out = begin(raw_id, 48 + message.size() + raw_data.size());
  fmt::format_to(std::back_inserter(out), R"(,"error":{{"code":{},"message":)", code);
  json::append_string(out, message);
  if (!raw_data.empty()) {
    out += R"(,"data":)";
    append_raw(out, raw_data);
  }
  out += "}}";
  return out;
}

std::string encode_error_body(std::string_view raw_id, std::string_view raw_error) {
  std::string out = begin(raw_id, raw_error.size());
  out += R"(,"error":)";
  append_raw(out, raw_error);
  out += '}';
  return out;
}

std::string encode_fault(const Fault& fault) {
  return encode_error(fault.id, fault.code, fault.message, fault.data);
}

std::string with_members(std::string_view raw_object, std::span<const MemberChange> changes) {
  // Only its size bounds the object: it is part of a message that was accepted.
  json::Limits limits{
      .max_bytes = raw_object.size(), .max_depth = message_limits.max_depth, .max_values = raw_object.size()};
  std::vector<json::Member> members = json::parse_object(raw_object, limits).value_or(std::vector<json::Member>{});

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

}  // namespace hive::mcp
