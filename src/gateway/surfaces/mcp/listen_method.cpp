#include "gateway/surfaces/mcp/methods.h"
#include "gateway/surfaces/mcp/server.h"
#include "protocol/agent_protocol.h"
#include "protocol/json_object.h"

namespace hive::mcp_surface {

namespace {

// What the client asks for; nullopt when that is malformed.
std::optional<Interest> parse_interest(std::string_view raw) {
  auto members = json::parse_object(raw, mcp::message_limits);
  if (!members) return std::nullopt;
  auto flag = [&](std::string_view key) {
    auto value = json::find(*members, key);
    return value && json::decode_boolean(*value) == true;
  };
  Interest interest{.tools = flag("toolsListChanged"),
                    .prompts = flag("promptsListChanged"),
                    .resources = flag("resourcesListChanged"),
                    .uris = {}};
  auto uris = json::find(*members, "resourceSubscriptions");
  if (!uris) return interest;
  auto elements = json::parse_array(*uris, mcp::message_limits);
  if (!elements) return std::nullopt;
  for (std::string_view element : *elements) {
    auto uri = json::decode_string(element);
    if (!uri) return std::nullopt;
    if (interest.uris.size() <= Subscriptions::max_uris) interest.uris.insert(*std::move(uri));
  }
  return interest;
}

std::string encode_interest(const Interest& interest, bool names_resources) {
  json::ObjectText object;
  if (interest.tools) object.boolean("toolsListChanged", true);
  if (interest.prompts) object.boolean("promptsListChanged", true);
  if (interest.resources) object.boolean("resourcesListChanged", true);
  if (names_resources) {
    object.texts("resourceSubscriptions", std::vector<std::string>(interest.uris.begin(), interest.uris.end()));
  }
  return object.take();
}

}  // namespace

void listen(const std::shared_ptr<Server>& server, const ExchangePointer& exchange) {
  auto raw = exchange->parameter("notifications");
  auto wanted = raw ? parse_interest(*raw) : std::nullopt;
  if (!wanted) {
    return exchange->fail(protocol::invalid_params_code,
                          "params.notifications must be an object of toolsListChanged, promptsListChanged, "
                          "resourcesListChanged and resourceSubscriptions");
  }
  const policy::Principal& principal = exchange->client().principal;
  Interest honoured = server->subscriptions->honoured(principal, *wanted);
  std::string tag =
      json::ObjectText().raw(std::string(mcp::meta_prefix) + "subscriptionId", exchange->message().id).take();
  std::string acknowledged = json::ObjectText()
                                 .raw("notifications", encode_interest(honoured, !wanted->uris.empty()))
                                 .raw("_meta", tag)
                                 .take();
  auto subscriber = std::make_shared<Subscriber>(
      principal, [weak = std::weak_ptr(exchange), tag](std::string_view method, std::string_view raw_params) {
        auto alive = weak.lock();
        if (alive == nullptr) return;
        std::string params = mcp::with_members(raw_params, std::vector<mcp::MemberChange>{{"_meta", tag}});
        alive->send(mcp::encode_notification(method, params));
      });
  // The subscription keeps the request alive, which nobody else does.
  subscriber->on_close = [exchange, tag] {
    exchange->worker().dispatch([exchange, tag] { exchange->finish(json::ObjectText().raw("_meta", tag).take()); });
  };
  exchange->on_over([weak = std::weak_ptr(server->subscriptions), subscriber] {
    if (auto alive = weak.lock()) alive->remove(subscriber);
  });
  // Before the acknowledgement, so that nothing that happens after it is missed; and what is heard meanwhile on other
  // threads is sent by this worker, later.
  if (!server->subscriptions->add(subscriber, std::move(honoured))) {
    return exchange->fail(protocol::internal_error_code, "too many subscriptions are open; end some of them", {}, 503);
  }
  exchange->send(mcp::encode_notification("notifications/subscriptions/acknowledged", acknowledged));
}

}  // namespace hive::mcp_surface
