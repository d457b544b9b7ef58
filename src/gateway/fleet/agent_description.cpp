#include "gateway/fleet/agent_description.h"

#include <algorithm>
#include <set>

#include "base/utf8.h"
#include "protocol/json.h"

namespace hive::fleet {

namespace {

constexpr size_t max_list_entries = 1024;
constexpr size_t max_text_bytes = 512;

bool is_tool_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  });
}

std::string bounded(std::string text) {
  text.resize(utf8::truncate(text, max_text_bytes).size());
  return text;
}

std::string text_member(std::span<const json::Member> members, std::string_view key) {
  auto raw = json::find(members, key);
  return raw ? bounded(json::decode_string(*raw).value_or("")) : std::string();
}

std::vector<std::string> list_member(std::span<const json::Member> members, std::string_view key) {
  std::vector<std::string> list;
  auto raw = json::find(members, key);
  if (!raw || !json::is_array(*raw)) return list;
  auto elements = json::parse_array(*raw);
  if (!elements) return list;
  for (std::string_view element : *elements) {
    if (list.size() == max_list_entries) break;
    if (auto text = json::decode_string(element)) list.push_back(bounded(*std::move(text)));
  }
  return list;
}

}  // namespace

Result<ToolList> parse_tools_list(std::string_view result, std::size_t max_tools) {
  json::Limits limits{.max_bytes = result.size()};
  auto members = TRY(json::parse_object(result, limits));
  auto list = json::find(members, "tools");
  if (!list || !json::is_array(*list)) return fail(ErrorCode::invalid_argument, "\"tools\" must be an array");
  auto elements = TRY(json::parse_array(*list, limits));
  if (elements.size() > max_tools) {
    return fail(ErrorCode::resource_exhausted, "{} tools are more than the limit of {}", elements.size(), max_tools);
  }
  ToolList tools;
  std::set<std::string> names;
  for (std::string_view element : elements) {
    if (!json::is_object(element)) return fail(ErrorCode::invalid_argument, "a tool must be an object");
    auto fields = TRY(json::parse_object(element, limits));
    auto raw_name = json::find(fields, "name");
    std::string name = raw_name ? json::decode_string(*raw_name).value_or("") : "";
    if (!is_tool_name(name) || !names.insert(name).second) continue;
    auto raw_description = json::find(fields, "description");
    std::string description = raw_description ? json::decode_string(*raw_description).value_or("") : "";
    tools.push_back({std::move(name), bounded(std::move(description)), std::string(element)});
  }
  return tools;
}

void describe(std::string_view result, AgentStatus& status) {
  auto members = json::parse_object(result, {.max_bytes = result.size()});
  if (!members) return;
  std::string text;
  auto structured = json::find(*members, "structuredContent");
  if (structured && json::is_object(*structured)) {
    text = *structured;
  } else if (auto content = json::find(*members, "content"); content && json::is_array(*content)) {
    auto blocks = json::parse_array(*content);
    if (!blocks || blocks->empty() || !json::is_object(blocks->front())) return;
    auto block = json::parse_object(blocks->front());
    auto raw = block ? json::find(*block, "text") : std::nullopt;
    text = raw ? json::decode_string(*raw).value_or("") : "";
  }
  auto fields = json::parse_object(text);
  if (!fields) return;
  status.os_version = text_member(*fields, "os_version");
  status.agent_version = text_member(*fields, "agent_version");
  status.running_services = list_member(*fields, "running_services");
  status.open_ports = list_member(*fields, "open_ports");
}

}  // namespace hive::fleet
