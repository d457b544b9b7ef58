#include "gateway/upstreams/tool_digest.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "crypto/sha256.h"
#include "protocol/json.h"
#include "protocol/mcp/message.h"

namespace hive::upstreams {

namespace {

constexpr std::string_view pinned_members[] = {"name",        "title",        "description",
                                               "inputSchema", "outputSchema", "annotations"};

// The text was validated as a whole, so that nothing in it fails to parse and depth is bounded.
void append_canonical(std::string& out, std::string_view raw) {
  if (json::is_object(raw)) {
    auto members = json::parse_object(raw, mcp::message_limits).value_or(std::vector<json::Member>());
    std::ranges::sort(members, {}, &json::Member::key);
    out += '{';
    for (const json::Member& member : members) {
      json::append_string(out, member.key);
      out += ':';
      append_canonical(out, member.value);
      out += ',';
    }
    out += '}';
  } else if (json::is_array(raw)) {
    out += '[';
    for (std::string_view element :
         json::parse_array(raw, mcp::message_limits).value_or(std::vector<std::string_view>())) {
      append_canonical(out, element);
      out += ',';
    }
    out += ']';
  } else if (auto text = json::decode_string(raw)) {
    json::append_string(out, *text);
  } else {
    out += raw;
  }
}

}  // namespace

std::string tool_digest(std::string_view raw_tool) {
  auto members = json::parse_object(raw_tool, mcp::message_limits).value_or(std::vector<json::Member>());
  std::string text;
  for (std::string_view key : pinned_members) {
    auto value = json::find(members, key);
    if (!value) continue;
    text += key;
    text += ':';
    append_canonical(text, *value);
    text += '\n';
  }
  return to_hex(crypto::sha256(text));
}

}  // namespace hive::upstreams
