#include "protocol/mcp/questions.h"

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

}  // namespace hive::mcp
