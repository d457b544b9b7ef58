#include "gateway/surfaces/mcp/methods.h"

#include <algorithm>
#include <array>

#include "gateway/surfaces/mcp/legacy_session.h"
#include "gateway/surfaces/mcp/server.h"
#include "protocol/agent_protocol.h"
#include "protocol/json_object.h"

namespace hive::mcp_surface {

namespace {

constexpr std::chrono::minutes discovery_time_to_live{1};

constexpr std::array<Method, 14> methods = {{
    {.name = "tools/list", .is_legacy = true, .is_modern = true, .run = list_tools},
    {.name = "tools/call", .is_legacy = true, .is_modern = true, .run = call_tool},
    {.name = "resources/list", .is_legacy = true, .is_modern = true, .run = list_resources},
    {.name = "resources/templates/list", .is_legacy = true, .is_modern = true, .run = list_templates},
    {.name = "resources/read", .is_legacy = true, .is_modern = true, .run = read_resource},
    {.name = "prompts/list", .is_legacy = true, .is_modern = true, .run = list_prompts},
    {.name = "prompts/get", .is_legacy = true, .is_modern = true, .run = get_prompt},
    {.name = "completion/complete", .is_legacy = true, .is_modern = true, .run = complete},
    {.name = "ping", .is_legacy = true, .is_modern = false, .run = ping},
    {.name = "logging/setLevel", .is_legacy = true, .is_modern = false, .run = set_log_level},
    {.name = "resources/subscribe", .is_legacy = true, .is_modern = false, .run = subscribe},
    {.name = "resources/unsubscribe", .is_legacy = true, .is_modern = false, .run = unsubscribe},
    {.name = "server/discover", .is_legacy = false, .is_modern = true, .run = discover},
    {.name = "subscriptions/listen", .is_legacy = false, .is_modern = true, .run = listen},
}};

void list(const std::shared_ptr<Server>& server, const ExchangePointer& exchange, Kind kind) {
  std::string cursor;
  if (auto raw = exchange->parameter("cursor")) {
    auto text = json::decode_string(*raw);
    if (!text || text->empty()) return exchange->fail(protocol::invalid_params_code, "params.cursor is none of ours");
    cursor = *std::move(text);
  }
  auto policy = server->policy();
  auto page = server->pages.page(server->catalogs->current(), policy, exchange->client().principal, kind, cursor,
                                 exchange->context().revision, exchange->context().server_info);
  if (page == nullptr) {
    return exchange->fail(protocol::invalid_params_code,
                          "params.cursor is none of ours; list again from the beginning");
  }
  exchange->finish_adapted(*page);
}

}  // namespace

std::span<const Method> all_methods() {
  return methods;
}

void handle(const std::shared_ptr<Server>& server, const ExchangePointer& exchange) {
  const std::string& name = exchange->message().method;
  const auto* method = std::ranges::find(methods, name, &Method::name);
  if (method == methods.end() || !(exchange->is_modern() ? method->is_modern : method->is_legacy)) {
    return exchange->fail(protocol::method_not_found_code, "Method not found: " + name, {}, 404);
  }
  if (server->is_closing()) {
    return exchange->fail(protocol::internal_error_code, "the gateway is stopping and takes no new requests", {}, 503);
  }
  method->run(server, exchange);
}

void list_tools(const std::shared_ptr<Server>& server, const ExchangePointer& exchange) {
  list(server, exchange, Kind::tools);
}

void list_prompts(const std::shared_ptr<Server>& server, const ExchangePointer& exchange) {
  list(server, exchange, Kind::prompts);
}

void list_resources(const std::shared_ptr<Server>& server, const ExchangePointer& exchange) {
  list(server, exchange, Kind::resources);
}

void list_templates(const std::shared_ptr<Server>& server, const ExchangePointer& exchange) {
  list(server, exchange, Kind::templates);
}

void ping(const std::shared_ptr<Server>&, const ExchangePointer& exchange) {
  exchange->finish_adapted("{}");
}

void set_log_level(const std::shared_ptr<Server>&, const ExchangePointer& exchange) {
  auto level = exchange->required_text("level");
  if (!level) return;
  if (!mcp::log_severity(*level)) {
    return exchange->fail(
        protocol::invalid_params_code,
        "params.level must be one of debug, info, notice, warning, error, critical, alert, emergency");
  }
  exchange->context().session->set_log_level(*std::move(level));
  exchange->finish_adapted("{}");
}

void subscribe(const std::shared_ptr<Server>& server, const ExchangePointer& exchange) {
  auto uri = exchange->required_text("uri");
  if (!uri) return;
  if (!server->subscriptions->has_resource(exchange->client().principal, *uri)) return exchange->fail_not_found(*uri);
  if (!server->subscriptions->watch(exchange->context().session->subscriber(), *uri)) {
    return exchange->fail(protocol::invalid_params_code,
                          "this resource cannot be subscribed to, or too many are: " + *uri);
  }
  exchange->finish_adapted("{}");
}

void unsubscribe(const std::shared_ptr<Server>& server, const ExchangePointer& exchange) {
  auto uri = exchange->required_text("uri");
  if (!uri) return;
  server->subscriptions->unwatch(exchange->context().session->subscriber(), *uri);
  exchange->finish_adapted("{}");
}

void discover(const std::shared_ptr<Server>&, const ExchangePointer& exchange) {
  std::string versions = "[";
  for (mcp::Revision revision : mcp::all_revisions()) {
    if (!mcp::is_modern(revision)) continue;
    if (versions.size() > 1) versions += ',';
    versions += json::encode_string(mcp::to_string(revision));
  }
  exchange->finish(json::ObjectText()
                       .raw("supportedVersions", versions + ']')
                       .raw("capabilities", Server::capabilities(exchange->context().revision))
                       .text("instructions", Server::instructions())
                       .take(),
                   {.time_to_live = discovery_time_to_live, .scope = mcp::CacheScope::shared});
}

}  // namespace hive::mcp_surface
