#include "agent/session.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "crypto/sha256.h"
#include "protocol/json.h"
#include "protocol/tools.h"

namespace hive::agent {

namespace {

// The list is the same for the life of the program, and so is its digest.
const std::string& ping_result() {
  static const std::string result = protocol::encode_ping_result(to_hex(crypto::sha256(protocol::tools_list_result())));
  return result;
}

// Progress is a courtesy: it must not stand in the way of answers.
constexpr size_t max_queued_for_progress = size_t{1} << 20;

constexpr std::string_view newest_protocol = "2025-06-18";

std::string initialize_result(std::string_view params) {
  std::string version(newest_protocol);
  if (!params.empty()) {
    if (auto members = json::parse_object(params, {.max_bytes = params.size()})) {
      auto asked = json::find(*members, "protocolVersion");
      auto text = asked ? json::decode_string(*asked) : std::nullopt;
      // Dates, so the older one is the one that both know.
      if (text && text->size() == newest_protocol.size() && *text < version) version = *text;
    }
  }
  return fmt::format(
      R"({{"protocolVersion":{},"capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"myrmex-agent","version":"{}"}}}})",
      json::encode_string(version), HIVE_VERSION);
}

}  // namespace

Session::Session(std::shared_ptr<SessionHost> host, std::shared_ptr<net::ssh::LineChannel> channel,
                 std::move_only_function<void()> on_answered)
    : host_(std::move(host)), channel_(std::move(channel)), on_answered_(std::move(on_answered)) {}

void Session::on_line(std::string_view line) {
  if (trim(line).empty()) return;
  json::Limits limits{.max_bytes = protocol::default_max_line_bytes};
  auto request = protocol::parse_agent_request(line, limits);
  if (!request) {
    bool is_json = json::validate(line, limits).has_value();
    send_error("null", is_json ? protocol::invalid_request_code : protocol::parse_error_code, request.error().message,
               "invalid_request");
    return;
  }
  on_request(*request);
}

void Session::on_request(const protocol::AgentRequest& request) {
  if (request.method == "tools/call") {
    call_tool(request);
  } else if (request.method == "notifications/cancelled") {
    cancel_call(request.params);
  } else if (request.method.starts_with("notifications/")) {
    return;
  } else if (request.method == "tools/list") {
    send_result(request.id, protocol::tools_list_result());
  } else if (request.method == "ping") {
    send_result(request.id, ping_result());
  } else if (request.method == "initialize") {
    send_result(request.id, initialize_result(request.params));
  } else {
    send_error(request.id, protocol::method_not_found_code,
               fmt::format("Method not found: {}", utf8::truncate(request.method, 200)), "method_not_found");
  }
}

void Session::call_tool(const protocol::AgentRequest& request) {
  auto params = protocol::parse_tool_call_params(request.params);
  if (!params) {
    send_error(request.id, protocol::invalid_params_code, params.error().message, "invalid_arguments");
    return;
  }
  ToolHandler handler = find_tool_handler(params->name);
  if (handler == nullptr) {
    send_error(request.id, protocol::method_not_found_code,
               fmt::format("Tool not found: {}", utf8::truncate(params->name, 200)), "tool_not_found");
    return;
  }
  bool has_id = !json::is_null(request.id);
  if (has_id && std::ranges::any_of(calls_, [&](const auto& item) { return item.second.id == request.id; })) {
    send_error(request.id, protocol::invalid_request_code, "a call with this id is still running", "duplicate_id");
    return;
  }
  if (std::string_view refused = host_->begin_call(); !refused.empty()) {
    std::string_view text = refused == "busy"
                                ? "agent is busy: as many calls run already as max_concurrent_calls admits; try again"
                                : "agent is stopping and takes no more calls";
    send_result(request.id, encode_tool_result(denied(refused, text)));
    return;
  }

  std::uint64_t number = next_number_++;
  Running& running = calls_[number];
  running.id = request.id;
  running.progress_token = params->progress_token;
  std::weak_ptr<Session> weak = weak_from_this();
  ToolCall call;
  call.arguments = params->arguments;
  call.timeout = params->timeout;
  if (!params->progress_token.empty()) {
    call.progress = [weak, number](std::string_view text, std::uint64_t total_bytes) {
      if (auto self = weak.lock()) self->send_progress(number, text, total_bytes);
    };
  }
  // The place is given back however the call ends, also when the channel is gone by then.
  call.reply = [weak, number, host = host_](ToolReply reply) {
    host->end_call();
    if (auto self = weak.lock()) self->finish(number, std::move(reply));
  };
  CancelHook cancel_hook = handler(host_->services(), std::move(call));
  // The handler may have replied already.
  if (auto found = calls_.find(number); found != calls_.end()) found->second.cancel = std::move(cancel_hook);
}

void Session::cancel_call(std::string_view params) {
  if (params.empty()) return;
  auto members = json::parse_object(params, {.max_bytes = params.size()});
  if (!members) return;
  auto id = json::find(*members, "requestId");
  if (!id || json::is_null(*id)) return;
  for (auto& [number, call] : calls_) {
    if (call.id == *id) {
      // The reply may come at once and change the table, so the walk ends here.
      cancel(call);
      return;
    }
  }
}

void Session::cancel(Running& call) {
  if (call.cancel_wanted || !call.cancel) return;
  call.cancel_wanted = true;
  CancelHook hook = std::move(call.cancel);
  hook();
}

void Session::cancel_all() {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(calls_.size());
  for (const auto& [number, call] : calls_)
    numbers.push_back(number);
  for (std::uint64_t number : numbers) {
    if (auto found = calls_.find(number); found != calls_.end()) cancel(found->second);
  }
}

void Session::answered() {
  if (on_answered_) on_answered_();
}

void Session::send_progress(std::uint64_t number, std::string_view text, std::uint64_t total_bytes) {
  auto found = calls_.find(number);
  if (found == calls_.end() || !waiting_.empty() || channel_->queued_bytes() > max_queued_for_progress) return;
  // The specification wants the number to grow with every message.
  found->second.last_progress = std::max(found->second.last_progress + 1, total_bytes);
  auto sent =
      channel_->send(protocol::encode_progress(found->second.progress_token, found->second.last_progress, text));
  if (!sent) log::debug("progress dropped", {{"reason", sent.error().message}});
}

void Session::finish(std::uint64_t number, ToolReply reply) {
  auto node = calls_.extract(number);
  if (node.empty()) return;
  send_answer(encode_answer(node.mapped().id, reply));
  if (reply.error_code == 0) answered();
}

void Session::send_error(std::string_view raw_id, int code, std::string_view message, std::string_view reason) {
  send_answer(protocol::encode_error(raw_id, code, message, protocol::Outcome::denied, reason));
}

void Session::send_result(std::string_view raw_id, std::string_view raw_result) {
  send_answer(protocol::encode_result(raw_id, raw_result));
  answered();
}

void Session::send_answer(std::string line) {
  if (!channel_->is_open()) return;
  if (waiting_.empty()) {
    auto sent = channel_->send(line);
    if (sent) return;
    if (sent.error().code != ErrorCode::resource_exhausted) {
      log::warning("answer not sent", {{"reason", sent.error().message}});
      return;
    }
    channel_->set_reading(false);
  }
  waiting_.push_back(std::move(line));
}

void Session::on_writable() {
  while (!waiting_.empty()) {
    if (!channel_->send(waiting_.front())) return;
    waiting_.pop_front();
  }
  channel_->set_reading(true);
}

void Session::on_closed(const Error& reason) {
  log::debug("channel closed", {{"gateway", channel_->peer().address}, {"reason", reason.message}});
  std::shared_ptr<Session> alive = shared_from_this();
  cancel_all();
  calls_.clear();
  waiting_.clear();
  host_->closed(*this);
}

void Session::close(std::string_view reason) {
  channel_->close(reason);
}

void Session::let_go() {
  calls_.clear();
  waiting_.clear();
  channel_.reset();
}

}  // namespace hive::agent
