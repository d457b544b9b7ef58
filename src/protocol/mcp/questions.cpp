#include "protocol/mcp/questions.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <span>
#include <utility>

#include "protocol/mcp/rewrite.h"
#include "protocol/mcp/translation.h"

namespace hive::mcp {

namespace {

std::string lacking(std::string_view capability, std::string_view part) {
  std::string inner = part.empty() ? "{}" : "{" + json::encode_string(part) + ":{}}";
  return "{" + json::encode_string(capability) + ":" + inner + "}";
}

// Without "mode" a form is meant, as before 2025-11-25 there was nothing else.
std::string mode_of(const Rewrite& params) {
  std::optional<std::string_view> raw = params.find("mode");
  return raw ? json::decode_string(*raw).value_or("") : "form";
}

constexpr std::size_t max_words = 512;
constexpr std::size_t max_distance = 48;  // between the words of one statement
constexpr std::size_t max_property = 40;

std::string name_for_form(std::string_view raw_schema) {
  std::vector<json::Member> schema = edit::members_of(raw_schema);
  std::vector<json::Member> properties = edit::members_of(json::find(schema, "properties").value_or(""));
  if (properties.size() != 1 || properties[0].key.empty() || properties[0].key.size() > max_property) {
    return "user_input";
  }
  std::string name = "user_";
  for (char c : properties[0].key)
    name += (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-') ? c : '_';
  return name;
}

// The first of `words` that begins in `text` within `max_distance`, and what follows it.
std::optional<std::pair<std::string_view, std::string_view>> next_of(std::string_view text,
                                                                     std::span<const std::string_view> words) {
  std::optional<std::pair<std::string_view, std::string_view>> nearest;
  std::size_t nearest_at = max_distance + 1;
  for (std::string_view word : words) {
    std::size_t at = text.find(word);
    if (at >= nearest_at) continue;
    nearest_at = at;
    nearest = {word, text.substr(at + word.size())};
  }
  return nearest;
}

}  // namespace

std::string missing_capability(std::string_view raw_capabilities, std::string_view method,
                               std::string_view raw_params) {
  std::string_view capability = capability_of(method);
  if (capability.empty()) return "{}";
  Rewrite params(raw_params);
  std::string part;
  if (capability == "elicitation") {
    part = mode_of(params);
  } else if (capability == "sampling" && (params.has("tools") || params.has("toolChoice"))) {
    part = "tools";
  }

  Rewrite capabilities(raw_capabilities);
  std::string_view declared = capabilities.find(capability).value_or("");
  if (!json::is_object(declared)) return lacking(capability, part == "form" ? "" : part);
  if (capability == "roots" || (capability == "sampling" && part.empty())) return {};
  bool is_form_alone = capability == "elicitation" && !has_capability(declared, "url");
  if (has_capability(declared, part) || (part == "form" && is_form_alone)) return {};
  return lacking(capability, part);
}

std::string adapt_question(std::string_view raw_params, std::string_view method, Revision revision,
                           std::string_view fresh_id) {
  Rewrite params(raw_params);
  const bool has_tasks = revision == Revision::v2025_11_25;
  if (!has_tasks) params.remove("task");
  if (method == "elicitation/create") {
    if (!has_tasks) params.remove("elicitationId");
    if (has_tasks && mode_of(params) == "url" && !params.has("elicitationId"))
      params.set("elicitationId", json::encode_string(fresh_id));
    if (revision < Revision::v2025_11_25 && mode_of(params) == "form") params.remove("mode");
  }
  Rewrite meta(params.find("_meta").value_or("{}"));
  meta.remove("progressToken");
  if (meta.is_changed()) params.set("_meta", meta.text());
  return params.is_changed() || !json::is_object(raw_params) ? params.text() : std::string(raw_params);
}

bool is_answer_to(std::string_view method, std::string_view raw_result) {
  auto members = json::parse_object(raw_result, message_limits);
  if (!members) return false;
  auto text = [&](std::string_view key) {
    auto raw = json::find(*members, key);
    return raw ? json::decode_string(*raw) : std::nullopt;
  };
  if (method == "elicitation/create") {
    static constexpr std::array<std::string_view, 3> actions = {"accept", "decline", "cancel"};
    auto action = text("action");
    auto content = json::find(*members, "content");
    return action && std::ranges::find(actions, *action) != actions.end() && (!content || json::is_object(*content));
  }
  if (method == "sampling/createMessage") {
    auto content = json::find(*members, "content");
    return text("role") && text("model") && content && (json::is_object(*content) || json::is_array(*content));
  }
  if (method == "roots/list") {
    auto roots = json::find(*members, "roots");
    return roots && json::is_array(*roots);
  }
  return false;
}

std::string question_key(std::string_view method, std::string_view raw_params) {
  if (method == "sampling/createMessage") return "model_message";
  if (method == "roots/list") return "client_roots";
  Rewrite params(raw_params);
  return mode_of(params) == "url" ? "user_visit" : name_for_form(params.find("requestedSchema").value_or(""));
}

std::string_view capability_missed_in(std::string_view words) {
  static constexpr std::array<std::string_view, 1> who = {"client"};
  static constexpr std::array<std::string_view, 4> lacks = {"does not support", "does not declare", "did not declare",
                                                            "doesn't support"};
  static constexpr std::array<std::string_view, 3> capabilities = {"elicitation", "sampling", "roots"};
  if (words.size() > max_words || words.contains('\n')) return {};
  std::string lower(words);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  auto client = next_of(lower, who);
  auto lack = client ? next_of(client->second, lacks) : std::nullopt;
  auto capability = lack ? next_of(lack->second, capabilities) : std::nullopt;
  return capability ? capability->first : std::string_view();
}

}  // namespace hive::mcp
