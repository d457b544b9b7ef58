#include "gateway/fleet/fleet.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "base/log.h"
#include "gateway/fleet/agent_link.h"
#include "gateway/fleet/roster.h"

namespace hive::fleet {

namespace {

// Lets a map of strings be searched by views.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// A session that is replaced may keep running calls, but nobody may collect sessions by replacing them.
constexpr std::size_t max_draining = 4;

constexpr std::string_view replaced_reason = "replaced by a newer connection";

class FleetImpl final : public Fleet {
 public:
  FleetImpl(const Clock& clock, Options options, Events events, Roster* roster)
      : clock_(clock),
        options_(options),
        events_(std::move(events)),
        own_roster_(roster == nullptr ? std::make_unique<Roster>(clock) : nullptr),
        roster_(roster == nullptr ? *own_roster_ : *roster),
        tool_lists_(options.max_tools_per_agent),
        waiting_(options.waiting) {}

  ~FleetImpl() override { close("the gateway stops"); }

  void add(std::shared_ptr<net::ssh::LineChannel> channel) override {
    std::shared_ptr<AgentLink> link = make_link(std::move(channel));
    // Before it displaces anybody.
    if (!admit(*link)) return;
    std::shared_ptr<AgentLink> replaced;
    std::shared_ptr<AgentLink> too_old;
    Roster::Arrival arrival;
    {
      std::unique_lock lock(mutex_);
      if (closing_) {
        lock.unlock();
        return link->close("the gateway stops");
      }
      Sessions& sessions = sessions_[link->id()];
      arrival = roster_.connected(link->peer(), sessions.current != nullptr);
      link->use(arrival.activity);
      sessions.activity = arrival.activity;
      replaced = std::exchange(sessions.current, link);
      if (replaced != nullptr) {
        sessions.draining.push_back(replaced);
        if (sessions.draining.size() > max_draining) too_old = sessions.draining.front();
      }
      sessions.count_draining();
    }
    if (replaced != nullptr) {
      log::warning("a newer connection of an agent replaces the old one",
                   {{"agent", link->id()}, {"old", replaced->peer().address}, {"new", link->peer().address}});
      replaced->worker().dispatch([replaced] { replaced->drain(replaced_reason); });
    }
    if (too_old != nullptr) close_link(too_old, replaced_reason);
    if (arrival.news) {
      const auto& tell = arrival.contested ? events_.contested : events_.flapping;
      if (tell) tell(link->id(), *arrival.news);
    }
    if (events_.online) events_.online(link->id(), link->peer());
    std::uint64_t ticket = next_ticket_.fetch_add(AgentLink::own_tickets, std::memory_order_relaxed);
    link->worker().dispatch([link, ticket] { link->start(ticket); });
    // Who revokes a key looks for its sessions afterwards: either it has found this one, or the key is gone for us.
    if (admit(*link)) waiting_.arrived(link->id());
  }

  [[nodiscard]] SnapshotPointer snapshot() const override { return roster_.snapshot(); }

  [[nodiscard]] AgentPointer find(std::string_view agent) const override { return roster_.find(agent); }

  std::uint64_t wait_online(std::string_view agent, net::Worker& worker, std::chrono::milliseconds limit,
                            WaitingRoom::Done done) override {
    std::uint64_t ticket = waiting_.wait(agent, worker, limit, std::move(done));
    // Asked afterwards, so that nobody misses who comes in between.
    if (ticket != 0 && find_link(agent) != nullptr) waiting_.arrived(agent);
    return ticket;
  }

  void stop_waiting(std::uint64_t ticket) override { waiting_.stop(ticket); }

  void set_enrolled(std::span<const std::string> agents) override { roster_.set_enrolled(agents); }

  void forget(std::string_view agent) override { roster_.forget(agent); }

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
    waiting_.close();
    for (const auto& link : all_links())
      close_link(link, reason);
  }

 private:
  /// The connections of one id.
  struct Sessions {
    std::shared_ptr<AgentLink> current;  // null: offline, but some are still draining
    std::vector<std::shared_ptr<AgentLink>> draining;
    std::shared_ptr<AgentActivity> activity;

    void count_draining() const {
      activity->draining_sessions.store(static_cast<std::uint32_t>(draining.size()), std::memory_order_relaxed);
    }
  };

  std::shared_ptr<AgentLink> make_link(std::shared_ptr<net::ssh::LineChannel> channel) {
    std::string id = channel->peer().user;
    AgentLink::Owner owner;
    owner.closed = [this](const std::shared_ptr<AgentLink>& closed, const std::string& reason) {
      on_closed(closed, reason);
    };
    owner.described = [this](const AgentLink& link, AgentStatus description) {
      if (is_current(link)) roster_.described(link.id(), std::move(description));
    };
    owner.listed = [this](const AgentLink& link, std::shared_ptr<const ToolList> tools) {
      if (!is_current(link)) return;
      roster_.listed(link.id(), std::move(tools));
      if (events_.listed) events_.listed(link.id());
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
    AgentPointer known = roster_.find(agent);
    if (known == nullptr) {
      return {ReplyKind::not_sent, {}, "agent_unknown", fmt::format("no agent {} is or was connected", agent)};
    }
    return {ReplyKind::not_sent, {}, "agent_offline", offline_text(*known)};
  }

  [[nodiscard]] bool is_current(const AgentLink& link) const {
    std::shared_lock lock(mutex_);
    auto found = sessions_.find(link.id());
    return found != sessions_.end() && found->second.current.get() == &link;
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

  void on_closed(const std::shared_ptr<AgentLink>& link, const std::string& reason) {
    {
      std::unique_lock lock(mutex_);
      auto found = sessions_.find(link->id());
      if (found == sessions_.end()) return;
      Sessions& sessions = found->second;
      bool was_current = sessions.current == link;
      if (was_current) {
        sessions.current = nullptr;
        roster_.disconnected(link->id(), reason);
      } else {
        // A newer connection has taken the place: whether the id is online does not depend on this one.
        std::erase(sessions.draining, link);
        sessions.count_draining();
      }
      if (sessions.current == nullptr && sessions.draining.empty()) sessions_.erase(found);
      if (!was_current) return;
    }
    if (events_.offline) events_.offline(link->id(), reason);
  }

  const Clock& clock_;
  const Options options_;
  const Events events_;
  const std::unique_ptr<Roster> own_roster_;
  Roster& roster_;
  ToolListCache tool_lists_;
  WaitingRoom waiting_;
  std::atomic<std::uint64_t> next_ticket_ = 1;
  mutable std::shared_mutex mutex_;
  bool closing_ = false;                                                             // guarded by mutex_
  std::unordered_map<std::string, Sessions, StringHash, std::equal_to<>> sessions_;  // guarded by mutex_
};

}  // namespace

std::unique_ptr<Fleet> Fleet::create(const Clock& clock, Options options, Events events, Roster* roster) {
  return std::make_unique<FleetImpl>(clock, options, std::move(events), roster);
}

}  // namespace hive::fleet
