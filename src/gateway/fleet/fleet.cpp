#include "gateway/fleet/fleet.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "base/log.h"
#include "gateway/fleet/agent_link.h"

namespace hive::fleet {

namespace {

// Lets a map of strings be searched by views.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

class FleetImpl final : public Fleet {
 public:
  FleetImpl(const Clock& clock, Options options, Events events)
      : clock_(clock), options_(options), events_(std::move(events)), tool_lists_(options.max_tools_per_agent) {}

  ~FleetImpl() override { close("the gateway stops"); }

  void add(std::shared_ptr<net::ssh::LineChannel> channel) override {
    auto link =
        std::make_shared<AgentLink>(std::move(channel), clock_, options_, tool_lists_,
                                    AgentLink::Owner{[this](const std::shared_ptr<AgentLink>& closed,
                                                            const std::string& reason) { on_closed(closed, reason); }});
    std::shared_ptr<AgentLink> replaced;
    {
      std::unique_lock lock(mutex_);
      if (closing_) {
        lock.unlock();
        return link->close("the gateway stops");
      }
      auto& slot = links_[link->id()];
      replaced = std::exchange(slot, link);
      offline_.erase(link->id());
    }
    if (replaced != nullptr) {
      log::warning("a newer connection of an agent replaces the old one",
                   {{"agent", link->id()}, {"old", replaced->peer().address}, {"new", link->peer().address}});
      replaced->worker().dispatch([replaced] { replaced->close("replaced by a newer connection"); });
    }
    if (events_.online) events_.online(link->id(), link->peer());
    std::uint64_t ticket = next_ticket_.fetch_add(AgentLink::own_tickets, std::memory_order_relaxed);
    link->worker().dispatch([link, ticket] { link->start(ticket); });
  }

  [[nodiscard]] std::vector<AgentStatus> snapshot() const override {
    std::vector<AgentStatus> agents;
    for (const auto& link : online_links())
      agents.push_back(link->status());
    {
      std::shared_lock lock(mutex_);
      for (const auto& [id, status] : offline_)
        agents.push_back(status);
    }
    std::ranges::sort(agents, {}, &AgentStatus::id);
    return agents;
  }

  [[nodiscard]] std::optional<AgentStatus> find(std::string_view agent) const override {
    if (auto link = find_link(agent)) return link->status();
    std::shared_lock lock(mutex_);
    auto found = offline_.find(agent);
    return found == offline_.end() ? std::nullopt : std::optional(found->second);
  }

  [[nodiscard]] std::vector<AgentTool> tools() const override {
    auto links = online_links();
    std::ranges::sort(links, {}, [](const auto& link) -> const std::string& { return link->id(); });
    std::vector<AgentTool> tools;
    for (const auto& link : links) {
      auto of_agent = link->tools();
      for (const Tool& tool : *of_agent)
        tools.push_back({link->id(), tool.name, tool.description, tool.raw});
    }
    return tools;
  }

  [[nodiscard]] bool has_tool(std::string_view agent, std::string_view tool) const override {
    auto link = find_link(agent);
    if (link == nullptr) return false;
    auto tools = link->tools();
    return std::ranges::find(*tools, tool, &Tool::name) != tools->end();
  }

  void disconnect(std::string_view agent, std::string_view reason) override {
    if (auto link = find_link(agent)) {
      link->worker().dispatch([link, reason = std::string(reason)] { link->close(reason); });
    }
  }

  void close(std::string_view reason) override {
    {
      std::unique_lock lock(mutex_);
      closing_ = true;
    }
    for (const auto& link : online_links()) {
      link->worker().dispatch([link, reason = std::string(reason)] { link->close(reason); });
    }
  }

 private:
  std::uint64_t send(std::string_view agent, AgentRequest request) override {
    std::uint64_t ticket = next_ticket_.fetch_add(1, std::memory_order_relaxed);
    auto link = find_link(agent);
    if (link == nullptr) {
      request.done(offline_reply(agent));
      return ticket;
    }
    net::Worker& worker = link->worker();
    worker.dispatch([link = std::move(link), ticket, request = std::move(request)]() mutable {
      link->send(ticket, std::move(request));
    });
    return ticket;
  }

  void cancel(std::string_view agent, std::uint64_t ticket, std::string reason) override {
    if (auto link = find_link(agent)) {
      // Posted, also on the same worker: the request itself may still be in the queue.
      link->worker().post([link, ticket, reason = std::move(reason)] { link->cancel(ticket, reason); });
    }
  }

  [[nodiscard]] AgentReply offline_reply(std::string_view agent) const {
    std::shared_lock lock(mutex_);
    auto known = offline_.find(agent);
    if (known == offline_.end()) {
      return {ReplyKind::not_sent, {}, "agent_unknown", fmt::format("no agent {} is or was connected", agent)};
    }
    return {ReplyKind::not_sent,
            {},
            "agent_offline",
            fmt::format("agent {} is offline since {}", agent, format_rfc3339(known->second.last_seen))};
  }

  [[nodiscard]] std::shared_ptr<AgentLink> find_link(std::string_view agent) const {
    std::shared_lock lock(mutex_);
    auto found = links_.find(agent);
    return found == links_.end() ? nullptr : found->second;
  }

  [[nodiscard]] std::vector<std::shared_ptr<AgentLink>> online_links() const {
    std::shared_lock lock(mutex_);
    std::vector<std::shared_ptr<AgentLink>> links;
    links.reserve(links_.size());
    for (const auto& [id, link] : links_)
      links.push_back(link);
    return links;
  }

  void on_closed(const std::shared_ptr<AgentLink>& link, const std::string& reason) {
    AgentStatus last = link->status();
    last.online = false;
    {
      std::unique_lock lock(mutex_);
      auto found = links_.find(link->id());
      // A newer connection has taken the place: the id is still online.
      if (found == links_.end() || found->second != link) return;
      links_.erase(found);
      offline_[link->id()] = std::move(last);
    }
    if (events_.offline) events_.offline(link->id(), reason);
  }

  const Clock& clock_;
  const Options options_;
  const Events events_;
  ToolListCache tool_lists_;
  std::atomic<std::uint64_t> next_ticket_ = 1;
  mutable std::shared_mutex mutex_;
  bool closing_ = false;                                                                            // guarded by mutex_
  std::unordered_map<std::string, std::shared_ptr<AgentLink>, StringHash, std::equal_to<>> links_;  // guarded by mutex_
  std::map<std::string, AgentStatus, std::less<>> offline_;  // last known; guarded by mutex_
};

}  // namespace

std::unique_ptr<Fleet> Fleet::create(const Clock& clock, Options options, Events events) {
  return std::make_unique<FleetImpl>(clock, options, std::move(events));
}

}  // namespace hive::fleet
