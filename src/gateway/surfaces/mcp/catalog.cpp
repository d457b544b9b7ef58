#include "gateway/surfaces/mcp/catalog.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "gateway/surfaces/mcp/own_entries.h"
#include "protocol/mcp/translation.h"

namespace hive::mcp_surface {

namespace {

constexpr std::chrono::seconds max_age{5};
constexpr std::chrono::milliseconds max_age_incomplete{100};
// Who has not named its tools by then has none.
constexpr std::chrono::minutes max_silence{1};

void mix(std::size_t& digest, std::size_t value) {
  digest ^= value + 0x9e3779b97f4a7c15U + (digest << 6U) + (digest >> 2U);
}

void mix(std::size_t& digest, std::string_view text) {
  mix(digest, std::hash<std::string_view>()(text));
}

/// Hundreds of agents describe their tools in the same words, which are kept and digested once.
class SharedTexts {
 public:
  struct Text {
    std::shared_ptr<const std::string> text;
    std::size_t digest = 0;
  };
  /// `name`: what the text is about; the last one of the same name is most often the same text.
  const Text& keep(std::string_view name, std::string text) {
    auto last = last_.find(name);
    if (last != last_.end() && *last->second->text == text) return *last->second;
    auto found = texts_.find(text);
    if (found == texts_.end()) {
      auto kept = std::make_shared<const std::string>(std::move(text));
      std::string_view view = *kept;
      found = texts_.emplace(view, Text{std::move(kept), std::hash<std::string_view>()(view)}).first;
    }
    last_[std::string(name)] = &found->second;
    return found->second;
  }

 private:
  std::unordered_map<std::string_view, Text> texts_;
  std::map<std::string, const Text*, std::less<>> last_;  // elements of texts_, which stay where they are
};

class Builder {
 public:
  Builder(const Dependencies& dependencies, Catalog& catalog) : dependencies_(dependencies), catalog_(catalog) {}

  void build() {
    read_upstreams();
    add_tools();
    add_others();
    for (const Section& section : catalog_.sections) {
      for (const Entry& entry : section.entries)
        mix(catalog_.digest, entry.digest);
      mix(catalog_.digest, section.entries.size());
    }
  }

 private:
  using Items = std::vector<upstreams::Item> upstreams::Listing::*;

  void read_upstreams() {
    if (dependencies_.upstreams == nullptr) return;
    listing_ = dependencies_.upstreams->listing();
    for (const upstreams::UpstreamStatus& status : dependencies_.upstreams->statuses())
      if (status.prefix.empty()) without_prefix_.insert(status.name);
  }

  void add(Section& section, Entry entry, std::string raw) {
    const SharedTexts::Text& text = texts_.keep(entry.own_name, std::move(raw));
    entry.raw = text.text;
    std::size_t digest = text.digest;
    for (std::string_view part : {std::string_view(entry.name), std::string_view(entry.target)})
      mix(digest, part);
    entry.digest = digest;
    section.entries.push_back(std::move(entry));
  }

  /// Those of upstreams with or without a prefix; names that are taken are left out, so that no upstream can stand for
  /// an agent or for the gateway.
  void add_items(Kind kind, Items items, std::string_view gate, bool with_prefix, const Section& taken) {
    if (listing_ == nullptr) return;
    for (const upstreams::Item& item : (*listing_).*items) {
      if (without_prefix_.contains(item.upstream) == with_prefix) continue;
      if (taken.by_name.contains(item.public_name) || !seen_.insert(item.public_name).second) continue;
      add(section(kind),
          Entry{.name = item.public_name,
                .owner = Owner::upstream,
                .target = item.upstream,
                .own_name = item.name,
                .gate = gate.empty() ? item.name : std::string(gate)},
          item.raw);
    }
  }

  void add_tools() {
    // Those of the gateway and of agents are named first, and listed in their place.
    Section ours;
    fleet::SnapshotPointer fleet = dependencies_.fleet.snapshot();
    std::size_t tools_of_agents = 0;
    for (const fleet::AgentPointer& agent : fleet->agents)
      tools_of_agents += agent->tools == nullptr ? 0 : agent->tools->size();
    std::vector<OwnEntry> own = own_tools(dependencies_.approvals != nullptr);
    ours.entries.reserve(own.size() + tools_of_agents);  // by_name has views of them
    for (OwnEntry& each : own)
      add_once(ours, std::move(each.entry), std::move(each.raw));
    for (const fleet::AgentPointer& agent : fleet->agents) {
      if (agent->tools == nullptr) {
        look_for_silence(*agent);
        continue;
      }
      for (const fleet::Tool& tool : *agent->tools) {
        add_once(ours,
                 Entry{.name = mcp::public_tool_name(agent->id, tool.name),
                       .owner = Owner::agent,
                       .target = agent->id,
                       .own_name = tool.name,
                       .gate = tool.name},
                 tool.raw);
      }
    }
    Section& tools = section(Kind::tools);
    add_items(Kind::tools, &upstreams::Listing::tools, {}, false, ours);
    std::size_t place = tools.entries.size();
    add_items(Kind::tools, &upstreams::Listing::tools, {}, true, ours);
    tools.entries.insert(tools.entries.begin() + static_cast<std::ptrdiff_t>(place),
                         std::make_move_iterator(ours.entries.begin()), std::make_move_iterator(ours.entries.end()));
    index(tools);
  }

  void add_once(Section& section, Entry entry, std::string raw) {
    if (section.by_name.contains(entry.name)) return;
    add(section, std::move(entry), std::move(raw));
    section.by_name.emplace(section.entries.back().name, section.entries.size() - 1);
  }

  void look_for_silence(const fleet::AgentStatus& agent) {
    if (agent.online && dependencies_.clock.wall_now() - agent.connected_at < max_silence) catalog_.is_complete = false;
  }

  void add_kind(Kind kind, Items items, std::string_view gate, std::vector<OwnEntry> own) {
    seen_.clear();
    Section ours;
    ours.entries.reserve(own.size());
    for (OwnEntry& each : own)
      add_once(ours, std::move(each.entry), std::move(each.raw));
    Section& all = section(kind);
    add_items(kind, items, gate, false, ours);
    std::ranges::copy(ours.entries, std::back_inserter(all.entries));
    add_items(kind, items, gate, true, ours);
    index(all);
  }

  void add_others() {
    add_kind(Kind::prompts, &upstreams::Listing::prompts, prompt_gate, own_prompts());
    add_kind(Kind::resources, &upstreams::Listing::resources, resource_gate, own_resources());
    add_kind(Kind::templates, &upstreams::Listing::templates, resource_gate,
             own_templates(static_cast<bool>(dependencies_.read_audit)));
  }

  Section& section(Kind kind) { return catalog_.sections[static_cast<std::size_t>(kind)]; }

  static void index(Section& section) {
    section.by_name.reserve(section.entries.size());
    for (std::size_t i = 0; i < section.entries.size(); ++i)
      section.by_name.emplace(section.entries[i].name, i);
  }

  const Dependencies& dependencies_;
  Catalog& catalog_;
  std::shared_ptr<const upstreams::Listing> listing_;
  std::set<std::string, std::less<>> without_prefix_;
  std::set<std::string, std::less<>> seen_;
  SharedTexts texts_;
};

}  // namespace

const Entry* Section::find(std::string_view name) const {
  auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : &entries[found->second];
}

bool is_visible(const policy::Policy& policy, const policy::Principal& principal, const Entry& entry) {
  if (entry.for_admins && (principal.role != policy::Role::admin || principal.scope() != nullptr)) return false;
  if (entry.for_callers) {
    policy::Question question{.principal = principal, .agent = {}, .tool = entry.name, .arguments = "{}"};
    if (!policy.check_role(question).allowed()) return false;
  }
  return entry.owner == Owner::gateway || policy.reaches(principal, entry.target, entry.gate);
}

std::size_t digest_of_visible(const policy::Policy& policy, const policy::Principal& principal,
                              const Section& section) {
  std::size_t digest = 0;
  for (const Entry& entry : section.entries)
    if (is_visible(policy, principal, entry)) mix(digest, entry.digest);
  return digest;
}

std::string scope_key(const policy::Principal& principal) {
  std::string key(policy::to_string(principal.role));
  const policy::Scope* scope = principal.scope();
  if (scope == nullptr) return key;
  for (const auto* part : {&scope->agents, &scope->tags, &scope->tools}) {
    key += '\n';
    for (const std::string& each : *part) {
      key += '\t';
      key += each;
    }
  }
  return key;
}

bool Catalogs::is_stale(const Catalog& catalog) const {
  return dependencies_.clock.steady_now() - catalog.built_at >= max_age;
}

std::shared_ptr<const Catalog> Catalogs::current() {
  std::lock_guard lock(mutex_);
  bool is_outdated = outdated_.exchange(false) || current_ == nullptr;
  if (!is_outdated && !current_->is_complete) {
    is_outdated = dependencies_.clock.steady_now() - current_->built_at >= max_age_incomplete;
  }
  if (is_outdated) {
    install(build());
    return current_;
  }
  if (is_stale(*current_) && !std::exchange(is_refreshing_, true)) {
    // Nothing is known to have changed, so nobody waits for it.
    dependencies_.runtime.run_blocking([weak = weak_from_this(), before = current_] {
      if (auto self = weak.lock()) self->refresh(before);
    });
  }
  return current_;
}

std::shared_ptr<Catalog> Catalogs::build() const {
  auto built = std::make_shared<Catalog>();
  built->built_at = dependencies_.clock.steady_now();
  Builder(dependencies_, *built).build();
  return built;
}

void Catalogs::refresh(const std::shared_ptr<const Catalog>& before) {
  auto built = build();
  std::lock_guard lock(mutex_);
  is_refreshing_ = false;
  // Otherwise there is a newer one already.
  if (current_ == before) install(std::move(built));
}

void Catalogs::install(std::shared_ptr<Catalog> built) {
  // The same content keeps its number, and with it what was rendered from it.
  bool is_same = current_ != nullptr && current_->digest == built->digest;
  built->number = is_same ? current_->number : next_number_++;
  current_ = std::move(built);
}

}  // namespace hive::mcp_surface
