#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gateway/upstreams/connection.h"
#include "gateway/upstreams/environment.h"
#include "protocol/json.h"

namespace hive::upstreams::test {

/// One connection that was opened to a server that the test plays. Guarded by the mutex of FakeServers.
struct FakeLink {
  net::Worker* worker = nullptr;
  ConnectionOptions options;
  ConnectionEvents events;
  bool is_closed = false;
  std::map<std::uint64_t, std::move_only_function<void(Reply)>> held;
  std::vector<std::string> watched;
};

/// Servers without a network: what they say is set by the test, and what they are asked is kept. Thread-safe.
class FakeServers {
 public:
  struct Asked {
    std::shared_ptr<FakeLink> link;
    std::string method;
    std::string params;
    std::vector<std::pair<std::string, std::string>> headers;
  };

  FakeServers() {
    info.revision = mcp::Revision::v2025_11_25;
    info.name = "fake";
    info.version = "1";
    info.capabilities = R"({"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true},"logging":{}})";
  }

  ConnectionFactory factory() {
    return [this](net::Worker& worker, ConnectionOptions options, ConnectionEvents events) {
      return open(worker, std::move(options), std::move(events));
    };
  }

  template <class Change>
  void set(Change change) {
    std::lock_guard lock(mutex);
    change(*this);
  }

  static std::string tool(std::string_view name, std::string_view description = "does it") {
    return fmt::format(R"({{"name":"{}","description":"{}","inputSchema":{{"type":"object"}}}})", name, description);
  }

  // What servers say; under the mutex.
  ServerInfo info;
  std::optional<Error> refusal;                              ///< of every session
  std::optional<Error> refusal_of_own;                       ///< of sessions with capabilities
  bool hangs = false;                                        ///< never gets ready
  bool ends_at_once = false;                                 ///< right after it is ready
  bool holds_calls = false;                                  ///< calls are answered by the test
  std::optional<Reply> next_call;                            ///< the answer to the next call
  std::optional<Error> end_with_next_call;                   ///< and the end of the connection behind it
  std::map<std::string, std::vector<std::string>> lists;     ///< "tools" -> raw items, for all servers
  std::map<std::string, std::vector<std::string>> tools_of;  ///< of one upstream, instead
  std::size_t page_size = 1000;
  std::optional<std::string> list_error;  ///< raw error object, for prompts/list
  std::string endless_cursor;

  std::vector<std::shared_ptr<FakeLink>> links;
  std::vector<Asked> asked;
  std::mutex mutex;

  std::size_t opened() {
    std::lock_guard lock(mutex);
    return links.size();
  }
  std::size_t open_links() {
    std::lock_guard lock(mutex);
    return static_cast<std::size_t>(std::ranges::count(links, false, [](const auto& link) { return link->is_closed; }));
  }
  std::shared_ptr<FakeLink> link(std::size_t index) {
    std::lock_guard lock(mutex);
    return index < links.size() ? links[index] : nullptr;
  }
  std::size_t count(std::string_view method) {
    std::lock_guard lock(mutex);
    return static_cast<std::size_t>(std::ranges::count(asked, method, &Asked::method));
  }
  std::optional<Asked> last(std::string_view method) {
    std::lock_guard lock(mutex);
    for (auto each = asked.rbegin(); each != asked.rend(); ++each) {
      if (each->method == method) return *each;
    }
    return std::nullopt;
  }

  /// The connection breaks.
  void drop(const std::shared_ptr<FakeLink>& link, Error error) {
    link->worker->post([this, link, error = std::move(error)] {
      std::map<std::uint64_t, std::move_only_function<void(Reply)>> held;
      {
        std::lock_guard lock(mutex);
        if (std::exchange(link->is_closed, true)) return;
        held = std::exchange(link->held, {});
      }
      for (auto& [ticket, done] : held) {
        Reply lost;
        lost.kind = ReplyKind::lost;
        lost.reason = "lost";
        done(std::move(lost));
      }
      link->events.on_closed(error);
    });
  }
  void say(const std::shared_ptr<FakeLink>& link, std::string method, std::string params) {
    link->worker->post([this, link, method = std::move(method), params = std::move(params)] {
      if (!closed(*link)) link->events.on_notification(method, params);
    });
  }

 private:
  friend class FakeConnection;

  class FakeConnection final : public Connection {
   public:
    FakeConnection(FakeServers& servers, std::shared_ptr<FakeLink> link) : servers_(servers), link_(std::move(link)) {}
    ~FakeConnection() override { close(); }

    void start() override {
      link_->worker->post([&servers = servers_, link = link_] { servers.begin(link); });
    }
    std::uint64_t request(ConnectionRequest request) override {
      std::uint64_t ticket = ++servers_.next_ticket_;
      link_->worker->post([&servers = servers_, link = link_, ticket, request = std::move(request)]() mutable {
        servers.take(link, ticket, std::move(request));
      });
      return ticket;
    }
    void cancel(std::uint64_t ticket, std::string reason) override {
      link_->worker->post([&servers = servers_, link = link_, ticket, reason = std::move(reason)] {
        std::move_only_function<void(Reply)> done;
        {
          std::lock_guard lock(servers.mutex);
          servers.asked.push_back({link, "notifications/cancelled", reason, {}});
          auto held = link->held.find(ticket);
          if (held == link->held.end()) return;
          done = std::move(held->second);
          link->held.erase(held);
        }
        Reply reply;
        reply.kind = ReplyKind::unconfirmed;
        reply.reason = "cancelled";
        done(std::move(reply));
      });
    }
    void notify(std::string, std::string) override {}
    void watch_resources(std::vector<std::string> uris) override {
      std::lock_guard lock(servers_.mutex);
      link_->watched = std::move(uris);
    }
    void close() override {
      std::lock_guard lock(servers_.mutex);
      link_->is_closed = true;
    }
    [[nodiscard]] std::optional<int> process_id() const override { return std::nullopt; }

   private:
    FakeServers& servers_;
    std::shared_ptr<FakeLink> link_;
  };

  std::unique_ptr<Connection> open(net::Worker& worker, ConnectionOptions options, ConnectionEvents events) {
    auto link = std::make_shared<FakeLink>();
    link->worker = &worker;
    link->options = std::move(options);
    link->events = std::move(events);
    std::lock_guard lock(mutex);
    links.push_back(link);
    return std::make_unique<FakeConnection>(*this, link);
  }

  bool closed(const FakeLink& link) {
    std::lock_guard lock(mutex);
    return link.is_closed;
  }

  void begin(const std::shared_ptr<FakeLink>& link) {
    std::optional<Error> error;
    ServerInfo ready;
    bool is_short = false;
    {
      std::lock_guard lock(mutex);
      if (link->is_closed || hangs) return;
      error = refusal;
      if (link->options.capabilities != "{}" && refusal_of_own) error = refusal_of_own;
      ready = info;
      is_short = ends_at_once;
      if (error) link->is_closed = true;
    }
    if (error) return link->events.on_closed(*error);
    link->events.on_ready(ready);
    if (is_short) drop(link, {ErrorCode::io, "it went away"});
  }

  void take(const std::shared_ptr<FakeLink>& link, std::uint64_t ticket, ConnectionRequest request) {
    Reply reply;
    std::optional<Error> end;
    {
      std::lock_guard lock(mutex);
      if (link->is_closed) {
        reply.kind = ReplyKind::not_sent;
        reply.reason = "upstream_offline";
      } else {
        asked.push_back({link, request.method, request.params, request.headers});
        reply.kind = ReplyKind::result;
        bool is_list = request.method.ends_with("/list");
        if (is_list) {
          reply = list(*link, request);
        } else if (next_call && request.method != "logging/setLevel") {
          reply = *std::exchange(next_call, std::nullopt);
          end = std::exchange(end_with_next_call, std::nullopt);
          if (end) link->is_closed = true;
        } else if (holds_calls && request.method != "logging/setLevel") {
          link->held[ticket] = std::move(request.done);
          return;
        } else {
          reply.body = R"({"content":[]})";
        }
      }
    }
    request.done(std::move(reply));
    if (end) link->events.on_closed(*end);
  }

  Reply list(const FakeLink& link, const ConnectionRequest& request) {
    Reply reply;
    std::string kind = request.method == "resources/templates/list"
                           ? "resourceTemplates"
                           : request.method.substr(0, request.method.find('/'));
    if (list_error && kind == "prompts") {
      reply.kind = ReplyKind::error;
      reply.body = *list_error;
      return reply;
    }
    auto own = tools_of.find(link.options.name);
    const std::vector<std::string>& items = kind == "tools" && own != tools_of.end() ? own->second : lists[kind];
    std::size_t from = 0;
    if (auto members = json::parse_object(request.params); members && !endless_cursor.empty()) {
      from = 0;
    } else if (auto cursor = members ? json::find(*members, "cursor") : std::nullopt) {
      from = static_cast<std::size_t>(std::stoul(json::decode_string(*cursor).value_or("0")));
    }
    std::string array;
    std::size_t end = std::min(items.size(), from + page_size);
    for (std::size_t k = from; k < end; ++k)
      array += (k > from ? "," : "") + items[k];
    reply.kind = ReplyKind::result;
    reply.body = "{\"" + kind + "\":[" + array + "]";
    if (!endless_cursor.empty()) {
      reply.body += R"(,"nextCursor":")" + endless_cursor + "\"";
    } else if (end < items.size()) {
      reply.body += R"(,"nextCursor":")" + std::to_string(end) + "\"";
    }
    reply.body += "}";
    return reply;
  }

  std::atomic<std::uint64_t> next_ticket_ = 0;
};

/// A caller with a key and capabilities of its own.
class KeyedCaller final : public Caller {
 public:
  explicit KeyedCaller(std::string key, std::string capabilities = "{}",
                       std::optional<std::string> level = std::nullopt)
      : key_(std::move(key)), capabilities_(std::move(capabilities)), level_(std::move(level)) {}
  [[nodiscard]] const std::string& key() const override { return key_; }
  [[nodiscard]] const std::string& capabilities() const override { return capabilities_; }
  [[nodiscard]] std::optional<std::string> log_level() const override { return level_; }
  [[nodiscard]] bool wants_progress() const override { return false; }
  [[nodiscard]] bool keeps_session() const override { return has_session; }
  void notify(std::string_view, std::string_view) override {}
  void ask(std::string, std::string, std::move_only_function<void(Result<std::string>)>) override {}

  bool has_session = false;

 private:
  std::string key_;
  std::string capabilities_;
  std::optional<std::string> level_;
};

}  // namespace hive::upstreams::test
