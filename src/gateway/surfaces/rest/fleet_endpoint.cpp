#include "base/strings.h"
#include "gateway/surfaces/rest/access_refusal.h"
#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/fleet_query.h"

namespace hive::rest {

namespace {

std::string page_body(const Context& context, const FleetQuery& query, const FleetQuery::Page& page,
                      std::string_view history_of) {
  std::string body = R"({"agents":[)";
  for (const fleet::AgentPointer& agent : page.agents) {
    if (!body.ends_with('[')) body += ',';
    append_fleet_entry(body, *agent, query.tags_of(agent->id), context.settings->config->gateway_id,
                       agent->id == history_of);
  }
  body += ']';
  ObjectWriter object(body);
  page.counts.append_to(object);
  if (page.next_cursor.empty()) {
    object.raw("next_cursor", "null");
  } else {
    object.text("next_cursor", page.next_cursor);
  }
  return body + "}\n";
}

}  // namespace

void get_fleet(const ContextPointer& context) {
  const policy::Policy& policy = *context->settings->policy;
  Result<FleetQuery> query = FleetQuery::parse(*context->request, *context->settings->config);
  if (!query) return context->refuse({400, "invalid_query", query.error().message});
  std::string history_of = context->request->query_parameter("agent").value_or("");
  if (!history_of.empty() && !policy.reaches(context->principal, history_of)) {
    return refuse_access(*context, "scope", "GET /api/fleet of agent " + quote(history_of),
                         fmt::format("this credential does not reach the agent {}", quote(history_of)));
  }
  auto is_visible = [&](const fleet::AgentStatus& agent) { return policy.reaches(context->principal, agent.id); };
  fleet::SnapshotPointer fleet = context->services->dependencies.fleet.snapshot();
  if (query->has_pages()) {
    return context->respond_json(page_body(*context, *query, query->page_of(*fleet, is_visible), history_of));
  }
  std::string body = "[";
  for (const fleet::AgentPointer& agent : fleet->agents) {
    if (!query->admits(*agent) || !is_visible(*agent)) continue;
    if (body.size() > 1) body += ',';
    append_fleet_entry(body, *agent, query->tags_of(agent->id), context->settings->config->gateway_id,
                       agent->id == history_of);
  }
  context->respond_json(body + "]\n");
}

}  // namespace hive::rest
