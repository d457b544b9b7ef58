#include "base/strings.h"
#include "gateway/surfaces/rest/access_refusal.h"
#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/fleet_query.h"

namespace hive::rest {

namespace {

std::string agents_json(const Context& context, const FleetQuery& query, const FleetQuery::Page& page,
                        std::string_view history_of) {
  std::string body = "[";
  for (const fleet::AgentPointer& agent : page.agents) {
    if (!body.ends_with('[')) body += ',';
    append_fleet_entry(body, *agent, query.tags_of(agent->id), context.settings->config->gateway_id,
                       agent->id == history_of);
  }
  return body + "]";
}

std::string page_body(std::string_view agents, const FleetQuery::Page& page) {
  std::string body = "{";
  ObjectWriter object(body);
  object.raw("agents", agents);
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
  Result<FleetQuery> query = FleetQuery::parse(
      [&](std::string_view name) { return context->request->query_parameter(name); }, *context->settings->config);
  if (!query) return context->refuse({400, "invalid_query", query.error().message});
  std::string history_of = context->request->query_parameter("agent").value_or("");
  if (!history_of.empty() && !policy.reaches(context->principal, history_of)) {
    return refuse_access(*context, "scope", "GET /api/fleet of agent " + quote(history_of),
                         fmt::format("this credential does not reach the agent {}", quote(history_of)));
  }
  auto is_visible = [&](const fleet::AgentStatus& agent) { return policy.reaches(context->principal, agent.id); };
  fleet::SnapshotPointer fleet = context->services->dependencies.fleet.snapshot();
  FleetQuery::Page page = query->page_of(*fleet, is_visible);
  std::string agents = agents_json(*context, *query, page, history_of);
  // The reference's shape is the plain array.
  context->respond_json(query->has_pages() ? page_body(agents, page) : std::move(agents) + "\n");
}

}  // namespace hive::rest
