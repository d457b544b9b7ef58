#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/surfaces/mcp/catalog.h"

namespace hive::mcp_surface {

/// What somebody wants to hear of.
struct Interest {
  bool tools = false;
  bool prompts = false;
  bool resources = false;
  std::set<std::string> uris;
};

/// Somebody who hears of changes, as far as a credential reaches.
class Subscriber {
 public:
  Subscriber(policy::Principal subject, std::function<void(std::string_view method, std::string raw_params)> hear)
      : principal(std::move(subject)), deliver(std::move(hear)) {}

  const policy::Principal principal;
  /// Any thread; must not block.
  const std::function<void(std::string_view method, std::string raw_params)> deliver;
  /// Runs once when the gateway ends the subscription. Before add().
  std::function<void()> on_close;

 private:
  friend class Subscriptions;
  Interest interest_;                                                  // guarded by Subscriptions::mutex_
  std::array<std::size_t, 3> seen_{};                                  // digests of what is visible; on the worker
  std::map<std::string, std::shared_ptr<void>, std::less<>> watches_;  // at upstreams; guarded by mutex_
  std::map<std::string, std::size_t, std::less<>> seen_resources_;     // own resources; guarded by mutex_
};

/// Carries changes to those who want to hear of them: gathered over a short window, and nothing that lies outside of a
/// subscriber's filter or scope. Thread-safe.
class Subscriptions : public std::enable_shared_from_this<Subscriptions> {
 public:
  static constexpr std::size_t max_uris = 256;  // of one subscriber

  Subscriptions(Dependencies dependencies, std::shared_ptr<Catalogs> catalogs);
  ~Subscriptions();

  /// The part of `wanted` that can be honoured for this caller.
  [[nodiscard]] Interest honoured(const policy::Principal& principal, const Interest& wanted) const;
  /// Whether there is a resource under this URI that the caller may know of.
  [[nodiscard]] bool has_resource(const policy::Principal& principal, std::string_view uri) const;

  /// `interest` as honoured() gave it. false when there are too many, in all or for this identity.
  bool add(const std::shared_ptr<Subscriber>& subscriber, Interest interest);
  void remove(const std::shared_ptr<Subscriber>& subscriber);
  /// false: the resource cannot be watched, or too many are.
  bool watch(const std::shared_ptr<Subscriber>& subscriber, const std::string& uri);
  void unwatch(const std::shared_ptr<Subscriber>& subscriber, std::string_view uri);

  /// Agents came or went, or the rules have changed.
  void fleet_changed();
  void upstream_changed(const upstreams::Change& change);
  /// Ends every subscription.
  void close();

 private:
  static constexpr std::size_t max_subscribers = 8192;
  static constexpr std::size_t max_subscribers_per_identity = 128;

  using Digests = std::array<std::size_t, 3>;

  void gather();
  void flush();
  void look_again_later(const Catalog& catalog);
  [[nodiscard]] Digests digests_for(const Catalog& catalog, const policy::Policy& policy,
                                    const policy::Principal& principal) const;
  [[nodiscard]] std::size_t digest_of_own(const policy::Principal& principal, std::string_view uri) const;
  void tell_lists(const std::shared_ptr<Subscriber>& subscriber, const Digests& now, const upstreams::Change& forced);
  /// `known` keeps the digests of own resources by scope and URI: many watch the same.
  using OwnDigests = std::map<std::pair<std::string, std::string>, std::size_t>;
  void tell_resources(const std::shared_ptr<Subscriber>& subscriber, const std::string& scope,
                      const std::set<std::string>& updated, OwnDigests& known);
  [[nodiscard]] bool watch_upstream(const std::shared_ptr<Subscriber>& subscriber, const std::string& uri);

  const Dependencies dependencies_;
  const std::shared_ptr<Catalogs> catalogs_;
  net::Worker& worker_;
  net::Timer timer_;                          // on worker_
  std::chrono::milliseconds looked_again_{};  // since the last change; on worker_
  mutable std::mutex mutex_;
  bool is_gathering_ = false;                          // guarded by mutex_
  bool is_closed_ = false;                             // guarded by mutex_
  upstreams::Change change_;                           // gathered; guarded by mutex_
  std::set<std::string> updated_;                      // URIs; guarded by mutex_
  std::set<std::shared_ptr<Subscriber>> subscribers_;  // guarded by mutex_
};

}  // namespace hive::mcp_surface
