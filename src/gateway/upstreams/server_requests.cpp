// Requests on their way to a server, and which session takes them.
#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "gateway/upstreams/server.h"
#include "protocol/json.h"
#include "protocol/mcp/http_headers.h"
#include "protocol/mcp/message.h"

namespace hive::upstreams {

namespace {

using Milliseconds = std::chrono::milliseconds;

Reply not_sent(std::string reason, std::string detail) {
  return unanswered(ReplyKind::not_sent, std::move(reason), std::move(detail));
}

}  // namespace

void Server::send(std::uint64_t ticket, Request request) {
  // Whatever happens to the server until then, the caller gets an answer.
  worker_.post([weak = weak_from_this(), ticket, request = std::move(request)]() mutable {
    auto self = weak.lock();
    if (self == nullptr || self->stopped_ || !self->config_.enabled) {
      return request.done(not_sent("upstream_offline", "the upstream server is not used"));
    }
    const Tuning& tuning = self->environment_->tuning;
    if (self->pending_.size() >= tuning.max_in_flight) {
      return request.done(not_sent("upstream_busy", fmt::format("{} requests are on their way to the upstream server "
                                                                "{}; try again when some have been answered",
                                                                self->pending_.size(), quote(self->config_.name))));
    }
    Milliseconds timeout = request.timeout.count() > 0         ? request.timeout
                           : self->config_.timeout.count() > 0 ? self->config_.timeout
                                                               : Milliseconds(self->call_timeout_ms_);
    Pending pending;
    pending.request = std::move(request);
    pending.deadline = self->environment_->clock.steady_now() + timeout;
    self->pending_.try_emplace(ticket, std::move(pending));
    self->in_flight_ = self->pending_.size();
    self->route(ticket);
  });
}

void Server::cancel(std::uint64_t ticket, std::string reason) {
  worker_.post([weak = weak_from_this(), ticket, reason = std::move(reason)]() mutable {
    auto self = weak.lock();
    if (self == nullptr) return;
    auto found = self->pending_.find(ticket);
    if (found == self->pending_.end()) return;
    Pending& pending = found->second;
    if (pending.is_sent) {
      if (pending.session->connection != nullptr) {
        pending.session->connection->cancel(pending.connection_ticket, std::move(reason));
      }
      return;
    }
    self->stop_waiting(ticket, pending);
    self->answer(ticket, not_sent("cancelled", std::move(reason)));
  });
}

void Server::forget_caller(std::string key) {
  worker_.post([weak = weak_from_this(), key = std::move(key)] {
    auto self = weak.lock();
    if (self == nullptr) return;
    std::vector<std::shared_ptr<Session>> ended;
    for (const auto& [name, session] : self->sessions_) {
      if (session->caller_key == key) ended.push_back(session);
    }
    for (const std::shared_ptr<Session>& session : ended)
      self->end_session(session);
  });
}

void Server::route(std::uint64_t ticket) {
  auto found = pending_.find(ticket);
  if (found == pending_.end()) return;
  // Also a call that was found or approved before the description changed.
  if (std::optional<std::string> tool = held_back_tool(found->second.request)) {
    return answer(ticket, not_sent("tool_held_back", fmt::format("the tool {} of the upstream server {} is held back "
                                                                 "until an admin accepts its description",
                                                                 quote(*tool), quote(config_.name))));
  }
  const std::shared_ptr<Caller>& caller = found->second.request.caller;
  bool is_own = caller != nullptr && wants_own_session(*caller);
  if (is_own) {
    if (auto session = sessions_.find(session_key(*caller)); session != sessions_.end()) {
      return dispatch(session->second, ticket);
    }
  }
  bool is_first_try = main_ == nullptr || main_is(Session::Phase::opening);
  if (is_first_try && failures_ == 0) return wait_for(main_, ticket);
  if (!main_is(Session::Phase::ready)) return answer_offline(ticket);
  if (!is_own) return dispatch(main_, ticket);
  if (std::shared_ptr<Session> session = own_session(*caller)) return wait_for(session, ticket);
  if (mcp::is_modern(info_->revision)) return dispatch(main_, ticket);
  answer(ticket, not_sent("upstream_busy",
                          fmt::format("{} callers have sessions with the upstream server {}; try again in a minute",
                                      sessions_.size(), quote(config_.name))));
}

std::optional<std::string> Server::held_back_tool(const Request& request) const {
  if (request.method != "tools/call" || draft_.held_back.empty()) return std::nullopt;
  auto params = json::parse_object(request.params, mcp::message_limits).value_or(std::vector<json::Member>());
  auto raw_name = json::find(params, "name");
  auto name = raw_name ? json::decode_string(*raw_name) : std::nullopt;
  if (!name || std::ranges::find(draft_.held_back, *name, &HeldBackTool::tool) == draft_.held_back.end()) {
    return std::nullopt;
  }
  return name;
}

void Server::wait_for(const std::shared_ptr<Session>& session, std::uint64_t ticket) {
  Pending& pending = pending_.at(ticket);
  pending.session = session;
  (session != nullptr ? session->waiting : early_).push_back(ticket);
  auto left = std::chrono::ceil<Milliseconds>(pending.deadline - environment_->clock.steady_now());
  pending.patience = worker_.schedule(std::max(left, Milliseconds(0)), [weak = weak_from_this(), ticket] {
    auto self = weak.lock();
    if (self == nullptr) return;
    auto found = self->pending_.find(ticket);
    if (found == self->pending_.end() || found->second.is_sent) return;
    self->stop_waiting(ticket, found->second);
    self->answer(ticket, not_sent("upstream_offline", fmt::format("the upstream server {} did not become ready in time",
                                                                  quote(self->config_.name))));
  });
}

void Server::stop_waiting(std::uint64_t ticket, const Pending& pending) {
  std::erase(pending.session != nullptr ? pending.session->waiting : early_, ticket);
}

// A modern request says everything itself; only a server that keeps state has to know whom it talks to. A server of
// both eras is spoken to in that of the client where that costs no child.
bool Server::wants_own_session(const Caller& caller) const {
  if (!info_) return false;
  if (!mcp::is_modern(info_->revision)) return needs_own_session(caller);
  return config_.transport == "http" && !has_no_sessions_ && caller.keeps_session();
}

std::shared_ptr<Session> Server::own_session(const Caller& caller) {
  const Tuning& tuning = environment_->tuning;
  std::size_t limit = config_.transport == "stdio" ? tuning.max_children : tuning.max_sessions;
  if (sessions_.size() >= limit && !make_room()) return nullptr;
  ConnectionOptions opened = options();
  opened.era = EraPreference::legacy;
  opened.capabilities = bridged_capabilities(caller.capabilities());
  opened.log_level = caller.log_level();
  std::shared_ptr<Session> session = open_session(session_key(caller), std::move(opened));
  session->caller_key = caller.key();
  session->last_used = ++uses_;
  sessions_[session->key] = session;
  return session;
}

bool Server::make_room() {
  std::shared_ptr<Session> oldest;
  for (const auto& [key, session] : sessions_) {
    if (session->is_busy() || (oldest != nullptr && oldest->last_used < session->last_used)) continue;
    oldest = session;
  }
  if (oldest == nullptr) return false;
  end_session(oldest);
  return true;
}

void Server::flush(const std::shared_ptr<Session>& session) {
  for (std::uint64_t ticket : std::exchange(session->waiting, {})) {
    auto found = pending_.find(ticket);
    if (found == pending_.end()) continue;
    found->second.session.reset();
    route(ticket);
  }
}

void Server::dispatch(const std::shared_ptr<Session>& session, std::uint64_t ticket) {
  if (session->phase != Session::Phase::ready || session->is_setting_level) return wait_for(session, ticket);
  Pending& pending = pending_.at(ticket);
  Request& request = pending.request;
  auto left = std::chrono::floor<Milliseconds>(pending.deadline - environment_->clock.steady_now());
  if (left.count() <= 0) {
    return answer(ticket,
                  not_sent("upstream_offline",
                           fmt::format("the upstream server {} did not become ready in time", quote(config_.name))));
  }
  if (session != main_ && request.caller != nullptr) {
    std::optional<std::string> level = request.caller->log_level();
    if (level && level != session->log_level) {
      wait_for(session, ticket);
      return set_level(session, *level);
    }
  }
  pending.patience.cancel();
  pending.session = session;
  pending.is_sent = true;
  session->in_flight.insert(ticket);
  session->last_used = ++uses_;
  session->idle.cancel();
  ConnectionRequest outgoing;
  outgoing.method = request.method;
  outgoing.params = request.params;
  outgoing.caller = request.caller;
  outgoing.timeout = left;
  outgoing.headers = headers_of(request);
  outgoing.done = [weak = weak_from_this(), on = std::weak_ptr(session), ticket](Reply reply) {
    auto self = weak.lock();
    auto used = on.lock();
    if (self != nullptr && used != nullptr) self->on_reply(used, ticket, std::move(reply));
  };
  pending.connection_ticket = session->connection->request(std::move(outgoing));
}

// A server that does not log, or refuses the level, is no reason to refuse the call.
void Server::set_level(const std::shared_ptr<Session>& session, const std::string& level) {
  session->is_setting_level = true;
  session->log_level = level;
  ConnectionRequest request;
  request.method = "logging/setLevel";
  request.params = R"({"level":)" + json::encode_string(level) + "}";
  request.timeout = environment_->tuning.list_timeout;
  request.done = [weak = weak_from_this(), on = std::weak_ptr(session)](const Reply&) {
    auto self = weak.lock();
    auto used = on.lock();
    if (self == nullptr || used == nullptr) return;
    used->is_setting_level = false;
    if (used->phase == Session::Phase::ready) self->flush(used);
  };
  session->connection->request(std::move(request));
}

// What a tool wants to see in headers, a modern server on HTTP refuses to take from the body alone.
std::vector<std::pair<std::string, std::string>> Server::headers_of(const Request& request) const {
  std::vector<std::pair<std::string, std::string>> headers;
  if (request.method != "tools/call" || mirrored_.empty()) return headers;
  auto params = json::parse_object(request.params, mcp::message_limits).value_or(std::vector<json::Member>());
  auto raw_name = json::find(params, "name");
  std::string name = raw_name ? json::decode_string(*raw_name).value_or("") : "";
  if (!mirrored_.contains(name)) return headers;
  auto tool = std::ranges::find(listed_tools_, name, &ListedItem::name);
  if (tool == listed_tools_.end()) return headers;
  auto members = json::parse_object(tool->raw, mcp::message_limits).value_or(std::vector<json::Member>());
  auto made = mcp::parameter_headers(json::find(members, "inputSchema").value_or("{}"),
                                     json::find(params, "arguments").value_or("{}"));
  if (!made) {
    log::debug("parameters do not fit into headers", {{"upstream", config_.name}, {"reason", made.error().message}});
    return headers;
  }
  for (mcp::Header& header : *made)
    headers.emplace_back(std::move(header.name), std::move(header.value));
  return headers;
}

void Server::on_reply(const std::shared_ptr<Session>& session, std::uint64_t ticket, Reply reply) {
  session->in_flight.erase(ticket);
  rest(session);
  auto found = pending_.find(ticket);
  if (found == pending_.end() || found->second.session != session) return;
  Pending& pending = found->second;
  if (reply.kind == ReplyKind::result || reply.kind == ReplyKind::error) note_useful();
  // The tool may be described otherwise by now (MCP 2026-07-28, Client Behavior).
  if (reply.kind == ReplyKind::error && reply.body.contains(std::to_string(mcp::header_mismatch_code))) {
    want(ItemKind::tools, environment_->tuning.gather);
  }
  bool may_go_elsewhere =
      reply.kind == ReplyKind::not_sent && reply.reason != "upstream_busy" && reply.reason != "cancelled";
  if (!may_go_elsewhere || pending.is_retried || stopped_) return answer(ticket, std::move(reply));
  // Once, and not before the connection has had the time to say that it is over.
  pending.is_retried = true;
  pending.is_sent = false;
  pending.session.reset();
  worker_.post([weak = weak_from_this(), ticket] {
    if (auto self = weak.lock()) self->route(ticket);
  });
}

void Server::rest(const std::shared_ptr<Session>& session) {
  if (session == main_ || session->is_busy() || session->phase != Session::Phase::ready) return;
  session->idle =
      worker_.schedule(environment_->tuning.session_idle, [weak = weak_from_this(), on = std::weak_ptr(session)] {
        auto self = weak.lock();
        auto idle = on.lock();
        if (self == nullptr || idle == nullptr) return;
        if (idle->phase == Session::Phase::ready && !idle->is_busy()) self->end_session(idle);
      });
}

void Server::answer_offline(std::uint64_t ticket) {
  UpstreamStatus now = status();
  std::string detail =
      fmt::format("the upstream server {} is offline since {}", quote(config_.name), format_rfc3339(now.since));
  if (!last_error_.empty()) detail += ": " + last_error_;
  answer(ticket, not_sent("upstream_offline", std::move(detail)));
}

void Server::answer(std::uint64_t ticket, Reply reply) {
  auto found = pending_.find(ticket);
  if (found == pending_.end()) return;
  auto done = std::move(found->second.request.done);
  pending_.erase(found);
  in_flight_ = pending_.size();
  if (done) done(std::move(reply));
}

}  // namespace hive::upstreams
