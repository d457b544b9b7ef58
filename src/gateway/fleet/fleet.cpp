#include "gateway/fleet/fleet.h"

#include <algorithm>
#include <atomic>
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

// Who connects again and again while another one does the same is told from who merely lost a connection.
constexpr std::chrono::seconds contest_window{60};
constexpr std::size_t contest_limit = 5;
// A session that is replaced may keep running calls, but nobody may collect sessions by replacing them.
constexpr std::size_t max_draining = 4;

constexpr std::string_view replaced_reason = "replaced by a newer connection";

class FleetImpl final : public Fleet {
 public:
  FleetImpl(const Clock& clock, Options options, Events events)
      : clock_(clock), options_(options), events_(std::move(events)), tool_lists_(options.max_tools_per_agent) {}

  ~FleetImpl() override { close("the gateway stops"); }

  void add(std::shared_ptr<net::ssh::LineChannel> channel) override {
    std::shared_ptr<AgentLink> link = make_link(std::move(channel));
    // Before it displaces anybody.
    if (!admit(*link)) return;
    std::shared_ptr<AgentLink> replaced;
    std::shared_ptr<AgentLink> too_old;
    std::string contest;
    {
      std::unique_lock lock(mutex_);
      if (closing_) {
        lock.unlock();
        return link->close("the gateway stops");
      }
      Sessions& sessions = sessions_[link->id()];
      replaced = std::exchange(sessions.current, link);
      if (replaced != nullptr) {
        sessions.draining.push_back(replaced);
        if (sessions.draining.size() > max_draining) too_old = sessions.draining.front();
        contest = count_replacement(sessions, *replaced, *link);
      }
      offline_.erase(link->id());
    }
    if (replaced != nullptr) {
      log::warning("a newer connection of an agent replaces the old one",
                   {{"agent", link->id()}, {"old", replaced->peer().address}, {"new", link->peer().address}});
      replaced->worker().dispatch([replaced] { replaced->drain(replaced_reason); });
    }
    if (too_old != nullptr) close_link(too_old, replaced_reason);
    if (!contest.empty() && events_.contested) events_.contested(link->id(), contest);
    if (events_.online) events_.online(link->id(), link->peer());
    std::uint64_t ticket = next_ticket_.fetch_add(AgentLink::own_tickets, std::memory_order_relaxed);
    link->worker().dispatch([link, ticket] { link->start(ticket); });
    // Who revokes a key looks for its sessions afterwards: either it has found this one, or the key is gone for us.
    (void)admit(*link);
  }

  [[nodiscard]] std::vector<AgentStatus> snapshot() const override {
    std::vector<AgentStatus> agents;
    {
      std::shared_lock lock(mutex_);
      agents.reserve(sessions_.size() + offline_.size());
      for (const auto& [id, sessions] : sessions_)
        if (sessions.current != nullptr) agents.push_back(status_of(sessions));
      for (const auto& [id, status] : offline_)
        agents.push_back(status);
    }
    std::ranges::sort(agents, {}, &AgentStatus::id);
    return agents;
  }

  [[nodiscard]] std::optional<AgentStatus> find(std::string_view agent) const override {
    std::shared_lock lock(mutex_);
    if (auto found = sessions_.find(agent); found != sessions_.end() && found->second.current != nullptr) {
      return status_of(found->second);
    }
    auto found = offline_.find(agent);
    return found == offline_.end() ? std::nullopt : std::optional(found->second);
  }

  [[nodiscard]] std::vector<AgentTool> tools() const override {
    std::vector<std::shared_ptr<AgentLink>> links;
    {
      std::shared_lock lock(mutex_);
      links.reserve(sessions_.size());
      for (const auto& [id, sessions] : sessions_)
        if (sessions.current != nullptr) links.push_back(sessions.current);
    }
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
    for (const auto& link : links_of(agent))
      close_link(link, reason);
  }

  std::size_t disconnect_unless(const std::function<bool(const net::ssh::Peer& peer)>& may_stay,
                                std::string_view reason) override {
    std::size_t count = 0;
    for (const auto& link : all_links()) {
      if (may_stay(link->peer())) continue;
      close_link(link, reason);
      ++count;
    }
    return count;
  }

  void close(std::string_view reason) override {
    {
      std::unique_lock lock(mutex_);
      closing_ = true;
    }
    for (const auto& link : all_links())
      close_link(link, reason);
  }

 private:
  /// The connections of one id, and how often they replaced each other.
  struct Sessions {
    std::shared_ptr<AgentLink> current;  // null: offline, but some are still draining
    std::vector<std::shared_ptr<AgentLink>> draining;
    std::vector<SteadyTime> replacements;  // by another address, in the window
    std::optional<SteadyTime> contest_told;
  };

  std::shared_ptr<AgentLink> make_link(std::shared_ptr<net::ssh::LineChannel> channel) {
    std::string id = channel->peer().user;
    AgentLink::Owner owner;
    owner.closed = [this](const std::shared_ptr<AgentLink>& closed, const std::string& reason) {
      on_closed(closed, reason);
    };
    owner.moved = [this, id](std::uint64_t ticket, AgentRequest request) { send_as(ticket, id, std::move(request)); };
    owner.moved_cancel = [this, id](std::uint64_t ticket, std::string_view reason) {
      if (auto link = find_link(id)) post_cancel(link, ticket, std::string(reason));
    };
    return std::make_shared<AgentLink>(std::move(channel), clock_, options_, tool_lists_, std::move(owner));
  }

  bool admit(AgentLink& link) {
    if (!events_.admit) return true;
    Result<void> admitted = events_.admit(link.peer());
    if (admitted) return true;
    log::warning("an agent is not admitted any more", {{"agent", link.id()}, {"reason", admitted.error().message}});
    close_link(link.shared_from_this(), "the key is not admitted any more");
    return false;
  }

  /// What is to be told when an id is contested; "" if it is not, or was told a moment ago.
  std::string count_replacement(Sessions& sessions, const AgentLink& old, const AgentLink& newer) const {
    if (old.peer().address == newer.peer().address) return {};
    SteadyTime now = clock_.steady_now();
    std::erase_if(sessions.replacements, [&](SteadyTime time) { return now - time >= contest_window; });
    sessions.replacements.push_back(now);
    if (sessions.replacements.size() <= contest_limit) return {};
    std::size_t count = sessions.replacements.size();
    // Enough to stay above the limit; more need not be remembered.
    if (count > 2 * contest_limit) sessions.replacements.erase(sessions.replacements.begin());
    if (sessions.contest_told && now - *sessions.contest_told < contest_window) return {};
    sessions.contest_told = now;
    return fmt::format("replaced {} times within a minute, lastly {} by {}: is one key used on two machines?", count,
                       old.peer().address, newer.peer().address);
  }

  static void close_link(const std::shared_ptr<AgentLink>& link, std::string_view reason) {
    link->worker().dispatch([link, reason = std::string(reason)] { link->close(reason); });
  }

  std::uint64_t send(std::string_view agent, AgentRequest request) override {
    std::uint64_t ticket = next_ticket_.fetch_add(1, std::memory_order_relaxed);
    send_as(ticket, agent, std::move(request));
    return ticket;
  }

  void send_as(std::uint64_t ticket, std::string_view agent, AgentRequest request) {
    auto link = find_link(agent);
    if (link == nullptr) return request.done(offline_reply(agent));
    net::Worker& worker = link->worker();
    worker.dispatch([link = std::move(link), ticket, request = std::move(request)]() mutable {
      link->send(ticket, std::move(request));
    });
  }

  void cancel(std::string_view agent, std::uint64_t ticket, std::string reason) override {
    for (const auto& link : links_of(agent))
      post_cancel(link, ticket, reason);
  }

  static void post_cancel(const std::shared_ptr<AgentLink>& link, std::uint64_t ticket, std::string reason) {
    // Posted, also on the same worker: the request itself may still be in the queue.
    link->worker().post([link, ticket, reason = std::move(reason)] { link->cancel(ticket, reason); });
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
    auto found = sessions_.find(agent);
    return found == sessions_.end() ? nullptr : found->second.current;
  }

  static void append_links(const Sessions& sessions, std::vector<std::shared_ptr<AgentLink>>& links) {
    if (sessions.current != nullptr) links.push_back(sessions.current);
    links.insert(links.end(), sessions.draining.begin(), sessions.draining.end());
  }

  [[nodiscard]] std::vector<std::shared_ptr<AgentLink>> links_of(std::string_view agent) const {
    std::shared_lock lock(mutex_);
    std::vector<std::shared_ptr<AgentLink>> links;
    if (auto found = sessions_.find(agent); found != sessions_.end()) append_links(found->second, links);
    return links;
  }

  [[nodiscard]] std::vector<std::shared_ptr<AgentLink>> all_links() const {
    std::shared_lock lock(mutex_);
    std::vector<std::shared_ptr<AgentLink>> links;
    links.reserve(sessions_.size());
    for (const auto& [id, sessions] : sessions_)
      append_links(sessions, links);
    return links;
  }

  static AgentStatus status_of(const Sessions& sessions) {
    AgentStatus status = sessions.current->status();
    for (const auto& link : sessions.draining) {
      ++status.draining_sessions;
      status.calls_in_flight += link->status().calls_in_flight;
    }
    return status;
  }

  void on_closed(const std::shared_ptr<AgentLink>& link, const std::string& reason) {
    AgentStatus last = link->status();
    last.online = false;
    {
      std::unique_lock lock(mutex_);
      auto found = sessions_.find(link->id());
      if (found == sessions_.end()) return;
      Sessions& sessions = found->second;
      if (sessions.current != link) {
        // A newer connection has taken the place: whether the id is online does not depend on this one.
        std::erase(sessions.draining, link);
        if (sessions.current == nullptr && sessions.draining.empty()) sessions_.erase(found);
        return;
      }
      sessions.current = nullptr;
      if (sessions.draining.empty()) sessions_.erase(found);
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
  bool closing_ = false;                                                             // guarded by mutex_
  std::unordered_map<std::string, Sessions, StringHash, std::equal_to<>> sessions_;  // guarded by mutex_
  std::map<std::string, AgentStatus, std::less<>> offline_;                          // last known; guarded by mutex_
};

}  // namespace

std::unique_ptr<Fleet> Fleet::create(const Clock& clock, Options options, Events events) {
  return std::make_unique<FleetImpl>(clock, options, std::move(events));
}

}  // namespace hive::fleet
