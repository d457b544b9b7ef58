#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "gateway/upstreams/mcp_session.h"
#include "protocol/json.h"
#include "protocol/mcp/translation.h"

namespace hive::upstreams {

namespace {

constexpr std::size_t max_asks = 64;
constexpr double notifications_per_second = 1000;
constexpr double notification_burst = 5000;
constexpr std::chrono::seconds complaint_interval(10);
constexpr std::size_t max_shown_bytes = 200;

constexpr int method_not_found_code = -32601;
constexpr int internal_error_code = -32603;
constexpr int invalid_request_code = -32600;

/// The ticket in one of our own ids, "h-N".
std::optional<std::uint64_t> ticket_of(std::string_view raw_id) {
  auto text = json::decode_string(raw_id);
  if (!text || !text->starts_with("h-")) return std::nullopt;
  auto number = parse_int64(std::string_view(*text).substr(2));
  if (!number || *number <= 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

std::optional<std::string_view> member_of(std::string_view raw_object, std::string_view key) {
  auto members = json::parse_object(raw_object, mcp::message_limits);
  return members ? json::find(*members, key) : std::nullopt;
}

}  // namespace

void McpSession::on_text(std::string_view text, std::uint64_t stream) {
  last_heard_ = std::chrono::steady_clock::now();
  bool knows_batches = stage_ == Stage::ready && info_.revision <= mcp::Revision::v2025_03_26;
  if (knows_batches && mcp::is_batch(text)) {
    auto elements = mcp::split_batch(text);
    if (!elements) return complain(elements.error().message);
    auto self = shared_from_this();
    for (std::string_view element : *elements) {
      if (stage_ == Stage::closed) return;
      take_message(element, stream);
    }
    return;
  }
  take_message(text, stream);
}

void McpSession::take_message(std::string_view text, std::uint64_t stream) {
  auto message = mcp::parse_message(text);
  if (message) return on_message(*message, stream);
  complain(message.error().message);
  // A broken answer is still one: whoever waits for it need not wait for the deadline.
  auto ticket = ticket_of(message.error().id);
  auto entry = ticket ? in_flight_.find(*ticket) : in_flight_.end();
  if (entry == in_flight_.end() || !entry->second.is_sent) return;
  finish(*ticket, {.reply = {.kind = ReplyKind::lost,
                             .body = {},
                             .reason = "upstream_answer_invalid",
                             .detail = "the server's answer is invalid: " + message.error().message},
                   .code = ErrorCode::corrupt});
}

void McpSession::on_message(const mcp::Message& message, std::uint64_t stream) {
  switch (message.kind) {
    case mcp::MessageKind::response:
    case mcp::MessageKind::error_response:
      return on_answer(message);
    case mcp::MessageKind::notification:
      if (takes_notification()) on_notification(message, stream);
      return;
    case mcp::MessageKind::request:
      return on_server_request(message, stream);
  }
}

void McpSession::on_answer(const mcp::Message& message) {
  auto ticket = ticket_of(message.id);
  auto entry = ticket ? in_flight_.find(*ticket) : in_flight_.end();
  if (entry == in_flight_.end() || !entry->second.is_sent) {
    // Also the late answer to a request that was given up, which is nobody's fault.
    log::debug("an upstream server answered a request that is not open", {{"upstream", options_.name}});
    return;
  }
  if (message.kind == mcp::MessageKind::error_response) {
    return finish(*ticket,
                  {.reply = {.kind = ReplyKind::error, .body = std::string(message.body), .reason = {}, .detail = {}}});
  }
  if (!json::is_object(message.body)) {
    return finish(*ticket, {.reply = {.kind = ReplyKind::lost,
                                      .body = {},
                                      .reason = "upstream_answer_invalid",
                                      .detail = "the server's result is no JSON object"},
                            .code = ErrorCode::corrupt});
  }
  finish(*ticket,
         {.reply = {.kind = ReplyKind::result, .body = std::string(message.body), .reason = {}, .detail = {}}});
}

void McpSession::on_notification(const mcp::Message& message, std::uint64_t stream) {
  std::string_view params = message.params.empty() ? std::string_view("{}") : message.params;
  if (message.method == "notifications/progress") return on_progress(params);
  if (message.method == "notifications/message") return on_log_message(params, stream);
  if (message.method == "notifications/subscriptions/acknowledged") return on_acknowledged(params, stream);
  if (message.method == "notifications/cancelled") {
    auto id = member_of(params, "requestId");
    if (!id) return;
    // Withdraws a question of the server, or ends one of our subscriptions.
    std::string key = mcp::id_key(*id);
    std::erase_if(asks_, [&](const auto& entry) { return mcp::id_key(entry.second.raw_id) == key; });
    if (auto ticket = ticket_of(*id); ticket && listening_.contains(*ticket)) {
      transport_->abandon(*ticket);
      finish(*ticket,
             {.reply = {.kind = ReplyKind::lost, .body = {}, .reason = "lost", .detail = "ended by the server"}});
    }
    return;
  }
  if (stage_ == Stage::ready && events_.on_notification) events_.on_notification(message.method, params);
}

void McpSession::on_progress(std::string_view raw_params) {
  auto token = member_of(raw_params, "progressToken");
  auto ticket = token ? ticket_of(*token) : std::nullopt;
  auto entry = ticket ? in_flight_.find(*ticket) : in_flight_.end();
  if (entry == in_flight_.end() || entry->second.caller == nullptr || !entry->second.caller->wants_progress()) return;
  auto caller = entry->second.caller;
  caller->notify("notifications/progress",
                 mcp::with_members(raw_params, std::vector<mcp::MemberChange>{{"progressToken", ""}}));
}

void McpSession::on_log_message(std::string_view raw_params, std::uint64_t stream) {
  std::uint64_t ticket = 0;
  auto caller = caller_for(stream, "", ticket);
  if (caller == nullptr) return;
  auto wanted = caller->log_level();
  auto raw_level = member_of(raw_params, "level");
  auto level = raw_level ? json::decode_string(*raw_level) : std::nullopt;
  auto severity = level ? mcp::log_severity(*level) : std::nullopt;
  auto threshold = wanted ? mcp::log_severity(*wanted) : std::nullopt;
  // RFC 5424 counts from the worst, which is 0.
  if (severity && threshold && *severity <= *threshold) caller->notify("notifications/message", raw_params);
}

std::shared_ptr<Caller> McpSession::caller_for(std::uint64_t stream, std::string_view capability,
                                               std::uint64_t& ticket) const {
  auto can = [capability](const InFlight& entry) {
    return entry.caller != nullptr && entry.is_sent &&
           (capability.empty() || mcp::has_capability(entry.caller->capabilities(), capability));
  };
  if (auto own = in_flight_.find(stream); own != in_flight_.end()) {
    ticket = stream;
    return can(own->second) ? own->second.caller : nullptr;
  }
  std::shared_ptr<Caller> only;
  for (const auto& [number, entry] : in_flight_) {
    if (!can(entry)) continue;
    if (only != nullptr && only->key() != entry.caller->key()) return nullptr;
    if (only == nullptr) {
      only = entry.caller;
      ticket = number;
    }
  }
  return only;
}

void McpSession::on_server_request(const mcp::Message& message, std::uint64_t stream) {
  if (stage_ != Stage::ready) return;
  if (is_modern()) return complain("it sent a request, which servers of this revision must not");
  if (message.method == "ping") return transport_->send(mcp::encode_result(message.id, "{}"));
  auto refuse = [&](int code, std::string_view text) { transport_->send(mcp::encode_error(message.id, code, text)); };
  std::string_view capability = mcp::capability_of(message.method);
  if (capability.empty()) return refuse(method_not_found_code, "this client has no such method");
  std::string key = mcp::id_key(message.id);
  if (std::ranges::any_of(asks_, [&](const auto& entry) { return mcp::id_key(entry.second.raw_id) == key; })) {
    return refuse(invalid_request_code, "this id is in use already");
  }
  if (asks_.size() >= max_asks) return refuse(internal_error_code, "too many questions are open already");
  std::uint64_t ticket = 0;
  auto caller = caller_for(stream, capability, ticket);
  if (caller == nullptr) {
    return refuse(method_not_found_code, fmt::format("there is no client to ask: none that waits for this server alone "
                                                     "has declared {}",
                                                     capability));
  }
  std::uint64_t number = ++last_ask_;
  asks_[number] = {.raw_id = std::string(message.id), .ticket = ticket};
  caller->ask(message.method, message.params.empty() ? "{}" : std::string(message.params),
              [weak = weak_from_this(), &worker = worker_, number](Result<std::string> answer) {
                worker.post([weak, number, moved = std::move(answer)] {
                  if (auto self = weak.lock()) self->answer_ask(number, moved);
                });
              });
}

void McpSession::answer_ask(std::uint64_t number, const Result<std::string>& answer) {
  auto entry = asks_.find(number);
  if (entry == asks_.end() || stage_ != Stage::ready) return;
  std::string raw_id = std::move(entry->second.raw_id);
  asks_.erase(entry);
  if (answer && json::is_object(*answer)) {
    transport_->send(mcp::encode_result(raw_id, *answer));
  } else {
    transport_->send(mcp::encode_error(raw_id, internal_error_code,
                                       answer ? "the client's answer is no JSON object" : answer.error().message));
  }
}

void McpSession::drop_asks_of(std::uint64_t ticket) {
  for (auto entry = asks_.begin(); entry != asks_.end();) {
    if (entry->second.ticket != ticket) {
      ++entry;
      continue;
    }
    if (stage_ == Stage::ready) {
      transport_->send(mcp::encode_error(entry->second.raw_id, internal_error_code,
                                         "the request that the question belongs to has ended"));
    }
    entry = asks_.erase(entry);
  }
}

bool McpSession::takes_notification() {
  auto now = std::chrono::steady_clock::now();
  std::chrono::duration<double> passed = now - notification_time_;
  notification_time_ = now;
  notification_credit_ = std::max(notification_credit_ - passed.count() * notifications_per_second, 0.0);
  if (notification_credit_ >= notification_burst) {
    complain("it sends too many notifications; some were dropped");
    return false;
  }
  notification_credit_ += 1;
  return true;
}

void McpSession::complain(std::string_view what) {
  auto now = std::chrono::steady_clock::now();
  if (now - last_complaint_ < complaint_interval) {
    ++unlogged_complaints_;
    return;
  }
  last_complaint_ = now;
  log::warning("an upstream server does not keep to the protocol",
               {{"upstream", options_.name},
                {"what", utf8::truncate(what, max_shown_bytes)},
                {"more_of_this_kind", std::exchange(unlogged_complaints_, 0)}});
}

}  // namespace hive::upstreams
