#include "gateway/surfaces/mcp/subscriptions.h"

#include <algorithm>

#include "gateway/surfaces/mcp/own_entries.h"
#include "protocol/json_object.h"

namespace hive::mcp_surface {

namespace {

constexpr std::chrono::milliseconds gather_window{250};
// An agent that has just come says a moment later which tools it has, and nobody tells of that.
constexpr std::chrono::milliseconds look_again_after{500};
constexpr std::chrono::milliseconds look_again_for = std::chrono::minutes(1);
constexpr std::size_t max_gathered_uris = 4096;

constexpr std::array<std::string_view, 3> list_notifications = {
    "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"};

bool is_own(std::string_view uri) {
  return uri == fleet_uri || (uri.starts_with(agents_uri) && !uri.ends_with(metrics_suffix));
}

void mix(std::size_t& digest, const fleet::AgentStatus& agent) {
  for (std::size_t value : {std::hash<std::string>()(agent.id), static_cast<std::size_t>(agent.online),
                            static_cast<std::size_t>(agent.connected_at.time_since_epoch().count())})
    digest ^= value + 0x9e3779b97f4a7c15U + (digest << 6U) + (digest >> 2U);
}

}  // namespace

Subscriptions::Subscriptions(Dependencies dependencies, std::shared_ptr<Catalogs> catalogs)
    : dependencies_(std::move(dependencies)),
      catalogs_(std::move(catalogs)),
      worker_(dependencies_.runtime.worker(0)) {}

Subscriptions::~Subscriptions() {
  // A timer may only be destroyed where it runs.
  worker_.post([timer = std::make_shared<net::Timer>(std::move(timer_))] { timer->cancel(); });
}

bool Subscriptions::has_resource(const policy::Principal& principal, std::string_view uri) const {
  auto policy = dependencies_.funnel.policy();
  if (uri == fleet_uri) return true;
  if (is_own(uri)) {
    std::string_view agent = uri.substr(agents_uri.size());
    return policy->reaches(principal, agent) && dependencies_.fleet.find(agent) != nullptr;
  }
  if (dependencies_.upstreams == nullptr) return false;
  auto item = dependencies_.upstreams->find_resource(uri);
  return item && policy->reaches(principal, item->upstream, resource_gate);
}

Interest Subscriptions::honoured(const policy::Principal& principal, const Interest& wanted) const {
  Interest honoured{.tools = wanted.tools, .prompts = wanted.prompts, .resources = wanted.resources, .uris = {}};
  for (const std::string& uri : wanted.uris) {
    if (honoured.uris.size() >= max_uris) break;
    if (!has_resource(principal, uri)) continue;
    // Asked for a moment, to know whether it can be; the subscription itself asks again.
    if (!is_own(uri) && dependencies_.upstreams->watch_resource(uri) == nullptr) continue;
    honoured.uris.insert(uri);
  }
  return honoured;
}

bool Subscriptions::add(const std::shared_ptr<Subscriber>& subscriber, Interest interest) {
  std::set<std::string> uris = std::exchange(interest.uris, {});
  subscriber->seen_ = digests_for(*catalogs_->current(), *dependencies_.funnel.policy(), subscriber->principal);
  {
    std::lock_guard lock(mutex_);
    const std::string& identity = subscriber->principal.identity();
    auto of_identity =
        std::ranges::count_if(subscribers_, [&](const auto& each) { return each->principal.identity() == identity; });
    if (is_closed_ || subscribers_.size() >= max_subscribers ||
        static_cast<std::size_t>(of_identity) >= max_subscribers_per_identity) {
      return false;
    }
    subscriber->interest_ = std::move(interest);
    subscribers_.insert(subscriber);
  }
  for (const std::string& uri : uris)
    (void)watch(subscriber, uri);
  return true;
}

void Subscriptions::remove(const std::shared_ptr<Subscriber>& subscriber) {
  std::map<std::string, std::shared_ptr<void>, std::less<>> watches;
  std::lock_guard lock(mutex_);
  subscribers_.erase(subscriber);
  // Dropped after the lock: whoever is told of it may call back.
  watches.swap(subscriber->watches_);
}

bool Subscriptions::watch(const std::shared_ptr<Subscriber>& subscriber, const std::string& uri) {
  if (!is_own(uri)) return watch_upstream(subscriber, uri);
  std::size_t digest = digest_of_own(subscriber->principal, uri);
  std::lock_guard lock(mutex_);
  if (subscriber->interest_.uris.size() >= max_uris) return false;
  subscriber->interest_.uris.insert(uri);
  subscriber->seen_resources_[uri] = digest;
  return true;
}

bool Subscriptions::watch_upstream(const std::shared_ptr<Subscriber>& subscriber, const std::string& uri) {
  std::shared_ptr<void> handle =
      dependencies_.upstreams == nullptr ? nullptr : dependencies_.upstreams->watch_resource(uri);
  if (handle == nullptr) return false;
  std::shared_ptr<void> previous;
  std::lock_guard lock(mutex_);
  if (!subscribers_.contains(subscriber) || subscriber->interest_.uris.size() >= max_uris) return false;
  subscriber->interest_.uris.insert(uri);
  previous = std::exchange(subscriber->watches_[uri], std::move(handle));
  return true;
}

void Subscriptions::unwatch(const std::shared_ptr<Subscriber>& subscriber, std::string_view uri) {
  std::shared_ptr<void> dropped;
  std::lock_guard lock(mutex_);
  subscriber->interest_.uris.erase(std::string(uri));
  if (auto found = subscriber->seen_resources_.find(uri); found != subscriber->seen_resources_.end()) {
    subscriber->seen_resources_.erase(found);
  }
  if (auto found = subscriber->watches_.find(uri); found != subscriber->watches_.end()) {
    dropped = std::move(found->second);
    subscriber->watches_.erase(found);
  }
}

void Subscriptions::fleet_changed() {
  gather();
}

void Subscriptions::upstream_changed(const upstreams::Change& change) {
  {
    std::lock_guard lock(mutex_);
    change_.tools |= change.tools;
    change_.prompts |= change.prompts;
    change_.resources |= change.resources;
    if (!change.updated_resource.empty() && updated_.size() < max_gathered_uris) {
      updated_.insert(change.updated_resource);
    }
  }
  gather();
}

void Subscriptions::gather() {
  {
    std::lock_guard lock(mutex_);
    if (is_gathering_ || is_closed_) return;
    is_gathering_ = true;
  }
  worker_.post([weak = weak_from_this()] {
    auto self = weak.lock();
    if (self == nullptr) return;
    self->looked_again_ = {};
    self->timer_ = self->worker_.schedule(gather_window, [weak] {
      if (auto alive = weak.lock()) alive->flush();
    });
  });
}

void Subscriptions::flush() {
  upstreams::Change change;
  std::set<std::string> updated;
  std::vector<std::shared_ptr<Subscriber>> subscribers;
  {
    std::lock_guard lock(mutex_);
    is_gathering_ = false;
    if (is_closed_) return;
    change = std::exchange(change_, {});
    updated.swap(updated_);
    subscribers.assign(subscribers_.begin(), subscribers_.end());
  }
  if (subscribers.empty()) return;
  auto catalog = catalogs_->current();
  auto policy = dependencies_.funnel.policy();
  std::map<std::string, Digests> by_scope;
  OwnDigests own_digests;
  for (const auto& subscriber : subscribers) {
    std::string key = scope_key(subscriber->principal);
    auto found = by_scope.find(key);
    if (found == by_scope.end()) {
      found = by_scope.emplace(key, digests_for(*catalog, *policy, subscriber->principal)).first;
    }
    tell_lists(subscriber, found->second, change);
    tell_resources(subscriber, key, updated, own_digests);
  }
  look_again_later(*catalog);
}

void Subscriptions::look_again_later(const Catalog& catalog) {
  if (catalog.is_complete || looked_again_ >= look_again_for) return;
  {
    std::lock_guard lock(mutex_);
    if (is_gathering_ || is_closed_) return;
  }
  looked_again_ += look_again_after;
  timer_ = worker_.schedule(look_again_after, [weak = weak_from_this()] {
    if (auto alive = weak.lock()) alive->flush();
  });
}

Subscriptions::Digests Subscriptions::digests_for(const Catalog& catalog, const policy::Policy& policy,
                                                  const policy::Principal& principal) const {
  Digests digests = {catalog.of(Kind::tools).digest_of_visible(policy, principal),
                     catalog.of(Kind::prompts).digest_of_visible(policy, principal),
                     catalog.of(Kind::resources).digest_of_visible(policy, principal)};
  digests[2] = digests[2] * 31 + catalog.of(Kind::templates).digest_of_visible(policy, principal);
  return digests;
}

std::size_t Subscriptions::digest_of_own(const policy::Principal& principal, std::string_view uri) const {
  auto policy = dependencies_.funnel.policy();
  std::size_t digest = 0;
  if (uri != fleet_uri) {
    std::string_view id = uri.substr(agents_uri.size());
    auto agent = dependencies_.fleet.find(id);
    if (agent && policy->reaches(principal, id)) mix(digest, *agent);
    return digest;
  }
  fleet::SnapshotPointer snapshot = dependencies_.fleet.snapshot();
  for (const fleet::AgentPointer& agent : snapshot->agents)
    if (policy->reaches(principal, agent->id)) mix(digest, *agent);
  return digest;
}

void Subscriptions::tell_lists(const std::shared_ptr<Subscriber>& subscriber, const Digests& now,
                               const upstreams::Change& forced) {
  Interest interest;
  {
    std::lock_guard lock(mutex_);
    interest = subscriber->interest_;
  }
  const std::array<bool, 3> wanted = {interest.tools, interest.prompts, interest.resources};
  const std::array<bool, 3> upstreams_say = {forced.tools, forced.prompts, forced.resources};
  // Without a scope everything is visible, so what an upstream announces may be passed on; with one, only what the
  // caller can see for itself.
  bool sees_all = subscriber->principal.scope() == nullptr;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    bool changed = subscriber->seen_[i] != now[i];
    subscriber->seen_[i] = now[i];
    if (wanted[i] && (changed || (sees_all && upstreams_say[i]))) subscriber->deliver(list_notifications[i], "{}");
  }
}

void Subscriptions::tell_resources(const std::shared_ptr<Subscriber>& subscriber, const std::string& scope,
                                   const std::set<std::string>& updated, OwnDigests& known) {
  std::set<std::string> uris;
  {
    std::lock_guard lock(mutex_);
    uris = subscriber->interest_.uris;
  }
  for (const std::string& uri : uris) {
    bool changed = false;
    if (is_own(uri)) {
      auto digest_of = known.find({scope, uri});
      if (digest_of == known.end()) {
        digest_of = known.emplace(std::pair(scope, uri), digest_of_own(subscriber->principal, uri)).first;
      }
      std::size_t digest = digest_of->second;
      std::lock_guard lock(mutex_);
      auto found = subscriber->seen_resources_.find(uri);
      changed = found != subscriber->seen_resources_.end() && std::exchange(found->second, digest) != digest;
    } else {
      // The scope may be another one by now.
      changed = updated.contains(uri) && has_resource(subscriber->principal, uri);
    }
    if (changed) subscriber->deliver("notifications/resources/updated", json::ObjectText().text("uri", uri).take());
  }
}

void Subscriptions::close() {
  std::set<std::shared_ptr<Subscriber>> subscribers;
  {
    std::lock_guard lock(mutex_);
    is_closed_ = true;
    subscribers.swap(subscribers_);
  }
  for (const auto& subscriber : subscribers)
    if (subscriber->on_close) subscriber->on_close();
}

}  // namespace hive::mcp_surface
