#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "gateway/surfaces/mcp/catalog.h"
#include "gateway/surfaces/mcp/catalog_pages.h"
#include "gateway/surfaces/mcp/held_calls.h"
#include "gateway/surfaces/mcp/session_events.h"
#include "gateway/surfaces/mcp/subscriptions.h"

namespace hive::mcp_surface {

/// What all requests share. Thread-safe.
class Server : public std::enable_shared_from_this<Server> {
 public:
  Server(Dependencies given, std::shared_ptr<const config::GatewayConfig> config);
  ~Server();
  /// Begins to follow what changes. Once.
  void start();
  void apply(std::shared_ptr<const config::GatewayConfig> config);
  /// Refuses requests from now on, and ends what only waits.
  void close();

  [[nodiscard]] std::shared_ptr<const policy::Policy> policy() const { return dependencies.funnel.policy(); }
  [[nodiscard]] std::shared_ptr<const config::GatewayConfig> config() const;
  [[nodiscard]] bool is_closing() const { return is_closing_; }
  /// Whether an upstream keeps no sessions, as far as that is known.
  [[nodiscard]] bool speaks_modern(std::string_view upstream) const;
  /// The raw capabilities object for a client of a revision.
  [[nodiscard]] static std::string capabilities(mcp::Revision revision);
  [[nodiscard]] static std::string_view instructions();
  /// The raw serverInfo of modern answers; lives as long as the program.
  [[nodiscard]] static std::string_view server_info();

  /// Counts a session of an identity; false when there are too many.
  bool admit_session(const std::string& identity);
  void release_session(const std::string& identity);

  const Dependencies dependencies;
  const std::shared_ptr<Catalogs> catalogs;
  CatalogPages pages;
  HeldCalls held;
  SessionEvents session_events;
  const std::shared_ptr<Subscriptions> subscriptions;

 private:
  static constexpr std::size_t max_sessions = 4096;
  static constexpr std::size_t max_sessions_per_identity = 64;

  void schedule_sweep();

  std::atomic<bool> is_closing_ = false;
  net::Worker& worker_;
  net::Timer timer_;  // on worker_
  std::shared_ptr<void> upstream_listener_;
  mutable std::mutex mutex_;
  std::shared_ptr<const config::GatewayConfig> config_;  // guarded by mutex_
  std::map<std::string, std::size_t> sessions_;          // by identity; guarded by mutex_
  std::size_t session_count_ = 0;                        // guarded by mutex_
};

}  // namespace hive::mcp_surface
