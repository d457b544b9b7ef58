// What a server offers: asked for, held against what was accepted, and published.
#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "gateway/upstreams/server.h"
#include "gateway/upstreams/tool_digest.h"
#include "protocol/json.h"
#include "protocol/mcp/http_headers.h"
#include "protocol/mcp/message.h"

namespace hive::upstreams {

namespace {

constexpr std::size_t max_notes = 16;
constexpr std::size_t max_told_at_once = 20;

std::size_t index_of(ItemKind kind) {
  return static_cast<std::size_t>(kind);
}

}  // namespace

void Server::on_notification(std::string_view method, std::string_view raw_params) {
  if (stopped_) return;
  std::chrono::milliseconds gather = environment_->tuning.gather;
  if (method == "notifications/tools/list_changed") {
    want(ItemKind::tools, gather);
  } else if (method == "notifications/prompts/list_changed") {
    want(ItemKind::prompts, gather);
  } else if (method == "notifications/resources/list_changed") {
    want(ItemKind::resources, gather);
    want(ItemKind::templates, gather);
  } else if (method == "notifications/resources/updated") {
    auto members = json::parse_object(raw_params, mcp::message_limits).value_or(std::vector<json::Member>());
    auto raw_uri = json::find(members, "uri");
    auto uri = raw_uri ? json::decode_string(*raw_uri) : std::nullopt;
    if (!uri) return;
    {
      std::lock_guard lock(mutex_);
      if (!watched_.contains(*uri)) return;
    }
    Change change;
    change.updated_resource = *std::move(uri);
    environment_->changed(change);
  }
}

void Server::want(ItemKind kind, std::chrono::milliseconds delay) {
  wanted_[index_of(kind)] = true;
  schedule_refresh(delay);
}

void Server::want_all(std::chrono::milliseconds delay) {
  wanted_.fill(true);
  schedule_refresh(delay);
}

// However often a server says that something changed, it is asked at intervals.
void Server::schedule_refresh(std::chrono::milliseconds delay) {
  if (lister_ != nullptr || is_settling_) return;  // publish() looks at what is wanted
  SteadyTime now = environment_->clock.steady_now();
  if (delay.count() > 0 && refreshed_at_ != SteadyTime()) {
    auto pause = std::chrono::ceil<std::chrono::milliseconds>(refreshed_at_ + environment_->tuning.refresh_pause - now);
    delay = std::max(delay, pause);
  }
  if (is_refresh_scheduled_ && refresh_at_ <= now + delay) return;
  is_refresh_scheduled_ = true;
  refresh_at_ = now + delay;
  refresh_ = worker_.schedule(delay, [weak = weak_from_this()] {
    if (auto self = weak.lock()) {
      self->is_refresh_scheduled_ = false;
      self->asking_ = std::exchange(self->wanted_, {});
      self->refresh();
    }
  });
}

void Server::refresh() {
  if (stopped_ || lister_ != nullptr || is_settling_ || !main_is(Session::Phase::ready)) return;
  // What is said to have changed meanwhile waits for the next round.
  auto next = std::ranges::find(asking_, true);
  if (next == asking_.end()) return publish();
  *next = false;
  ItemKind kind = item_kinds[static_cast<std::size_t>(next - asking_.begin())];
  std::vector<std::string> capabilities = capability_names(info_->capabilities);
  bool is_declared = std::ranges::find(capabilities, capability_name(kind)) != capabilities.end();
  // Old servers declare nothing at all and have tools nevertheless.
  if (!is_declared && !(capabilities.empty() && kind == ItemKind::tools)) return take_listed(kind, Lister::Listed());
  const Tuning& tuning = environment_->tuning;
  lister_ = std::make_shared<Lister>(*main_->connection, kind, tuning.listing, tuning.list_timeout,
                                     [weak = weak_from_this(), kind](Result<Lister::Listed> listed) {
                                       if (auto self = weak.lock()) self->take_listed(kind, std::move(listed));
                                     });
  lister_->start();
}

void Server::take_listed(ItemKind kind, Result<Lister::Listed> listed) {
  lister_.reset();
  if (stopped_) return;
  std::vector<std::string>& notes = notes_[index_of(kind)];
  if (!listed) {
    // What was listed before stays: a server that hiccups has not lost its tools.
    notes = {escape_for_terminal(listed.error().message)};
    log::warning("upstream server cannot list", {{"upstream", config_.name}, {"reason", notes.front()}});
    failed_[index_of(kind)] = true;
    return refresh();
  }
  notes = std::move(listed->notes);
  if (kind != ItemKind::tools) {
    draft_.of(kind) = std::move(listed->items);
    return refresh();
  }
  leave_out_unreachable(listed->items);
  listed_tools_ = std::move(listed->items);
  settle_tools();
}

// MCP 2026-07-28, Custom Headers from Tool Parameters: a client on HTTP leaves out tools that break its rules.
void Server::leave_out_unreachable(std::vector<ListedItem>& tools) {
  mirrored_.clear();
  if (config_.transport != "http" || !info_ || !mcp::is_modern(info_->revision)) return;
  std::erase_if(tools, [&](const ListedItem& tool) {
    if (!tool.raw.contains("x-mcp-header")) return false;
    auto members = json::parse_object(tool.raw, mcp::message_limits).value_or(std::vector<json::Member>());
    auto parameters = mcp::mirrored_parameters(json::find(members, "inputSchema").value_or("{}"));
    if (!parameters) {
      notes_[index_of(ItemKind::tools)].push_back(fmt::format("the tool {} is left out: {}", quote(tool.name),
                                                              escape_for_terminal(parameters.error().message)));
      return true;
    }
    if (!parameters->empty()) mirrored_.insert(tool.name);
    return false;
  });
}

void Server::settle_tools() {
  if (!config_.pin_tools) {
    draft_.of(ItemKind::tools) = listed_tools_;
    draft_.held_back.clear();
    return refresh();
  }
  if (may_accept_first_sight_ && !listed_tools_.empty()) return accept_first_sight();
  apply_pins();
  refresh();
}

// Trust on first use: a server that was never seen before is taken as it is, and from then on at its word.
void Server::accept_first_sight() {
  is_settling_ = true;
  AcceptedTools seen;
  for (const ListedItem& tool : listed_tools_)
    seen[tool.name] = {tool_digest(tool.raw), tool.raw};
  environment_->database.post([weak = weak_from_this(), seen = std::move(seen), round = listing_round_,
                               environment = environment_, name = config_.name](store::Connection& connection) mutable {
    WallTime now = environment->clock.wall_now();
    Result<void> stored = connection.transaction([&](store::Connection& inside) -> Result<void> {
      for (const auto& [tool, accepted] : seen)
        TRY(store_accepted_tool(inside, name, tool, accepted, now));
      return {};
    });
    auto self = weak.lock();
    if (self == nullptr) return;
    self->worker_.post([weak, stored = std::move(stored), seen = std::move(seen), round]() mutable {
      auto settled = weak.lock();
      if (settled == nullptr || settled->stopped_) return;
      settled->is_settling_ = false;
      if (stored) {
        settled->may_accept_first_sight_ = false;
        settled->accepted_ = std::move(seen);
        for (const auto& [tool, accepted] : settled->accepted_) {
          settled->tell("tool_accepted", fmt::format("{} at first sight, sha256 {}", quote(tool), accepted.sha256));
        }
      } else {
        log::error("the descriptions of an upstream server's tools cannot be stored; they are held back",
                   {{"upstream", settled->config_.name}, {"reason", stored.error().message}});
      }
      // A session that began meanwhile has not been asked yet.
      if (round != settled->listing_round_) return settled->schedule_refresh({});
      settled->apply_pins();
      settled->refresh();
    });
  });
}

void Server::apply_pins() {
  PinningResult result = hold_back_changed(config_.name, listed_tools_, accepted_);
  std::size_t told = 0;
  for (const HeldBackTool& tool : result.held_back) {
    std::string& digest = told_held_back_[tool.tool];
    if (digest == tool.current_sha256) continue;
    digest = tool.current_sha256;
    if (++told > max_told_at_once) continue;
    tell("tool_held_back",
         fmt::format("{} is {}, sha256 {}", quote(tool.tool),
                     tool.accepted_sha256.empty() ? "new" : "described otherwise than accepted", tool.current_sha256));
  }
  // A server that invents names would fill the memory.
  if (told_held_back_.size() > 2 * environment_->tuning.listing.max_items) told_held_back_.clear();
  draft_.of(ItemKind::tools) = std::move(result.offered);
  draft_.held_back = std::move(result.held_back);
}

void Server::publish() {
  draft_.capabilities = capability_names(info_->capabilities);
  draft_.notes.clear();
  for (const std::vector<std::string>& notes : notes_) {
    for (const std::string& note : notes) {
      if (draft_.notes.size() < max_notes) draft_.notes.push_back(note);
    }
  }
  auto published = std::make_shared<const Catalog>(draft_);
  std::shared_ptr<const Catalog> before;
  {
    std::lock_guard lock(mutex_);
    before = std::exchange(catalog_, published);
  }
  auto differs = [&](ItemKind kind) { return before->of(kind) != published->of(kind); };
  Change change;
  change.tools = differs(ItemKind::tools);
  change.prompts = differs(ItemKind::prompts);
  change.resources = differs(ItemKind::resources) || differs(ItemKind::templates);
  environment_->changed(change);
  refreshed_at_ = environment_->clock.steady_now();
  bool is_more_wanted = std::ranges::find(wanted_, true) != wanted_.end();
  if (is_more_wanted) schedule_refresh(environment_->tuning.gather);
  for (ItemKind kind : item_kinds) {
    if (std::exchange(failed_[index_of(kind)], false)) want(kind, environment_->tuning.refresh_retry);
  }
  // A server that forgot to tell of a change is found out.
  full_refresh_ = worker_.schedule(environment_->tuning.refresh_interval, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->want_all({});
  });
}

void Server::stop_listing() {
  lister_.reset();
  ++listing_round_;
  refresh_.cancel();
  full_refresh_.cancel();
  is_refresh_scheduled_ = false;
  asking_ = {};
}

void Server::accept(std::string tool, std::string sha256, std::move_only_function<void(Result<void>)> done) {
  // `done` runs on the store's thread, as promised, whatever the answer.
  auto answer = [environment = environment_](std::move_only_function<void(Result<void>)> to, Result<void> result) {
    environment->database.post(
        [to = std::move(to), result = std::move(result)](store::Connection&) mutable { to(std::move(result)); });
  };
  worker_.post([weak = weak_from_this(), answer, tool = std::move(tool), sha256 = std::move(sha256),
                done = std::move(done)]() mutable {
    auto self = weak.lock();
    if (self == nullptr || self->stopped_) {
      return answer(std::move(done), fail(ErrorCode::not_found, "the upstream server is not used any more"));
    }
    std::shared_ptr<const Catalog> catalog = self->catalog();
    auto held = std::ranges::find(catalog->held_back, tool, &HeldBackTool::tool);
    if (held == catalog->held_back.end()) {
      return answer(std::move(done), fail(ErrorCode::not_found, "no tool {} of the upstream server {} is held back",
                                          quote(tool), quote(self->config_.name)));
    }
    if (held->current_sha256 != sha256) {
      return answer(std::move(done), fail(ErrorCode::already_exists,
                                          "the tool {} is described otherwise by now (sha256 {}); look at it again",
                                          quote(tool), held->current_sha256));
    }
    AcceptedTool accepted{held->current_sha256, held->current_raw};
    self->environment_->database.post([weak, answer, environment = self->environment_, name = self->config_.name,
                                       tool = std::move(tool), accepted = std::move(accepted),
                                       done = std::move(done)](store::Connection& connection) mutable {
      Result<void> stored = store_accepted_tool(connection, name, tool, accepted, environment->clock.wall_now());
      auto owner = weak.lock();
      if (!stored || owner == nullptr) return done(std::move(stored));
      // The answer comes when the tool is offered.
      owner->worker_.post(
          [weak, answer, tool = std::move(tool), accepted = std::move(accepted), done = std::move(done)]() mutable {
            if (auto offering = weak.lock(); offering != nullptr && !offering->stopped_) {
              offering->may_accept_first_sight_ = false;
              offering->accepted_[std::move(tool)] = std::move(accepted);
              offering->apply_pins();
              offering->publish();
            }
            answer(std::move(done), {});
          });
    });
  });
}

bool Server::watch(const std::string& uri) {
  {
    std::lock_guard lock(mutex_);
    auto known = std::ranges::find(catalog_->capabilities, "resources.subscribe");
    bool is_new = !watched_.contains(uri);
    if (known == catalog_->capabilities.end()) return false;
    if (is_new && watched_.size() >= environment_->tuning.max_watched) return false;
    ++watched_[uri];
    if (!is_new) return true;
  }
  worker_.post([weak = weak_from_this()] {
    if (auto self = weak.lock()) self->apply_watches();
  });
  return true;
}

void Server::unwatch(const std::string& uri) {
  {
    std::lock_guard lock(mutex_);
    auto entry = watched_.find(uri);
    if (entry == watched_.end() || --entry->second > 0) return;
    watched_.erase(entry);
  }
  worker_.post([weak = weak_from_this()] {
    if (auto self = weak.lock()) self->apply_watches();
  });
}

void Server::apply_watches() {
  if (stopped_ || !main_is(Session::Phase::ready)) return;
  std::vector<std::string> uris;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [uri, count] : watched_)
      uris.push_back(uri);
  }
  if (uris.empty() && !is_watching_) return;
  is_watching_ = !uris.empty();
  main_->connection->watch_resources(std::move(uris));
}

}  // namespace hive::upstreams
