#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "protocol/mcp/rewrite.h"
#include "protocol/mcp/translation.h"

namespace hive::mcp {

namespace {

constexpr std::array<std::string_view, 6> cacheable_methods = {
    "prompts/list", "resources/list", "resources/read", "resources/templates/list", "server/discover", "tools/list"};

// From when to when the schemas know a member of what lists and results name.
struct Field {
  std::string_view key;
  Revision first;
  Revision last = newest;
};
constexpr std::array<Field, 5> tool_fields = {{{"annotations", Revision::v2025_03_26},
                                               {"title", Revision::v2025_06_18},
                                               {"outputSchema", Revision::v2025_06_18},
                                               {"icons", Revision::v2025_11_25},
                                               {"execution", Revision::v2025_11_25, Revision::v2025_11_25}}};
constexpr std::array<Field, 2> listed_fields = {{{"title", Revision::v2025_06_18}, {"icons", Revision::v2025_11_25}}};
constexpr std::array<Field, 4> implementation_fields = {{{"title", Revision::v2025_06_18},
                                                         {"icons", Revision::v2025_11_25},
                                                         {"description", Revision::v2025_11_25},
                                                         {"websiteUrl", Revision::v2025_11_25}}};

bool knows(Revision revision, const Field& field) {
  return revision >= field.first && revision <= field.last;
}

void remove_unknown(Rewrite& object, std::span<const Field> fields, Revision revision) {
  for (const Field& field : fields) {
    if (!knows(revision, field)) object.remove(field.key);
  }
}

using Adapter = std::function<std::optional<std::string>(std::string_view)>;

// The array with the elements that the adapter changes; nullopt if it changes none.
std::optional<std::string> adapt_elements(std::string_view raw_array, const Adapter& adapt) {
  auto elements = json::parse_array(raw_array, edit::limits_of(raw_array));
  if (!elements) return std::nullopt;
  std::string out;
  const char* copied = raw_array.data();
  for (std::string_view element : *elements) {
    std::optional<std::string> changed = adapt(element);
    if (!changed) continue;
    out.append(copied, element.data());
    out += *changed;
    copied = element.data() + element.size();
  }
  if (copied == raw_array.data()) return std::nullopt;
  out.append(copied, raw_array.data() + raw_array.size());
  return out;
}

void adapt_member(Rewrite& object, std::string_view key, const Adapter& adapt) {
  std::optional<std::string_view> raw = object.find(key);
  if (!raw) return;
  if (std::optional<std::string> changed = adapt(*raw)) object.set(key, *std::move(changed));
}

void adapt_array(Rewrite& object, std::string_view key, const Adapter& adapt) {
  adapt_member(object, key, [&](std::string_view raw) { return adapt_elements(raw, adapt); });
}

std::string decoded(const Rewrite& object, std::string_view key, std::string_view otherwise) {
  return json::decode_string(object.find(key).value_or("")).value_or(std::string(otherwise));
}

// A block of content. What a revision has no block for becomes text, so that the reader knows what is missing.
std::optional<std::string> adapt_block(std::string_view raw, Revision revision) {
  Rewrite block(raw);
  if (block.says("type", "audio") && revision < Revision::v2025_03_26) {
    std::size_t bytes = block.find("data").value_or("").size() / 4 * 3;
    block.set("text", json::encode_string(
                          fmt::format("[audio, {}, about {} bytes: revision {} of the protocol cannot carry it]",
                                      decoded(block, "mimeType", "of unknown type"), bytes, to_string(revision))));
    block.set("type", R"("text")");
    for (std::string_view key : {"data", "mimeType"})
      block.remove(key);
  } else if (block.says("type", "resource_link") && revision < Revision::v2025_06_18) {
    std::string link =
        fmt::format("[resource {}: {}]", decoded(block, "name", "without name"), decoded(block, "uri", ""));
    if (block.has("description")) link += ' ' + decoded(block, "description", "");
    block.set("text", json::encode_string(link));
    block.set("type", R"("text")");
    for (std::string_view key : {"name", "uri", "title", "description", "mimeType", "size", "icons"})
      block.remove(key);
  } else if (block.says("type", "resource_link")) {
    remove_unknown(block, listed_fields, revision);
  }
  return block.changed();
}

// Every revision before 2026-07-28 has objects only where this one has any JSON value and any schema.
bool is_object_schema(std::string_view raw_schema) {
  return Rewrite(raw_schema).says("type", "object");
}

void adapt_call(Rewrite& result, Revision revision) {
  if (revision < newest_legacy)
    adapt_array(result, "content", [&](std::string_view raw) { return adapt_block(raw, revision); });
  std::optional<std::string_view> structured = result.find("structuredContent");
  if (!structured || (revision >= Revision::v2025_06_18 && json::is_object(*structured))) return;
  result.remove("structuredContent");
  std::string_view raw_content = result.find("content").value_or("[]");
  auto content = json::parse_array(raw_content, edit::limits_of(raw_content));
  if (content && content->empty())
    result.set("content", R"([{"type":"text","text":)" + json::encode_string(*structured) + "}]");
}

std::optional<std::string> adapt_tool(std::string_view raw, Revision revision) {
  Rewrite tool(raw);
  remove_unknown(tool, tool_fields, revision);
  if (!is_modern(revision) && revision >= Revision::v2025_06_18 && tool.has("outputSchema") &&
      !is_object_schema(*tool.find("outputSchema")))
    tool.remove("outputSchema");
  return tool.changed();
}

std::optional<std::string> adapt_named(std::string_view raw, std::span<const Field> fields, Revision revision) {
  Rewrite named(raw);
  remove_unknown(named, fields, revision);
  return named.changed();
}

std::optional<std::string> adapt_prompt(std::string_view raw, Revision revision) {
  Rewrite prompt(raw);
  remove_unknown(prompt, listed_fields, revision);
  adapt_array(prompt, "arguments", [&](std::string_view argument) {
    return adapt_named(argument, std::span(listed_fields).first(1), revision);
  });
  return prompt.changed();
}

std::optional<std::string> adapt_prompt_message(std::string_view raw, Revision revision) {
  Rewrite message(raw);
  adapt_member(message, "content", [&](std::string_view block) { return adapt_block(block, revision); });
  return message.changed();
}

// What the schemas of the revision do not know of the method's own members.
void adapt_body(Rewrite& result, std::string_view method, Revision revision) {
  if (method == "tools/call") {
    if (!is_modern(revision)) adapt_call(result, revision);
  } else if (method == "tools/list") {
    adapt_array(result, "tools", [&](std::string_view raw) { return adapt_tool(raw, revision); });
  } else if (revision >= newest_legacy) {
    return;
  } else if (method == "prompts/list") {
    adapt_array(result, "prompts", [&](std::string_view raw) { return adapt_prompt(raw, revision); });
  } else if (method == "prompts/get") {
    adapt_array(result, "messages", [&](std::string_view raw) { return adapt_prompt_message(raw, revision); });
  } else if (method == "resources/list" || method == "resources/templates/list") {
    adapt_array(result, method == "resources/list" ? "resources" : "resourceTemplates",
                [&](std::string_view raw) { return adapt_named(raw, listed_fields, revision); });
  } else if (method == "initialize") {
    adapt_member(result, "serverInfo",
                 [&](std::string_view raw) { return adapt_named(raw, implementation_fields, revision); });
  }
}

void add_cache_hint(Rewrite& result, const CacheHint& hint) {
  std::optional<std::string_view> ttl = result.find("ttlMs");
  if (!ttl || json::decode_integer(*ttl).value_or(-1) < 0)
    result.set("ttlMs", std::to_string(std::max<std::int64_t>(0, hint.time_to_live.count())));
  bool is_shared =
      hint.scope == CacheScope::shared && (!result.has("cacheScope") || result.says("cacheScope", "public"));
  if (!result.says("cacheScope", is_shared ? "public" : "private"))
    result.set("cacheScope", is_shared ? R"("public")" : R"("private")");
}

void adapt_meta(Rewrite& result, Revision revision, std::string_view raw_server_info) {
  constexpr std::string_view server_info = "io.modelcontextprotocol/serverInfo";
  constexpr std::string_view subscription = "io.modelcontextprotocol/subscriptionId";
  std::optional<std::string_view> raw = result.find("_meta");
  Rewrite meta(raw.value_or("{}"));
  if (is_modern(revision) && !raw_server_info.empty()) {
    meta.set(server_info, std::string(raw_server_info));
  } else {
    meta.remove(server_info);
    if (!is_modern(revision)) meta.remove(subscription);
  }
  bool is_broken = raw && !json::is_object(*raw);
  if (!meta.is_changed() && !is_broken) return;
  std::string text = meta.text();
  if (text == "{}") {
    result.remove("_meta");
  } else {
    result.set("_meta", std::move(text));
  }
}

}  // namespace

std::string adapt_result(std::string_view raw_result, std::string_view method, Revision revision,
                         std::string_view raw_server_info, const CacheHint& hint) {
  // Nobody may take for success what no client can read.
  if (method == "tools/call" && !json::is_object(raw_result))
    raw_result = R"({"content":[{"type":"text","text":"The tool's answer was not readable."}],"isError":true})";
  Rewrite result(raw_result);
  bool is_complete = !result.has("resultType") || result.says("resultType", "complete");
  bool is_cacheable = std::ranges::find(cacheable_methods, method) != cacheable_methods.end();
  if (is_complete) adapt_body(result, method, revision);
  adapt_meta(result, revision, raw_server_info);
  if (is_modern(revision)) {
    if (!result.has("resultType")) result.set("resultType", R"("complete")");
    if (is_complete && is_cacheable) add_cache_hint(result, hint);
  } else {
    if (is_complete) result.remove("resultType");
    if (is_cacheable) {
      for (std::string_view key : {"ttlMs", "cacheScope"})
        result.remove(key);
    }
  }
  return result.is_changed() || !json::is_object(raw_result) ? result.text() : std::string(raw_result);
}

std::string result_type(std::string_view raw_result) {
  std::optional<std::string_view> raw = json::find(edit::members_of(raw_result), "resultType");
  if (!raw) return "complete";
  return json::decode_string(*raw).value_or(std::string(*raw));
}

}  // namespace hive::mcp
