#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "gateway/upstreams/mcp_session.h"
#include "protocol/json.h"
#include "protocol/mcp/translation.h"

namespace hive::upstreams {

namespace {

constexpr std::size_t max_name_bytes = 256;
constexpr std::size_t max_object_bytes = std::size_t{64} << 10;
constexpr std::size_t max_instructions_bytes = std::size_t{16} << 10;
constexpr std::size_t max_shown_bytes = 300;
constexpr std::chrono::milliseconds max_probe_time(5000);

using Members = std::vector<json::Member>;

Members members_of(std::string_view raw_object) {
  return json::parse_object(raw_object, mcp::message_limits).value_or(Members{});
}

std::string text_member(const Members& members, std::string_view key, std::size_t max_bytes) {
  auto raw = json::find(members, key);
  std::string text = raw ? json::decode_string(*raw).value_or("") : "";
  return std::string(utf8::truncate(text, max_bytes));
}

std::string object_member(const Members& members, std::string_view key) {
  auto raw = json::find(members, key);
  return raw && json::is_object(*raw) && raw->size() <= max_object_bytes ? std::string(*raw) : "{}";
}

std::vector<std::string> texts_of(std::optional<std::string_view> raw_array) {
  std::vector<std::string> texts;
  auto elements =
      raw_array ? json::parse_array(*raw_array, mcp::message_limits) : Result<std::vector<std::string_view>>{};
  if (!elements) return texts;
  for (std::string_view element : *elements) {
    if (auto text = json::decode_string(element); text && texts.size() < 64) texts.push_back(*text);
  }
  return texts;
}

bool has_revision(const std::vector<std::string>& names, bool modern) {
  return std::ranges::any_of(names, [modern](const std::string& name) {
    auto revision = mcp::revision_from_string(name);
    return revision && mcp::is_modern(*revision) == modern;
  });
}

std::string shown(std::string_view text) {
  return quote(utf8::truncate(text, max_shown_bytes));
}

struct RpcError {
  std::int64_t code = 0;
  std::string message;
  std::vector<std::string> supported;  ///< of -32022
};

RpcError read_error(std::string_view raw_error) {
  Members members = members_of(raw_error);
  auto raw_code = json::find(members, "code");
  auto raw_data = json::find(members, "data");
  RpcError error{.code = raw_code ? json::decode_integer(*raw_code).value_or(0) : 0,
                 .message = text_member(members, "message", max_shown_bytes),
                 .supported = {}};
  if (raw_data && json::is_object(*raw_data))
    error.supported = texts_of(json::find(members_of(*raw_data), "supported"));
  return error;
}

}  // namespace

void McpSession::on_open() {
  if (stage_ != Stage::opening) return;
  stage_ = Stage::agreeing;
  process_id_ = transport_->process_id().value_or(-1);
  bool knows_only_legacy = options_.transport == TransportKind::sse || has_restarted_;
  if (options_.era == EraPreference::legacy || knows_only_legacy) {
    initialize();
  } else {
    discover();
  }
}

void McpSession::discover() {
  send_own("server/discover", "{}", std::chrono::milliseconds(0), mcp::newest,
           [weak = weak_from_this()](RequestOutcome outcome) {
             auto self = weak.lock();
             if (self == nullptr || self->stage_ != Stage::agreeing) return;
             self->has_discovered_ = true;
             self->probe_deadline_.cancel();
             self->on_discovered(outcome);
           });
  if (options_.era != EraPreference::probe) return;
  // Some older servers keep silent. A slow modern one may still answer the probe afterwards; the first answer counts.
  probe_deadline_ = worker_.schedule(std::min(max_probe_time, options_.start_timeout / 3), [weak = weak_from_this()] {
    auto self = weak.lock();
    if (self != nullptr && self->stage_ == Stage::agreeing && !self->has_initialized_) self->initialize();
  });
}

void McpSession::on_discovered(const RequestOutcome& outcome) {
  const Reply& reply = outcome.reply;
  switch (reply.kind) {
    case ReplyKind::result: {
      std::vector<std::string> versions = texts_of(json::find(members_of(reply.body), "supportedVersions"));
      if (has_revision(versions, true)) {
        take_info(reply.body, true);
        info_.revision = mcp::newest;
        return become_ready();
      }
      if (versions.empty() || has_revision(versions, false)) return fall_back("it has no modern revision");
      return fail({ErrorCode::invalid_argument,
                   "the server speaks " + shown(join(versions, ", ")) + ", and no revision that this gateway knows"});
    }
    case ReplyKind::error: {
      RpcError error = read_error(reply.body);
      bool is_known_modern = error.code == mcp::header_mismatch_code || error.code == mcp::missing_capability_code ||
                             (error.code == mcp::unsupported_version_code && !error.supported.empty());
      if (is_known_modern && !has_revision(error.supported, false)) {
        return fail({ErrorCode::invalid_argument,
                     "the server refuses server/discover: " + shown(error.message) +
                         (error.supported.empty() ? "" : "; it speaks " + shown(join(error.supported, ", ")))});
      }
      return fall_back("it answered " + shown(error.message));
    }
    default: {
      bool has_answered = outcome.http_status != 0 && outcome.http_status < 500;
      if (!has_answered || outcome.code == ErrorCode::permission_denied) return fail({outcome.code, reply.detail});
      return fall_back(reply.detail);
    }
  }
}

void McpSession::fall_back(const std::string& because) {
  if (options_.era == EraPreference::modern) {
    return fail({ErrorCode::invalid_argument, "the server does not speak " + std::string(mcp::to_string(mcp::newest)) +
                                                  ", which the configuration asks for: " + because});
  }
  if (!has_initialized_) initialize();
}

void McpSession::initialize() {
  has_initialized_ = true;
  std::string params =
      fmt::format(R"({{"protocolVersion":{},"capabilities":{},"clientInfo":{}}})",
                  json::encode_string(mcp::to_string(mcp::newest_legacy)), options_.capabilities, options_.client_info);
  send_own("initialize", params, std::chrono::milliseconds(0), std::nullopt,
           [weak = weak_from_this()](RequestOutcome outcome) {
             auto self = weak.lock();
             if (self != nullptr && self->stage_ == Stage::agreeing) self->on_initialized(outcome);
           });
}

void McpSession::on_initialized(const RequestOutcome& outcome) {
  const Reply& reply = outcome.reply;
  if (reply.kind == ReplyKind::error) {
    if (start_again_unprobed()) return;
    return fail(
        {ErrorCode::invalid_argument, "the server refuses initialize: " + shown(read_error(reply.body).message)});
  }
  if (reply.kind != ReplyKind::result) {
    if (!fall_back_to_sse(outcome)) fail({outcome.code, reply.detail});
    return;
  }
  std::string version = text_member(members_of(reply.body), "protocolVersion", max_name_bytes);
  auto revision = mcp::revision_from_string(version);
  if (!revision || mcp::is_modern(*revision)) {
    return fail({ErrorCode::invalid_argument, "the server answers initialize with protocol version " + shown(version) +
                                                  ", which this gateway does not know"});
  }
  take_info(reply.body, false);
  info_.revision = *revision;
  transport_->set_revision(*revision);
  // Over HTTP a request could overtake the notification, so it is waited for.
  transport_->send(mcp::encode_notification("notifications/initialized", {}), [weak = weak_from_this()] {
    auto self = weak.lock();
    if (self == nullptr || self->stage_ != Stage::agreeing) return;
    if (self->options_.log_level && mcp::has_capability(self->info_.capabilities, "logging")) {
      self->log_level_ = self->options_.log_level;
      self->send_own("logging/setLevel", fmt::format("{{\"level\":{}}}", json::encode_string(*self->log_level_)),
                     self->options_.ping_timeout, self->info_.revision, [](const RequestOutcome&) {});
    }
    self->become_ready();
  });
}

// A child of the older era may not survive a question that it does not know, or take it for the beginning of a session
// and refuse the real one. It gets a second life in which it is asked nothing before initialize.
bool McpSession::start_again_unprobed() {
  bool was_probed = options_.transport == TransportKind::stdio && options_.era == EraPreference::probe &&
                    stage_ == Stage::agreeing && !has_restarted_;
  if (!was_probed) return false;
  has_restarted_ = true;
  has_initialized_ = false;
  transport_->close();
  in_flight_.clear();
  probe_deadline_.cancel();
  open_transport();
  return true;
}

bool McpSession::fall_back_to_sse(const RequestOutcome& outcome) {
  bool may_be_older = outcome.http_status == 400 || outcome.http_status == 404 || outcome.http_status == 405;
  if (options_.transport != TransportKind::http || options_.era == EraPreference::modern || !may_be_older) return false;
  // "Issue a GET request to the server URL, expecting that this will open an SSE stream" (Backwards Compatibility).
  options_.transport = TransportKind::sse;
  transport_->close();
  in_flight_.clear();
  probe_deadline_.cancel();
  has_initialized_ = false;
  open_transport();
  return true;
}

void McpSession::take_info(std::string_view raw_result, bool is_discovery) {
  Members result = members_of(raw_result);
  std::string raw_info = object_member(result, "serverInfo");
  if (is_discovery) {
    std::string raw_meta = object_member(result, "_meta");
    Members meta = members_of(raw_meta);  // views into it
    if (json::find(meta, "io.modelcontextprotocol/serverInfo")) {
      raw_info = object_member(meta, "io.modelcontextprotocol/serverInfo");
    }
  }
  Members info = members_of(raw_info);
  info_.raw_info = raw_info;
  info_.name = text_member(info, "name", max_name_bytes);
  info_.version = text_member(info, "version", max_name_bytes);
  info_.capabilities = object_member(result, "capabilities");
  info_.instructions = text_member(result, "instructions", max_instructions_bytes);
}

void McpSession::become_ready() {
  stage_ = Stage::ready;
  start_deadline_.cancel();
  probe_deadline_.cancel();
  last_heard_ = std::chrono::steady_clock::now();
  // An initialize that a late answer to the probe has made needless, or the other way round, is waited for no longer.
  for (auto entry = in_flight_.begin(); entry != in_flight_.end();) {
    bool is_handshake = entry->second.method == "initialize" || entry->second.method == "server/discover";
    if (is_handshake) transport_->abandon(entry->first);
    entry = is_handshake ? in_flight_.erase(entry) : std::next(entry);
  }
  if (events_.on_ready) events_.on_ready(info_);
  if (stage_ != Stage::ready) return;
  start_listening();
  schedule_ping();
}

}  // namespace hive::upstreams
