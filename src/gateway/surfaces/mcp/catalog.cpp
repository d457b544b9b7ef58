#include "gateway/surfaces/mcp/catalog.h"

#include <set>

#include "base/strings.h"
#include "gateway/surfaces/mcp/own_entries.h"

namespace hive::mcp_surface {

namespace {

// Who has not named its tools by then has none.
constexpr std::chrono::minutes max_silence{1};

std::shared_ptr<const AgentTools> taken_apart(const fleet::ToolList& list) {
  auto tools = std::make_shared<AgentTools>();
  std::set<std::string_view> names;
  for (const fleet::Tool& tool : list) {
    if (!names.insert(tool.name).second) continue;
    tools->tools.push_back({tool.name, std::make_shared<const std::string>(tool.raw)});
    mix(tools->digest, tool.name);
    mix(tools->digest, tool.raw);
  }
  return tools;
}

Entry with_raw(Entry entry, std::string raw) {
  entry.digest = 0;
  for (std::string_view part : {std::string_view(raw), std::string_view(entry.name), std::string_view(entry.target)})
    mix(entry.digest, part);
  entry.raw = std::make_shared<const std::string>(std::move(raw));
  return entry;
}

class Builder {
 public:
  Builder(const Dependencies& dependencies, Catalog& catalog) : dependencies_(dependencies), catalog_(catalog) {
    if (dependencies_.upstreams == nullptr) return;
    for (const upstreams::UpstreamStatus& status : dependencies_.upstreams->statuses())
      if (status.prefix.empty()) without_prefix_.insert(status.name);
  }

  void add_agent(Section::Agent agent) { section(Kind::tools).add_agent(std::move(agent)); }

  /// When all agents are there.
  void build() {
    add_kind(Kind::tools, &upstreams::Listing::tools, {}, own_tools(dependencies_.approvals != nullptr));
    add_kind(Kind::prompts, &upstreams::Listing::prompts, prompt_gate, own_prompts());
    add_kind(Kind::resources, &upstreams::Listing::resources, resource_gate, own_resources());
    add_kind(Kind::templates, &upstreams::Listing::templates, resource_gate,
             own_templates(static_cast<bool>(dependencies_.read_audit)));
    for (const Section& each : catalog_.sections)
      mix(catalog_.digest, each.digest());
  }

 private:
  using Items = std::vector<upstreams::Item> upstreams::Listing::*;

  /// Those of upstreams without a prefix stand in front, those with one behind. Names that are taken by the gateway or
  /// by an agent are left out, so that no upstream can stand for either.
  void add_kind(Kind kind, Items items, std::string_view gate, std::vector<OwnEntry> own) {
    std::set<std::string, std::less<>> own_names;
    for (const OwnEntry& each : own)
      own_names.insert(each.entry.name);
    Section& all = section(kind);
    for (const upstreams::Item* item : items_of(items, false)) {
      if (!own_names.contains(item->public_name) && !all.contains(item->public_name)) {
        all.add_front(entry_of(*item, gate));
      }
    }
    for (OwnEntry& each : own)
      all.add_front(with_raw(std::move(each.entry), std::move(each.raw)));
    for (const upstreams::Item* item : items_of(items, true))
      all.add_behind(entry_of(*item, gate));
    all.close();
  }

  [[nodiscard]] std::vector<const upstreams::Item*> items_of(Items items, bool with_prefix) const {
    std::vector<const upstreams::Item*> found;
    if (catalog_.listing == nullptr) return found;
    for (const upstreams::Item& item : (*catalog_.listing).*items)
      if (without_prefix_.contains(item.upstream) != with_prefix) found.push_back(&item);
    return found;
  }

  static Entry entry_of(const upstreams::Item& item, std::string_view gate) {
    return with_raw({.name = item.public_name,
                     .owner = Owner::upstream,
                     .target = item.upstream,
                     .own_name = item.name,
                     .gate = gate.empty() ? item.name : std::string(gate)},
                    item.raw);
  }

  Section& section(Kind kind) { return catalog_.sections[static_cast<std::size_t>(kind)]; }

  const Dependencies& dependencies_;
  Catalog& catalog_;
  std::set<std::string, std::less<>> without_prefix_;
};

}  // namespace

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

std::shared_ptr<const Catalog> Catalogs::current() {
  std::lock_guard lock(mutex_);
  fleet::SnapshotPointer fleet = dependencies_.fleet.snapshot();
  std::shared_ptr<const upstreams::Listing> listing =
      dependencies_.upstreams == nullptr ? nullptr : dependencies_.upstreams->listing();
  bool is_current = current_ != nullptr && current_->fleet_version == fleet->version && current_->listing == listing;
  if (is_current) return current_;
  auto built = build(*fleet, std::move(listing));
  // The same content keeps its number, and with it what was rendered from it.
  bool is_same = current_ != nullptr && current_->digest == built->digest;
  built->number = is_same ? current_->number : next_number_++;
  current_ = std::move(built);
  return current_;
}

std::shared_ptr<Catalog> Catalogs::build(const fleet::FleetSnapshot& fleet,
                                         std::shared_ptr<const upstreams::Listing> listing) {
  auto built = std::make_shared<Catalog>();
  built->fleet_version = fleet.version;
  built->listing = std::move(listing);
  std::erase_if(kept_tools_, [](const auto& kept) { return kept.second.list.expired(); });
  Builder builder(dependencies_, *built);
  WallTime now = dependencies_.clock.wall_now();
  for (const fleet::AgentPointer& agent : fleet.agents) {
    if (agent->tools != nullptr) {
      builder.add_agent({agent, tools_of(agent->tools)});
    } else if (agent->online && now - agent->connected_at < max_silence) {
      built->is_complete = false;
    }
  }
  builder.build();
  return built;
}

std::shared_ptr<const AgentTools> Catalogs::tools_of(const std::shared_ptr<const fleet::ToolList>& list) {
  KeptTools& kept = kept_tools_[list.get()];
  if (kept.tools == nullptr || kept.list.lock() != list) kept = {.list = list, .tools = taken_apart(*list)};
  return kept.tools;
}

}  // namespace hive::mcp_surface
