#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "gateway/upstreams/announcer.h"
#include "gateway/upstreams/directory.h"
#include "gateway/upstreams/environment.h"
#include "gateway/upstreams/server.h"

/// Private to this room.
namespace hive::upstreams {

/// All servers, and what they offer together.
class Registry final : public Upstreams {
 public:
  Registry(const Dependencies& dependencies, ConnectionFactory connect, Tuning tuning, std::function<double()> random);
  ~Registry() override;

  void apply(const config::GatewayConfig& config) override;
  [[nodiscard]] std::vector<UpstreamStatus> statuses() const override;
  [[nodiscard]] std::shared_ptr<const Listing> listing() const override;
  [[nodiscard]] std::optional<Item> find_tool(std::string_view public_name) const override;
  [[nodiscard]] std::optional<Item> find_prompt(std::string_view public_name) const override;
  [[nodiscard]] std::optional<Item> find_resource(std::string_view uri) const override;
  [[nodiscard]] bool has(std::string_view upstream) const override;
  [[nodiscard]] std::vector<HeldBackTool> held_back() const override;
  void accept(std::string upstream, std::string tool, std::string sha256,
              std::move_only_function<void(Result<void>)> done) override;
  [[nodiscard]] std::shared_ptr<void> listen(Listener listener) override;
  [[nodiscard]] std::shared_ptr<void> watch_resource(std::string_view uri) override;
  void forget_caller(std::string_view key) override;
  void close() override;

 private:
  using Servers = std::map<std::string, std::shared_ptr<Server>, std::less<>>;

  /// What servers tell the registry through; it may be gone by then.
  struct Link {
    std::mutex mutex;
    Registry* registry = nullptr;  // guarded by mutex
  };

  std::uint64_t send(std::string_view upstream, Request request) override;
  void cancel(std::uint64_t ticket, std::string reason) override;

  void rebuild();
  [[nodiscard]] std::shared_ptr<const Directory> directory() const;
  [[nodiscard]] std::shared_ptr<Server> find(std::string_view upstream) const;
  [[nodiscard]] std::vector<std::shared_ptr<Server>> in_order() const;
  void stop(std::vector<std::shared_ptr<Server>> servers, bool wait);

  const std::shared_ptr<Link> link_ = std::make_shared<Link>();
  std::shared_ptr<Environment> environment_;
  std::shared_ptr<Announcer> announcer_;

  std::mutex apply_mutex_;    ///< one configuration after the other; before mutex_
  std::mutex rebuild_mutex_;  ///< directories replace each other in the order in which they are made; before mutex_
  mutable std::shared_mutex mutex_;
  Servers servers_;                             // guarded by mutex_
  std::vector<std::string> order_;              // guarded by mutex_; of the configuration
  std::shared_ptr<const Directory> directory_;  // guarded by mutex_
  bool is_closed_ = false;                      // guarded by mutex_
  std::uint64_t next_id_ = 1;                   // guarded by apply_mutex_
  std::atomic<std::uint64_t> next_ticket_ = 1;
};

}  // namespace hive::upstreams
