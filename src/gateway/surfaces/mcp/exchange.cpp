#include "gateway/surfaces/mcp/exchange.h"

#include <charconv>

#include "gateway/surfaces/mcp/legacy_session.h"
#include "protocol/agent_protocol.h"
#include "protocol/json_object.h"

namespace hive::mcp_surface {

namespace {

// The order of the numbers is all that matters.
std::optional<double> number_of(std::string_view raw) {
  double value = 0;
  auto [end, error] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
  if (error != std::errc() || end != raw.data() + raw.size()) return std::nullopt;
  return value;
}

}  // namespace

Exchange::Exchange(net::Worker& worker, Client client, std::string text, std::shared_ptr<Reply> reply)
    : worker_(worker), client_(std::move(client)), text_(std::move(text)), reply_(std::move(reply)) {}

std::expected<std::shared_ptr<Exchange>, mcp::Fault> Exchange::parse(net::Worker& worker, Client client,
                                                                     std::string text, std::shared_ptr<Reply> reply) {
  auto exchange = std::make_shared<Exchange>(worker, std::move(client), std::move(text), std::move(reply));
  auto message = mcp::parse_message(exchange->text_);
  if (!message) return std::unexpected(std::move(message).error());
  exchange->message_ = *std::move(message);
  if (exchange->message_.kind != mcp::MessageKind::request) {
    return std::unexpected(mcp::Fault{.code = protocol::invalid_request_code, .message = "this is no request"});
  }
  if (!exchange->message_.params.empty()) {
    auto members = json::parse_object(exchange->message_.params, mcp::message_limits);
    if (members) exchange->parameters_ = *std::move(members);
  }
  auto meta = mcp::parse_meta(exchange->message_, exchange->parameters_);
  if (!meta) return std::unexpected(std::move(meta).error());
  exchange->meta_ = *std::move(meta);
  return exchange;
}

std::optional<std::string_view> Exchange::parameter(std::string_view key) const {
  return json::find(parameters_, key);
}

std::optional<std::string> Exchange::required_text(std::string_view key) {
  auto raw = parameter(key);
  auto text = raw ? json::decode_string(*raw) : std::nullopt;
  if (!text) fail(protocol::invalid_params_code, fmt::format("params.{} must be a string", key));
  return text;
}

std::optional<std::string> Exchange::log_level() const {
  return context_.session != nullptr ? context_.session->log_level() : context_.log_level;
}

void Exchange::cancel(std::string_view reason) {
  worker_.dispatch([self = shared_from_this(), reason = std::string(reason)] {
    if (!self->end(false)) return;
    auto on_cancel = std::exchange(self->on_cancel_, nullptr);
    if (on_cancel) on_cancel(reason);
  });
}

bool Exchange::end(bool is_answered) {
  if (over_.exchange(true)) return false;
  timer_.cancel();
  if (context_.session != nullptr) context_.session->withdraw_questions(*this, is_answered ? reply_.get() : nullptr);
  if (auto task = std::exchange(on_over_, nullptr)) task();
  return true;
}

void Exchange::finish(std::string_view raw_result, const mcp::CacheHint& hint) {
  if (over_) return;
  finish_adapted(mcp::adapt_result(raw_result, message_.method, context_.revision, context_.server_info, hint));
}

void Exchange::finish_adapted(std::string_view raw_result) {
  if (!end(true)) return;
  on_cancel_ = nullptr;
  reply_->finish(mcp::encode_result(message_.id, raw_result), 200);
}

void Exchange::fail(int code, std::string_view message, std::string_view raw_data, unsigned http_status) {
  if (!end(true)) return;
  on_cancel_ = nullptr;
  reply_->finish(mcp::encode_error(message_.id, code, message, raw_data), http_status);
}

void Exchange::fail_as_upstream(std::string_view raw_error) {
  if (over_) return;
  std::string error = mcp::adapt_error(raw_error, message_.method, context_.revision);
  auto members = json::parse_object(error, mcp::message_limits);
  auto code = members ? json::find(*members, "code") : std::nullopt;
  // Its -32602 speaks of arguments, not of the protocol's own fields, and such answers have the status 200.
  bool about_arguments = code && json::decode_integer(*code) == protocol::invalid_params_code;
  unsigned status = about_arguments ? 200 : mcp::http_status_of_error(error);
  if (!end(true)) return;
  on_cancel_ = nullptr;
  reply_->finish(mcp::encode_error_body(message_.id, error), status);
}

void Exchange::fail_not_found(std::string_view uri) {
  fail(is_modern() ? protocol::invalid_params_code : mcp::resource_not_found_code,
       fmt::format("Resource not found: {}", uri), json::ObjectText().text("uri", uri).take());
}

void Exchange::send(std::string message) {
  worker_.dispatch([self = shared_from_this(), message = std::move(message)]() mutable {
    if (!self->over_) self->reply_->send(std::move(message));
  });
}

void Exchange::interrupt() {
  worker_.dispatch([self = shared_from_this()] {
    if (!self->over_) self->reply_->interrupt();
  });
}

void Exchange::progress(std::string_view raw_params) {
  if (!wants_progress()) return;
  if (worker_.runs_here()) return send_progress(raw_params);
  worker_.post([self = shared_from_this(), copy = std::string(raw_params)] { self->send_progress(copy); });
}

void Exchange::send_progress(std::string_view raw_params) {
  if (over_) return;
  auto members = json::parse_object(raw_params, mcp::message_limits);
  auto raw = members ? json::find(*members, "progress") : std::nullopt;
  auto value = raw ? number_of(*raw) : std::nullopt;
  if (!value || (last_progress_ && *value <= *last_progress_)) return;
  last_progress_ = value;
  std::vector<mcp::MemberChange> changes = {{"progressToken", meta_.progress_token}, {"_meta", {}}};
  // The first revision knows numbers alone.
  if (context_.revision < mcp::Revision::v2025_03_26) changes.push_back({"message", {}});
  reply_->send(mcp::encode_notification("notifications/progress", mcp::with_members(raw_params, changes)));
}

void Exchange::log_message(std::string_view raw_params) {
  auto wanted = log_level();
  auto threshold = wanted ? mcp::log_severity(*wanted) : std::nullopt;
  if (!threshold) return;
  auto members = json::parse_object(raw_params, mcp::message_limits);
  auto raw = members ? json::find(*members, "level") : std::nullopt;
  auto name = raw ? json::decode_string(*raw) : std::nullopt;
  auto severity = name ? mcp::log_severity(*name) : std::nullopt;
  // RFC 5424 counts from the worst, which is 0.
  if (!severity || *severity > *threshold) return;
  send(mcp::encode_notification("notifications/message", raw_params));
}

void Exchange::set_timer(std::chrono::milliseconds delay, net::Task task) {
  if (!over_) timer_ = worker_.schedule(delay, std::move(task));
}

}  // namespace hive::mcp_surface
