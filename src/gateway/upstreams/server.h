#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/backoff.h"
#include "config/gateway_config.h"
#include "gateway/upstreams/environment.h"
#include "gateway/upstreams/lister.h"
#include "gateway/upstreams/pinning.h"
#include "gateway/upstreams/session.h"

/// Private to this room.
namespace hive::upstreams {

/// One MCP server behind the gateway: the main session, which listens to changes and lists what there is; further
/// sessions for callers of their own where the server keeps state; and the requests on their way. Lives on one worker;
/// the public functions may be called on any thread.
class Server final : public std::enable_shared_from_this<Server> {
 public:
  /// `id` tells it from every other server there ever was. `call_timeout`: where the configuration sets none.
  Server(std::shared_ptr<const Environment> environment, net::Worker& worker, std::uint64_t id,
         config::UpstreamConfig config, std::chrono::milliseconds call_timeout);

  void start();
  /// Ends all sessions and answers what is on its way; `stopped` runs on the worker then. For good.
  void stop(net::Task stopped);

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] const config::UpstreamConfig& config() const { return config_; }
  void set_call_timeout(std::chrono::milliseconds timeout) { call_timeout_ms_ = timeout.count(); }

  void send(std::uint64_t ticket, Request request);
  void cancel(std::uint64_t ticket, std::string reason);
  void accept(std::string tool, std::string sha256, std::move_only_function<void(Result<void>)> done);
  /// Asks for updates of a resource until unwatch() was called as often; false if it cannot be done.
  bool watch(const std::string& uri);
  void unwatch(const std::string& uri);
  void forget_caller(std::string key);

  [[nodiscard]] UpstreamStatus status() const;
  [[nodiscard]] std::shared_ptr<const Catalog> catalog() const;

 private:
  /// A request that is not answered yet.
  struct Pending {
    Request request;
    SteadyTime deadline;
    std::shared_ptr<Session> session;  ///< null: it waits for none
    std::uint64_t connection_ticket = 0;
    bool is_sent = false;
    bool is_retried = false;
    net::Timer patience;  ///< while it waits for a session to become ready
  };

  // Sessions (server.cpp).
  [[nodiscard]] ConnectionOptions options() const;
  std::shared_ptr<Session> open_session(std::string key, ConnectionOptions options);
  void open_main();
  void on_ready(const std::shared_ptr<Session>& session, const ServerInfo& info);
  void on_main_ready(const ServerInfo& info);
  void on_closed(const std::shared_ptr<Session>& session, const Error& error);
  void on_main_closed(bool was_ready, const Error& error);
  void end_session(const std::shared_ptr<Session>& session);
  void release(Session& session);
  void note_useful();
  void stop_now();
  void set_state(std::string state, bool is_new);
  void tell(const std::string& action, const std::string& detail);
  [[nodiscard]] bool main_is(Session::Phase phase) const { return main_ != nullptr && main_->phase == phase; }

  // Requests (server_requests.cpp).
  void route(std::uint64_t ticket);
  /// The tool that a request calls, if it is held back.
  [[nodiscard]] std::optional<std::string> held_back_tool(const Request& request) const;
  /// Until `session` is ready; null: until there is a main session.
  void wait_for(const std::shared_ptr<Session>& session, std::uint64_t ticket);
  void stop_waiting(std::uint64_t ticket, const Pending& pending);
  void dispatch(const std::shared_ptr<Session>& session, std::uint64_t ticket);
  [[nodiscard]] bool wants_own_session(const Caller& caller) const;
  std::shared_ptr<Session> own_session(const Caller& caller);
  bool make_room();
  void set_level(const std::shared_ptr<Session>& session, const std::string& level);
  void flush(const std::shared_ptr<Session>& session);
  void on_reply(const std::shared_ptr<Session>& session, std::uint64_t ticket, Reply reply);
  void answer(std::uint64_t ticket, Reply reply);
  void answer_offline(std::uint64_t ticket);
  void rest(const std::shared_ptr<Session>& session);
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> headers_of(const Request& request) const;

  // What it offers (server_listing.cpp).
  void on_notification(std::string_view method, std::string_view raw_params);
  void want(ItemKind kind, std::chrono::milliseconds delay);
  void want_all(std::chrono::milliseconds delay);
  void schedule_refresh(std::chrono::milliseconds delay);
  void refresh();
  void take_listed(ItemKind kind, Result<Lister::Listed> listed);
  void leave_out_unreachable(std::vector<ListedItem>& tools);
  void settle_tools();
  void accept_first_sight();
  void apply_pins();
  void publish();
  void stop_listing();
  void apply_watches();

  const std::shared_ptr<const Environment> environment_;
  net::Worker& worker_;
  const std::uint64_t id_;
  const config::UpstreamConfig config_;
  std::atomic<std::chrono::milliseconds::rep> call_timeout_ms_;

  mutable std::mutex mutex_;
  UpstreamStatus status_;                       // guarded by mutex_
  std::shared_ptr<const Catalog> catalog_;      // guarded by mutex_
  std::map<std::string, std::size_t> watched_;  // guarded by mutex_; how often
  std::atomic<std::size_t> in_flight_ = 0;

  // On the worker.
  bool stopped_ = false;
  std::shared_ptr<Session> main_;
  std::vector<std::uint64_t> early_;  ///< tickets of requests that came before the first main session
  std::map<std::string, std::shared_ptr<Session>> sessions_;  ///< by session_key()
  std::unordered_map<std::uint64_t, Pending> pending_;
  std::optional<ServerInfo> info_;  ///< of the last main session
  std::string last_error_;
  std::uint64_t uses_ = 0;
  Backoff backoff_;
  bool has_no_sessions_ = false;  ///< a modern server that opened none, as far as is known
  unsigned failures_ = 0;         ///< since the last useful session
  bool is_reopened_ = false;      ///< since then, because the server had forgotten the session
  bool was_announced_ = false;    ///< that it is connected, or that it is not
  bool is_announced_up_ = false;
  net::Timer reconnect_;
  net::Timer settled_;
  SteadyTime events_since_;
  std::size_t events_ = 0;

  AcceptedTools accepted_;
  bool may_accept_first_sight_ = false;           ///< the store knows nothing of this server yet
  std::array<bool, item_kinds.size()> wanted_{};  ///< by ItemKind: for the next round of questions
  std::array<bool, item_kinds.size()> asking_{};  ///< what is left of the present one
  std::array<bool, item_kinds.size()> failed_{};
  std::shared_ptr<Lister> lister_;
  bool is_settling_ = false;                  ///< the store is asked
  std::uint64_t listing_round_ = 0;           ///< tells answers for a session that has ended since
  std::vector<ListedItem> listed_tools_;      ///< before any is held back
  std::unordered_set<std::string> mirrored_;  ///< tools with parameters that go into headers
  Catalog draft_;
  std::array<std::vector<std::string>, item_kinds.size()> notes_;
  std::map<std::string, std::string> told_held_back_;  ///< tool to the digest that was told
  net::Timer refresh_;
  net::Timer full_refresh_;
  bool is_refresh_scheduled_ = false;
  SteadyTime refresh_at_;
  SteadyTime refreshed_at_;
  bool is_watching_ = false;
};

}  // namespace hive::upstreams
