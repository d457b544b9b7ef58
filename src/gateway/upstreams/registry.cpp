#include "gateway/upstreams/registry.h"

#include <algorithm>
#include <condition_variable>
#include <latch>
#include <utility>

#include "base/log.h"
#include "base/strings.h"

namespace hive::upstreams {

namespace {

/// A ticket names its server, so that no table of tickets is needed: the server's id above, a number below.
constexpr unsigned number_bits = 40;

/// How long close() waits for a worker; one that hangs must not keep the gateway from ending.
constexpr std::chrono::seconds patience(5);

// Where a server stands in the file is no reason to start it anew.
bool is_same(config::UpstreamConfig left, const config::UpstreamConfig& right) {
  left.field = right.field;
  return left == right;
}

}  // namespace

Registry::Registry(const Dependencies& dependencies, ConnectionFactory connect, Tuning tuning,
                   std::function<double()> random)
    : announcer_(std::make_shared<Announcer>(dependencies.runtime.worker(0), tuning.announce)),
      directory_(std::make_shared<const Directory>(std::span<const Directory::Source>())) {
  link_->registry = this;
  auto changed = [link = link_, announcer = announcer_](const Change& change) {
    {
      std::lock_guard lock(link->mutex);
      if (link->registry == nullptr) return;
      if (change.updated_resource.empty()) link->registry->rebuild();
    }
    announcer->add(change);
  };
  environment_ = std::make_shared<Environment>(Environment{.runtime = dependencies.runtime,
                                                           .clock = dependencies.clock,
                                                           .database = dependencies.database,
                                                           .connect = std::move(connect),
                                                           .tuning = tuning,
                                                           .random = std::move(random),
                                                           .event = dependencies.event,
                                                           .changed = std::move(changed)});
}

Registry::~Registry() {
  close();
}

void Registry::apply(const config::GatewayConfig& config) {
  std::lock_guard one_at_a_time(apply_mutex_);
  std::vector<std::shared_ptr<Server>> begun;
  std::vector<std::shared_ptr<Server>> ended;
  {
    std::unique_lock lock(mutex_);
    if (is_closed_) return;
    Servers before = std::exchange(servers_, {});
    order_.clear();
    for (const config::UpstreamConfig& upstream : config.upstreams) {
      order_.push_back(upstream.name);
      auto running = before.find(upstream.name);
      if (running != before.end() && is_same(running->second->config(), upstream)) {
        running->second->set_call_timeout(config.call_timeout);
        servers_.insert(before.extract(running));
        continue;
      }
      auto server = std::make_shared<Server>(environment_, environment_->runtime.next_worker(), next_id_++, upstream,
                                             config.call_timeout);
      begun.push_back(server);
      servers_[upstream.name] = std::move(server);
    }
    for (auto& [name, server] : before)
      ended.push_back(std::move(server));
  }
  for (const std::shared_ptr<Server>& server : begun)
    server->start();
  for (const std::shared_ptr<Server>& server : ended)
    log::info("upstream server ended", {{"upstream", server->config().name}});
  bool is_changed = !ended.empty() || !begun.empty();
  stop(std::move(ended), false);
  rebuild();
  if (!is_changed) return;
  Change change;
  change.tools = change.prompts = change.resources = true;
  announcer_->add(change);
}

void Registry::stop(std::vector<std::shared_ptr<Server>> servers, bool wait) {
  if (!wait) {
    for (const std::shared_ptr<Server>& server : servers)
      server->stop({});
    return;
  }
  struct Count {
    std::mutex mutex;
    std::condition_variable is_done;
    std::size_t left = 0;
  };
  auto count = std::make_shared<Count>();
  auto one_less = [count] {
    std::lock_guard lock(count->mutex);
    --count->left;
    count->is_done.notify_all();
  };
  count->left = servers.size() + 1;
  for (std::shared_ptr<Server>& server : servers)
    std::exchange(server, nullptr)->stop(one_less);
  announcer_->stop(one_less);
  for (std::size_t k = 0; k < environment_->runtime.size(); ++k) {
    if (environment_->runtime.worker(k).runs_here()) return;  // it cannot wait for itself
  }
  std::unique_lock lock(count->mutex);
  count->is_done.wait_for(lock, patience, [&] { return count->left == 0; });
}

void Registry::close() {
  {
    std::lock_guard lock(link_->mutex);
    link_->registry = nullptr;
  }
  std::vector<std::shared_ptr<Server>> ended;
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(is_closed_, true)) return;
    for (auto& [name, server] : std::exchange(servers_, {}))
      ended.push_back(std::move(server));
    order_.clear();
  }
  stop(std::move(ended), true);
}

void Registry::rebuild() {
  std::lock_guard one_at_a_time(rebuild_mutex_);
  std::vector<Directory::Source> sources;
  for (const std::shared_ptr<Server>& server : in_order()) {
    sources.push_back({server->config().name, server->config().prefix, server->catalog()});
  }
  auto made = std::make_shared<const Directory>(sources);
  std::unique_lock lock(mutex_);
  directory_.swap(made);
}

std::shared_ptr<const Directory> Registry::directory() const {
  std::shared_lock lock(mutex_);
  return directory_;
}

std::shared_ptr<Server> Registry::find(std::string_view upstream) const {
  std::shared_lock lock(mutex_);
  auto entry = servers_.find(upstream);
  return entry == servers_.end() ? nullptr : entry->second;
}

std::vector<std::shared_ptr<Server>> Registry::in_order() const {
  std::shared_lock lock(mutex_);
  std::vector<std::shared_ptr<Server>> servers;
  for (const std::string& name : order_)
    servers.push_back(servers_.at(name));
  return servers;
}

std::vector<UpstreamStatus> Registry::statuses() const {
  std::shared_ptr<const Directory> offered = directory();
  std::vector<UpstreamStatus> statuses;
  for (const std::shared_ptr<Server>& server : in_order()) {
    statuses.push_back(server->status());
    for (std::string& note : offered->notes(server->config().name))
      statuses.back().notes.push_back(std::move(note));
  }
  return statuses;
}

std::shared_ptr<const Listing> Registry::listing() const {
  return directory()->listing();
}

std::optional<Item> Registry::find_tool(std::string_view public_name) const {
  return directory()->find_tool(public_name);
}

std::optional<Item> Registry::find_prompt(std::string_view public_name) const {
  return directory()->find_prompt(public_name);
}

std::optional<Item> Registry::find_resource(std::string_view uri) const {
  return directory()->find_resource(uri);
}

bool Registry::has(std::string_view upstream) const {
  return find(upstream) != nullptr;
}

std::vector<HeldBackTool> Registry::held_back() const {
  std::vector<HeldBackTool> held;
  for (const std::shared_ptr<Server>& server : in_order()) {
    std::shared_ptr<const Catalog> catalog = server->catalog();
    held.insert(held.end(), catalog->held_back.begin(), catalog->held_back.end());
  }
  return held;
}

void Registry::accept(std::string upstream, std::string tool, std::string sha256,
                      std::move_only_function<void(Result<void>)> done) {
  if (std::shared_ptr<Server> server = find(upstream)) {
    return server->accept(std::move(tool), std::move(sha256), std::move(done));
  }
  environment_->database.post([upstream = std::move(upstream), done = std::move(done)](store::Connection&) mutable {
    done(fail(ErrorCode::not_found, "there is no upstream server {}", quote(upstream)));
  });
}

std::shared_ptr<void> Registry::listen(Listener listener) {
  return announcer_->listen(std::move(listener));
}

std::shared_ptr<void> Registry::watch_resource(std::string_view uri) {
  std::optional<Item> resource = find_resource(uri);
  std::shared_ptr<Server> server = resource ? find(resource->upstream) : nullptr;
  std::string watched(uri);
  if (server == nullptr || !server->watch(watched)) return nullptr;
  std::weak_ptr<Server> weak = server;
  return {server.get(), [weak, watched](void*) {
            if (auto watching = weak.lock()) watching->unwatch(watched);
          }};
}

void Registry::forget_caller(std::string_view key) {
  for (const std::shared_ptr<Server>& server : in_order())
    server->forget_caller(std::string(key));
}

std::uint64_t Registry::send(std::string_view upstream, Request request) {
  std::shared_ptr<Server> server = find(upstream);
  std::uint64_t number = next_ticket_++ & ((std::uint64_t{1} << number_bits) - 1);
  if (server == nullptr) {
    Reply reply = unanswered(ReplyKind::not_sent, "upstream_unknown",
                             fmt::format("there is no upstream server {}", quote(upstream)));
    environment_->runtime.next_worker().post(
        [done = std::move(request.done), reply = std::move(reply)]() mutable { done(std::move(reply)); });
    return 0;
  }
  std::uint64_t ticket = server->id() << number_bits | number;
  server->send(ticket, std::move(request));
  return ticket;
}

void Registry::cancel(std::uint64_t ticket, std::string reason) {
  std::shared_ptr<Server> server;
  {
    std::shared_lock lock(mutex_);
    auto entry = std::ranges::find(servers_, ticket >> number_bits, [](const auto& each) { return each.second->id(); });
    if (entry == servers_.end()) return;
    server = entry->second;
  }
  server->cancel(ticket, std::move(reason));
}

}  // namespace hive::upstreams
