#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "gateway/surfaces/mcp/exchange.h"

namespace hive::mcp_surface {

class Server;

/// One method of the protocol. Who may use it is not said here: whatever reaches an agent or an upstream goes through
/// the funnel, which asks for the role, and lists show what the caller's scope reaches.
struct Method {
  std::string_view name;
  bool is_legacy = false;
  bool is_modern = false;
  void (*run)(const std::shared_ptr<Server>&, const ExchangePointer&) = nullptr;
};
/// All but initialize, which belongs to the session.
std::span<const Method> all_methods();

/// Answers a request, now or later. On the exchange's worker.
void handle(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);

// One function a method, or a few that are alike; each answers its exchange exactly once.
void list_tools(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);
void list_prompts(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);
void list_resources(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);
void list_templates(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);
void call_tool(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);
void read_resource(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);
void get_prompt(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);
void complete(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);
void ping(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);
void set_log_level(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);
void subscribe(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);
void unsubscribe(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);
void discover(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);
void listen(const std::shared_ptr<Server>& server, const ExchangePointer& exchange);

/// The gateway's own tools; false when there is none of this name.
bool call_own_tool(const std::shared_ptr<Server>& server, const ExchangePointer& exchange, std::string_view name,
                   std::string_view raw_arguments);

/// The gateway's own tool that calls a tool of many agents.
void call_agents(const std::shared_ptr<Server>& server, const ExchangePointer& exchange,
                 std::string_view raw_arguments);

/// gateway__list_agents: the agents that the caller reaches, page by page.
void list_agents(const Server& server, Exchange& exchange, std::string_view raw_arguments);

/// Sends a call to an agent's tool through the funnel, with progress and cancellation. `done` runs on the exchange's
/// worker.
void call_agent(const std::shared_ptr<Server>& server, const ExchangePointer& exchange, std::string agent,
                std::string tool, std::string raw_arguments,
                std::move_only_function<void(const calls::CallResult&)> done);

/// What is known of an agent, as an object for models and people.
std::string agent_json(const Server& server, const fleet::AgentStatus& agent);

}  // namespace hive::mcp_surface
