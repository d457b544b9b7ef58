#include "gateway/fleet/agent_link.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "gateway/fleet/agent_description.h"

namespace hive::fleet {

namespace {

constexpr unsigned max_malformed_lines = 64;
// How long an agent may take to confirm a cancellation, and to report its own deadline before ours counts.
constexpr std::chrono::seconds answer_grace{5};

std::optional<std::uint64_t> ticket_of(std::string_view id) {
  std::uint64_t ticket = 0;
  auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), ticket);
  if (error != std::errc() || end != id.data() + id.size()) return std::nullopt;
  return ticket;
}

json::Limits line_limits() {
  return {.max_bytes = protocol::default_max_line_bytes, .max_depth = 64, .max_values = 1'000'000};
}

}  // namespace

AgentLink::AgentLink(std::shared_ptr<net::ssh::LineChannel> channel, const Clock& clock, Fleet::Options options,
                     ToolListCache& tool_lists, Owner owner)
    : channel_(std::move(channel)),
      clock_(clock),
      options_(options),
      tool_lists_(tool_lists),
      owner_(std::move(owner)),
      id_(channel_->peer().user),
      peer_(channel_->peer()),
      liveness_(clock.steady_now(), options.keepalive),
      activity_(std::make_shared<AgentActivity>()) {}

void AgentLink::start(std::uint64_t first_ticket) {
  channel_->set_handler(shared_from_this());
  ping_ticket_ = first_ticket;
  send_ping([this](const AgentReply& reply) { take_first_ping(reply); });
  ask(first_ticket + 2,
      protocol::encode_tools_call(std::to_string(first_ticket + 2), "get_system_info", "{}", false,
                                  std::chrono::seconds(30)),
      [this](const AgentReply& reply) { take_system_info(reply); });
  watch_later(options_.keepalive / 2);
}

Result<void> AgentLink::queue(std::string_view line) {
  TRY(channel_->send(line));
  queued_total_ += line.size() + 1;
  return {};
}

AgentLink::Pending* AgentLink::ask(std::uint64_t ticket, std::string_view line,
                                   std::move_only_function<void(AgentReply)> done) {
  if (closed_ || !queue(line)) return nullptr;
  Pending& pending = pending_[ticket];
  pending.done = std::move(done);
  pending.line_end = queued_total_;
  pending.timer = worker().schedule(std::chrono::seconds(40), [this, ticket] { on_deadline(ticket); });
  return &pending;
}

void AgentLink::send(std::uint64_t ticket, AgentRequest request) {
  auto refuse = [&](std::string reason, std::string detail) {
    request.done(AgentReply{ReplyKind::not_sent, {}, std::move(reason), std::move(detail)});
  };
  if (drain_reason_) {
    moved_tickets_.push_back(ticket);
    return owner_.moved(ticket, std::move(request));
  }
  if (!request.required_key.empty() && request.required_key != peer_.key_fingerprint) {
    return refuse("agent_key_changed", fmt::format("agent {} is connected by another key than the call was meant for "
                                                   "({}, not {}); ask again",
                                                   id_, peer_.key_fingerprint, request.required_key));
  }
  if (closed_ || closing_) return refuse("agent_offline", fmt::format("agent {} is offline", id_));
  if (pending_.size() >= options_.max_calls_in_flight_per_agent) {
    return refuse("agent_busy", fmt::format("agent {} has {} calls in flight; try again later", id_, pending_.size()));
  }
  bool wants_progress = static_cast<bool>(request.on_progress);
  // Without a wish of the caller an agent of ours applies its own deadlines; one that has none gets the default.
  std::chrono::milliseconds timeout = request.timeout;
  if (timeout.count() == 0) timeout = bounds_its_commands_ ? options_.max_call_time : options_.default_call_time;
  std::string line =
      protocol::encode_tools_call(std::to_string(ticket), request.tool, request.arguments, wants_progress, timeout);
  if (line.size() > protocol::default_max_line_bytes) {
    return refuse("arguments_too_large",
                  fmt::format("the arguments are larger than the {} bytes that a tunnel carries in one line",
                              protocol::default_max_line_bytes));
  }
  if (auto queued = queue(line); !queued) {
    return refuse("agent_busy", fmt::format("agent {}: {}", id_, queued.error().message));
  }
  Pending& pending = pending_[ticket];
  pending.line_end = queued_total_;
  pending.on_progress = std::move(request.on_progress);
  pending.done = std::move(request.done);
  pending.timer = worker().schedule(timeout + answer_grace, [this, ticket] { on_deadline(ticket); });
  ++calls_in_flight_;
  activity_->calls_in_flight.fetch_add(1, std::memory_order_relaxed);
}

void AgentLink::cancel(std::uint64_t ticket, std::string_view reason) {
  auto found = pending_.find(ticket);
  if (found == pending_.end()) {
    // Behind the call itself, which took the same way.
    if (std::erase(moved_tickets_, ticket) > 0) owner_.moved_cancel(ticket, reason);
    return;
  }
  if (found->second.cancelling) return;
  found->second.cancelling = true;
  // Progress that crosses with the cancellation is of no use to anybody.
  found->second.on_progress = nullptr;
  found->second.timer = worker().schedule(answer_grace, [this, ticket] { on_deadline(ticket); });
  (void)queue(protocol::encode_cancelled(std::to_string(ticket), reason));
}

void AgentLink::drain(std::string_view reason) {
  if (closed_ || closing_ || drain_reason_) return;
  drain_reason_ = reason;
  close_if_drained();
  if (closing_) return;
  liveness_.set_patience(1);
  ping();
  watch_later(options_.keepalive / 2);
}

void AgentLink::close_if_drained() {
  if (drain_reason_ && calls_in_flight_ == 0) close(*drain_reason_);
}

void AgentLink::close(std::string_view reason) {
  closing_ = true;
  channel_->close(reason);
}

void AgentLink::on_deadline(std::uint64_t ticket) {
  auto found = pending_.find(ticket);
  if (found == pending_.end()) return;
  if (found->second.cancelling) {
    return finish(ticket, {ReplyKind::unconfirmed,
                           {},
                           "cancel_unconfirmed",
                           fmt::format("agent {} did not confirm the cancellation", id_)});
  }
  (void)queue(protocol::encode_cancelled(std::to_string(ticket), "deadline passed"));
  finish(ticket,
         {ReplyKind::timed_out, {}, "timed_out", fmt::format("agent {} did not answer before the deadline", id_)});
}

void AgentLink::finish(std::uint64_t ticket, AgentReply reply) {
  auto node = pending_.extract(ticket);
  if (node.empty()) return;
  bool own = ticket >= ping_ticket_ && ticket < ping_ticket_ + own_tickets;
  if (!own) {
    --calls_in_flight_;
    activity_->calls_in_flight.fetch_sub(1, std::memory_order_relaxed);
  }
  node.mapped().timer.cancel();
  node.mapped().done(std::move(reply));
  if (!own) close_if_drained();
}

void AgentLink::on_line(std::string_view line) {
  liveness_.heard(clock_.steady_now());
  activity_->last_seen_ns.store(clock_.wall_now().time_since_epoch().count(), std::memory_order_relaxed);
  auto message = protocol::parse_agent_message(line, line_limits());
  if (!message) return on_malformed(message.error());
  auto* response = std::get_if<protocol::AgentResponse>(&*message);
  bool asked = response != nullptr ? on_response(*response) : on_progress(std::get<protocol::AgentProgress>(*message));
  if (!asked) chatter_.unasked(line.size());
  if (chatter_.is_flood() && !closing_) close("the agent floods the tunnel with what nobody asked for");
}

bool AgentLink::on_response(const protocol::AgentResponse& response) {
  // An id that is not waited for is a late answer, or an attempt to answer somebody else's question: both are dropped.
  auto ticket = ticket_of(response.id);
  if (!ticket || !pending_.contains(*ticket)) return false;
  finish(*ticket, {response.is_error ? ReplyKind::error : ReplyKind::result, std::string(response.body), {}, {}});
  return true;
}

bool AgentLink::on_progress(const protocol::AgentProgress& progress) {
  auto ticket = ticket_of(progress.token);
  auto found = ticket ? pending_.find(*ticket) : pending_.end();
  if (found == pending_.end()) return false;
  // A call that was withdrawn has nobody who wants it.
  if (!found->second.on_progress) return found->second.cancelling;
  if (chatter_.admit_progress(progress.params.size())) found->second.on_progress(progress.params);
  return true;
}

void AgentLink::on_malformed(const Error& error) {
  if (++malformed_lines_ == 1) {
    log::warning("an agent sent a line that is not a message", {{"agent", id_}, {"reason", error.message}});
  }
  if (malformed_lines_ >= max_malformed_lines) channel_->close("too many malformed lines");
}

void AgentLink::on_closed(const Error& reason) {
  closed_ = true;
  watch_timer_.cancel();
  auto self = shared_from_this();
  // Moved out first: a caller that is told may start the next call at once.
  auto pending = std::move(pending_);
  pending_.clear();
  activity_->calls_in_flight.fetch_sub(std::exchange(calls_in_flight_, 0), std::memory_order_relaxed);
  owner_.closed(self, reason.message);
  // An agent runs whole lines only: what has not left our queue up to its end cannot have run.
  const std::uint64_t sent_total = queued_total_ - channel_->queued_bytes();
  for (auto& [ticket, call] : pending) {
    call.timer.cancel();
    if (call.line_end > sent_total) {
      call.done(
          AgentReply{ReplyKind::not_sent,
                     {},
                     "tunnel_lost",
                     fmt::format("the tunnel to agent {} ended before the call was sent: {}", id_, reason.message)});
      continue;
    }
    call.done(AgentReply{ReplyKind::lost,
                         {},
                         "tunnel_lost",
                         fmt::format("the tunnel to agent {} ended before the answer: {}", id_, reason.message)});
  }
}

void AgentLink::watch_later(SteadyTime::duration delay) {
  watch_timer_ = worker().schedule(std::chrono::ceil<std::chrono::milliseconds>(delay), [this] { watch(); });
}

void AgentLink::watch() {
  net::ssh::Liveness::Verdict verdict = liveness_.check(clock_.steady_now(), channel_->traffic());
  if (!verdict.dead.empty()) return channel_->close(verdict.dead);
  if (verdict.probe) ping();
  chatter_.next_period();
  watch_later(verdict.next);
}

void AgentLink::ping() {
  if (pending_.contains(ping_ticket_)) return;
  send_ping([this](const AgentReply& reply) { take_ping(reply); });
}

// Without a deadline of its own: how long an answer may take depends on what stands before it.
void AgentLink::send_ping(std::move_only_function<void(AgentReply)> done) {
  Pending* pending = ask(ping_ticket_, protocol::encode_request(std::to_string(ping_ticket_), "ping"), std::move(done));
  if (pending == nullptr) return;
  pending->timer.cancel();
  liveness_.probed(clock_.steady_now(), channel_->traffic());
}

void AgentLink::take_ping(const AgentReply& reply) {
  if (reply.kind != ReplyKind::result && reply.kind != ReplyKind::error) return;
  liveness_.answered();
  bounds_its_commands_ = reply.kind == ReplyKind::result;
}

// Most agents have the list that another agent has told already; the digest in the answer says so.
void AgentLink::take_first_ping(const AgentReply& reply) {
  take_ping(reply);
  if (closed_) return;
  if (bounds_its_commands_) {
    if (auto known = tool_lists_.find(protocol::tools_digest_of(reply.body))) {
      return owner_.listed(*this, std::move(known));
    }
  }
  std::uint64_t ticket = ping_ticket_ + 1;
  ask(ticket, protocol::encode_request(std::to_string(ticket), "tools/list"),
      [this](const AgentReply& answer) { take_tools(answer); });
}

void AgentLink::take_tools(const AgentReply& reply) {
  if (closed_) return;
  if (reply.kind != ReplyKind::result) {
    log::warning("an agent did not list its tools", {{"agent", id_}, {"reason", reply.detail}});
    return;
  }
  auto tools = tool_lists_.get(reply.body);
  if (!tools) {
    log::warning("an agent's list of tools is not usable", {{"agent", id_}, {"reason", tools.error().message}});
    return;
  }
  owner_.listed(*this, *std::move(tools));
}

void AgentLink::take_system_info(const AgentReply& reply) {
  AgentStatus described;
  if (reply.kind == ReplyKind::result) describe(reply.body, described);
  if (described.os_version.empty()) described.os_version = "Unknown OS";
  owner_.described(*this, std::move(described));
}

}  // namespace hive::fleet
