#include "gateway/surfaces/mcp/own_entries.h"

#include <array>

#include "gateway/surfaces/rest/fan_out_request.h"

namespace hive::mcp_surface {

namespace {

OwnEntry own(std::string_view name, std::string_view raw) {
  return {.entry = {.name = std::string(name), .own_name = std::string(name)}, .raw = std::string(raw)};
}

}  // namespace

std::vector<OwnEntry> own_tools(bool with_approvals) {
  std::vector<OwnEntry> tools;
  tools.push_back(own(
      list_agents_tool,
      R"({"name":"gateway__list_agents","title":"List agents",)"
      R"("description":"The agents that this credential reaches: which are online, and since when the )"
      R"(others are not.","inputSchema":{"type":"object","properties":{)"
      R"("status":{"enum":["all","online","offline","stale","never_connected","flapping"],"description":)"
      R"("stale: not online; flapping: connects again and again"},)"
      R"("id":{"type":"string","description":"agents whose id matches; * stands for any characters"},)"
      R"("tag":{"type":"string"},"search":{"type":"string","description":"text in id, address, )"
      R"(operating system, tags or services"},)"
      R"("limit":{"type":"integer","minimum":1,"maximum":1000,"default":100},)"
      R"("cursor":{"type":"string","description":"next_cursor of the answer before"}}},)"
      R"("outputSchema":{"type":"object","properties":{"agents":{"type":"array","items":{)"
      R"("type":"object","properties":{"id":{"type":"string"},"online":{"type":"boolean"},)"
      R"("tags":{"type":"array","items":{"type":"string"}},"last_seen":{"type":"string"},)"
      R"("offline_since":{"type":"string"},"flapping_since":{"type":"string"},"contested":{"type":"boolean",)"
      R"("description":"two machines take the place from each other"},"os":{"type":"string"},"agent_version":{"type":"string"}},)"
      R"("required":["id","online"]}},"total":{"type":"integer"},"online":{"type":"integer"},)"
      R"("next_cursor":{"type":"string"}},"required":["agents"]},)"
      R"("annotations":{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":false}})"));
  std::string call_agents =
      R"({"name":"gateway__call_agents","title":"Call a tool of many agents",)"
      R"("description":"Calls one tool with the same arguments on many agents and says of each how it ended: success, )"
      R"(denied, failure, cancelled, expired, unknown, or approval_required. Every call passes the gates by itself. )"
      R"(Name agents, tags, or all. With dry_run it only says whom it would ask.","inputSchema":)";
  call_agents += rest::fan_out_schema;
  call_agents += R"(,"annotations":{"readOnlyHint":false,"destructiveHint":true,"openWorldHint":false}})";
  tools.push_back(own(call_agents_tool, call_agents));
  tools.back().entry.for_callers = true;
  if (with_approvals) {
    tools.push_back(
        own(approval_result_tool,
            R"({"name":"gateway__approval_result","title":"Result of a call that waited for approval",)"
            R"("description":"What became of a call that had to wait for the approval of other people. Returns the )"
            R"(result of the call once it was approved and has run; otherwise says that it waits, or why it will not )"
            R"(run.","inputSchema":{"type":"object","properties":{)"
            R"("id":{"type":"string","description":"the approval id that the call returned"},)"
            R"("wait_seconds":{"type":"integer","minimum":0,"maximum":50,"default":0,)"
            R"("description":"how long to wait for the decision"}},"required":["id"]},)"
            R"("annotations":{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":false}})"));
  }
  return tools;
}

std::vector<OwnEntry> own_prompts() {
  return {
      own(triage_prompt,
          R"({"name":"triage","title":"Triage an agent","description":"Finds out what is wrong with a server, looking )"
          R"(only.","arguments":[{"name":"agent","description":"id of the agent on the server","required":true}]})"),
      own(service_test_prompt,
          R"({"name":"service_test","title":"Test a service","description":"Checks a service, breaks it on purpose, )"
          R"(watches the outage, and brings it back.","arguments":[)"
          R"({"name":"agent","description":"id of the agent on the server","required":true},)"
          R"({"name":"service","description":"systemd unit to test","required":true}]})")};
}

std::vector<OwnEntry> own_resources() {
  return {own(fleet_uri,
              R"({"uri":"hive://fleet","name":"fleet","title":"The fleet","description":"All agents that this )"
              R"(credential reaches, with their state.","mimeType":"application/json"})")};
}

std::vector<OwnEntry> own_templates(bool with_audit) {
  std::vector<OwnEntry> templates = {
      own("hive://agents/{id}",
          R"({"uriTemplate":"hive://agents/{id}","name":"agent","title":"One agent","description":"State, operating )"
          R"(system, services, open ports and tools of one agent.","mimeType":"application/json"})"),
      own("hive://agents/{id}/metrics",
          R"({"uriTemplate":"hive://agents/{id}/metrics","name":"agent_metrics","title":"Metrics of one agent",)"
          R"("description":"CPU, load, memory and disk usage, measured now by calling get_metrics.",)"
          R"("mimeType":"application/json"})")};
  if (with_audit) {
    templates.push_back(
        own("hive://audit/{seq}",
            R"({"uriTemplate":"hive://audit/{seq}","name":"audit_entry","title":"An entry of the audit log",)"
            R"("description":"One entry of the signed audit log by its number. For admins.",)"
            R"("mimeType":"application/json"})"));
    templates.back().entry.for_admins = true;
  }
  return templates;
}

}  // namespace hive::mcp_surface
