#include "cli/explanation.h"

#include "cli/json_fields.h"

namespace hive::cli {

Result<ExplanationView> parse_explanation(std::string_view body) {
  JsonFields fields = TRY(JsonFields::parse(body, "explanation"));
  ExplanationView explanation{.verdict = fields.text("verdict"),
                              .reason = fields.text("reason"),
                              .tier = fields.text("tier"),
                              .tier_rule = fields.text("tier_rule"),
                              .gates = {}};
  if (explanation.verdict.empty()) return fail(ErrorCode::corrupt, "the gateway's explanation has no verdict");
  for (std::string_view raw : fields.elements("gates")) {
    JsonFields gate = TRY(JsonFields::parse(raw, "explanation of a gate"));
    explanation.gates.push_back(
        {gate.text("gate"), gate.text("verdict"), gate.text("reason"), gate.text("message"), gate.text("rule")});
  }
  return explanation;
}

std::string explain_request(std::string_view tool, std::string_view arguments, const AskedAs& as) {
  std::string body = "{\"name\":" + json::encode_string(tool);
  body += ",\"arguments\":";
  body += arguments;
  if (!as.says_something()) return body + "}";
  std::string members;
  auto begin = [&members](std::string_view key) {
    if (!members.empty()) members += ',';
    json::append_string(members, key);
    members += ':';
  };
  auto add_text = [&](std::string_view key, const std::string& value) {
    if (value.empty()) return;
    begin(key);
    json::append_string(members, value);
  };
  auto add_list = [&](std::string_view key, const std::vector<std::string>& values) {
    if (values.empty()) return;
    begin(key);
    members += '[';
    for (const std::string& value : values) {
      if (!members.ends_with('[')) members += ',';
      json::append_string(members, value);
    }
    members += ']';
  };
  add_text("role", as.role);
  add_text("identity", as.identity);
  add_list("groups", as.groups);
  add_list("agents", as.agents);
  add_list("tags", as.tags);
  add_list("tools", as.tools);
  return body + ",\"as\":{" + members + "}}";
}

ExitCode exit_code_of_verdict(std::string_view verdict) {
  if (verdict == "allow") return ExitCode::success;
  if (verdict == "deny") return ExitCode::denied;
  if (verdict == "ask") return ExitCode::pending_approval;
  return ExitCode::unsettled;
}

}  // namespace hive::cli
