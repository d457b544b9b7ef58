#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "gateway/upstreams/mcp_session.h"
#include "protocol/json.h"
#include "protocol/mcp/translation.h"

namespace hive::upstreams {

namespace {

constexpr std::chrono::milliseconds gather_time(20);
constexpr std::chrono::milliseconds first_delay(500);
constexpr std::chrono::milliseconds longest_delay(30'000);
constexpr int max_refusals = 2;   // in a row, before the server counts as away
constexpr int max_doublings = 6;  // of the delay
constexpr std::size_t max_watched = 1000;
constexpr std::string_view subscription_key = "io.modelcontextprotocol/subscriptionId";

/// {"notifications":{...}} for everything the server could tell of; empty if that is nothing.
std::string filter_of(const std::string& raw_capabilities, const std::set<std::string>& watched) {
  std::string filter;
  for (std::string_view kind : {"tools", "prompts", "resources"}) {
    if (!mcp::has_capability(raw_capabilities, kind)) continue;
    filter += fmt::format("{}\"{}ListChanged\":true", filter.empty() ? "" : ",", kind);
  }
  if (!watched.empty()) {
    std::string uris;
    for (const std::string& uri : watched)
      uris += (uris.empty() ? "" : ",") + json::encode_string(uri);
    filter += fmt::format("{}\"resourceSubscriptions\":[{}]", filter.empty() ? "" : ",", uris);
  }
  return filter.empty() ? "" : fmt::format("{{\"notifications\":{{{}}}}}", filter);
}

bool can_subscribe(const std::string& raw_capabilities) {
  auto members = json::parse_object(raw_capabilities, mcp::message_limits);
  auto resources = members ? json::find(*members, "resources") : std::nullopt;
  if (!resources || !json::is_object(*resources)) return false;
  auto inner = json::parse_object(*resources, mcp::message_limits);
  auto subscribe = inner ? json::find(*inner, "subscribe") : std::nullopt;
  return subscribe && json::decode_boolean(*subscribe).value_or(false);
}

}  // namespace

void McpSession::start_listening() {
  if (is_modern()) return listen_anew();
  if (options_.listen) transport_->listen();
  update_watches();
}

void McpSession::watch_resources(std::vector<std::string> uris) {
  std::set<std::string> wanted;
  for (std::string& uri : uris) {
    if (wanted.size() < max_watched) wanted.insert(std::move(uri));
  }
  if (wanted == watched_) return;
  watched_ = std::move(wanted);
  if (stage_ != Stage::ready) return;
  if (!is_modern()) return update_watches();
  listening_timer_ = worker_.schedule(gather_time, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->listen_anew();
  });
}

void McpSession::update_watches() {
  if (stage_ != Stage::ready || !can_subscribe(info_.capabilities)) return;
  auto tell = [this](std::string_view method, const std::string& uri) {
    send_own(method, fmt::format("{{\"uri\":{}}}", json::encode_string(uri)), options_.ping_timeout, info_.revision,
             [name = options_.name, uri](RequestOutcome outcome) {
               if (outcome.reply.kind == ReplyKind::result) return;
               log::debug("an upstream server does not change a subscription", {{"upstream", name}, {"uri", uri}});
             });
  };
  for (const std::string& uri : watched_) {
    if (!subscribed_.contains(uri)) tell("resources/subscribe", uri);
  }
  for (const std::string& uri : subscribed_) {
    if (!watched_.contains(uri)) tell("resources/unsubscribe", uri);
  }
  subscribed_ = watched_;
}

void McpSession::listen_anew() {
  if (stage_ != Stage::ready || !is_modern() || !options_.listen || listening_is_refused_) return;
  std::string params = filter_of(info_.capabilities, watched_);
  if (params.empty()) {
    for (std::uint64_t ticket : std::exchange(listening_, {}))
      withdraw(ticket, "nothing is listened for any more", {});
    return;
  }
  // The stream that runs already ends only when the new one is acknowledged, so that no change falls in between.
  auto ticket_box = std::make_shared<std::uint64_t>(0);
  *ticket_box = send_own("subscriptions/listen", params, std::chrono::milliseconds(0), info_.revision,
                         [weak = weak_from_this(), ticket_box](RequestOutcome outcome) {
                           if (auto self = weak.lock()) self->on_listening_ended(*ticket_box, outcome);
                         });
  listening_.insert(*ticket_box);
}

void McpSession::on_acknowledged(std::string_view raw_params, std::uint64_t stream) {
  std::uint64_t acknowledged = stream;
  if (acknowledged == 0) {
    auto members = json::parse_object(raw_params, mcp::message_limits);
    auto meta = members ? json::find(*members, "_meta") : std::nullopt;
    auto inner = meta && json::is_object(*meta) ? json::parse_object(*meta, mcp::message_limits)
                                                : Result<std::vector<json::Member>>{};
    auto id = inner ? json::find(*inner, subscription_key) : std::nullopt;
    for (std::uint64_t ticket : listening_) {
      if (id && json::decode_string(*id) == fmt::format("h-{}", ticket)) acknowledged = ticket;
    }
  }
  if (!listening_.contains(acknowledged)) return;
  listening_attempts_ = 0;
  listening_refusals_ = 0;
  std::set<std::uint64_t> older;
  for (std::uint64_t ticket : listening_) {
    if (ticket < acknowledged) older.insert(ticket);
  }
  for (std::uint64_t ticket : older) {
    listening_.erase(ticket);
    withdraw(ticket, "replaced by another subscription", {});
  }
}

void McpSession::on_listening_ended(std::uint64_t ticket, const RequestOutcome& outcome) {
  if (listening_.erase(ticket) == 0 || stage_ != Stage::ready) return;
  bool is_refused = outcome.reply.kind == ReplyKind::error || (outcome.http_status >= 400 && outcome.http_status < 500);
  if (is_refused) {
    listening_is_refused_ = true;
    log::info("an upstream server does not tell of changes", {{"upstream", options_.name}});
    return;
  }
  if (!listening_.empty()) return;  // a newer one takes its place
  // There is no other sign of life of a server without sessions.
  bool is_away = outcome.reply.kind == ReplyKind::not_sent;
  if (is_away && ++listening_refusals_ >= max_refusals) return fail({outcome.code, outcome.reply.detail});
  auto delay = std::min(first_delay * (1 << listening_attempts_), longest_delay);
  listening_attempts_ = std::min(listening_attempts_ + 1, max_doublings);
  listening_timer_ = worker_.schedule(delay, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->listen_anew();
  });
}

void McpSession::schedule_ping() {
  if (is_modern() || options_.ping_interval.count() == 0) return;
  ping_timer_ = worker_.schedule(options_.ping_interval, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->ping_if_quiet();
  });
}

void McpSession::ping_if_quiet() {
  if (stage_ != Stage::ready) return;
  if (std::chrono::steady_clock::now() - last_heard_ < options_.ping_interval) return schedule_ping();
  ping();
}

// A request that reached nobody makes it worth asking at once: whoever looks sees the truth, and the way back begins.
void McpSession::ping_after_failure() {
  bool is_useful = stage_ == Stage::ready && !is_modern() && options_.ping_interval.count() > 0 && !is_pinging_;
  if (is_useful) ping();
}

void McpSession::ping() {
  is_pinging_ = true;
  ping_timer_.cancel();
  send_own("ping", "{}", options_.ping_timeout, info_.revision, [weak = weak_from_this()](RequestOutcome outcome) {
    auto self = weak.lock();
    if (self == nullptr || self->stage_ != Stage::ready) return;
    self->is_pinging_ = false;
    // Any answer is a sign of life, also one that does not know the method.
    bool lives = outcome.reply.kind == ReplyKind::result || outcome.reply.kind == ReplyKind::error ||
                 outcome.reply.reason == "upstream_busy";
    if (lives) return self->schedule_ping();
    self->fail({outcome.code, "the server does not answer a ping: " + outcome.reply.detail});
  });
}

}  // namespace hive::upstreams
