#include "gateway/surfaces/mcp/catalog_section.h"

#include <algorithm>

#include "base/strings.h"
#include "protocol/mcp/translation.h"

namespace hive::mcp_surface {

namespace {

using Place = Section::Place;

// The longest name of an agent whose tools always carry it whole in their public names.
constexpr std::size_t max_plain_id = 48;

constexpr auto id_of = [](const Section::Agent& agent) -> std::string_view { return agent.agent->id; };

/// Without the tool: what is added for each agent, and for each tool of an agent of which a part is visible.
std::size_t digest_of(const Section::Agent& agent) {
  std::size_t digest = agent.tools->digest;
  mix(digest, agent.agent->id);
  return digest;
}

}  // namespace

void mix(std::size_t& digest, std::size_t value) {
  digest ^= value + 0x9e3779b97f4a7c15U + (digest << 6U) + (digest >> 2U);
}

void mix(std::size_t& digest, std::string_view text) {
  mix(digest, std::hash<std::string_view>()(text));
}

bool is_visible(const policy::Policy& policy, const policy::Principal& principal, const Entry& entry) {
  if (entry.for_admins && (principal.role != policy::Role::admin || principal.scope() != nullptr)) return false;
  if (entry.for_callers) {
    policy::Question question{.principal = principal, .agent = {}, .tool = entry.name, .arguments = "{}"};
    if (!policy.check_role(question).allowed()) return false;
  }
  return entry.owner == Owner::gateway || policy.reaches(principal, entry.target, entry.gate);
}

void Section::add_front(Entry entry) {
  if (!front_by_name_.emplace(entry.name, front_.size()).second) return;
  front_.push_back(std::move(entry));
}

void Section::add_behind(Entry entry) {
  if (contains(entry.name) || !behind_by_name_.emplace(entry.name, behind_.size()).second) return;
  behind_.push_back(std::move(entry));
}

void Section::add_agent(Agent agent) {
  agents_.push_back(std::move(agent));
}

void Section::close() {
  agents_digest_ = 0;
  for (const Agent& agent : agents_)
    mix(agents_digest_, digest_of(agent));
  digest_ = agents_digest_;
  for (const std::vector<Entry>* part : {&front_, &behind_}) {
    mix(digest_, part->size());
    for (const Entry& entry : *part)
      mix(digest_, entry.digest);
  }
}

Entry Section::entry_of(const Agent& agent, std::size_t tool) {
  const AgentTools::Tool& described = agent.tools->tools[tool];
  return {.name = mcp::public_tool_name(agent.agent->id, described.name),
          .owner = Owner::agent,
          .target = agent.agent->id,
          .own_name = described.name,
          .gate = described.name,
          .for_admins = false,
          .for_callers = false,
          .raw = described.raw,
          .digest = agent.tools->digest};
}

const Section::Agent* Section::agent_of(std::string_view id) const {
  auto found = std::ranges::lower_bound(agents_, id, {}, id_of);
  return found != agents_.end() && found->agent->id == id ? &*found : nullptr;
}

std::optional<Entry> Section::find_agents(std::string_view name) const {
  auto look_at = [name](const Agent& agent) -> std::optional<Entry> {
    for (std::size_t i = 0; i < agent.tools->tools.size(); ++i) {
      if (mcp::public_tool_name(agent.agent->id, agent.tools->tools[i].name) == name) return entry_of(agent, i);
    }
    return std::nullopt;
  };
  if (const Agent* agent = agent_of(name.substr(0, name.find("__")))) {
    if (auto found = look_at(*agent)) return found;
  }
  // A name that had to be shortened may hold a part of the id alone.
  if (name.size() < max_plain_id) return std::nullopt;
  std::string_view beginning = name.substr(0, max_plain_id);
  for (auto agent = std::ranges::lower_bound(agents_, beginning, {}, id_of);
       agent != agents_.end() && agent->agent->id.starts_with(beginning); ++agent) {
    if (auto found = look_at(*agent)) return found;
  }
  return std::nullopt;
}

std::optional<Entry> Section::find(std::string_view name) const {
  std::string key(name);
  if (auto found = front_by_name_.find(key); found != front_by_name_.end()) return front_[found->second];
  if (auto found = find_agents(name)) return found;
  if (auto found = behind_by_name_.find(key); found != behind_by_name_.end()) return behind_[found->second];
  return std::nullopt;
}

std::size_t Section::digest_of_visible(const policy::Policy& policy, const policy::Principal& principal) const {
  std::size_t digest = 0;
  for (const std::vector<Entry>* part : {&front_, &behind_}) {
    for (const Entry& entry : *part)
      if (is_visible(policy, principal, entry)) mix(digest, entry.digest);
  }
  if (principal.scope() == nullptr) {
    mix(digest, agents_digest_);
    return digest;
  }
  for (const Agent& agent : agents_) {
    if (!policy.reaches(principal, agent.agent->id)) continue;
    mix(digest, digest_of(agent));
    for (const AgentTools::Tool& tool : agent.tools->tools)
      if (policy.reaches(principal, agent.agent->id, tool.name)) mix(digest, tool.name);
  }
  return digest;
}

void Section::visit(const Place& from, const policy::Policy& policy, const policy::Principal& principal,
                    const std::function<bool(const Entry&, const Place&)>& take) const {
  using Part = Place::Part;
  auto visit_list = [&](const std::vector<Entry>& list, Part part) {
    if (from.part > part) return true;
    for (std::size_t i = from.part == part ? from.index : 0; i < list.size(); ++i)
      if (is_visible(policy, principal, list[i]) && !take(list[i], {part, i, 0})) return false;
    return true;
  };
  auto visit_agents = [&] {
    if (from.part > Part::agents) return true;
    bool begins_here = from.part == Part::agents;
    for (std::size_t i = begins_here ? from.index : 0; i < agents_.size(); ++i) {
      const Agent& agent = agents_[i];
      // Asked for the whole agent first: most are out of reach where one is.
      if (!policy.reaches(principal, agent.agent->id)) continue;
      for (std::size_t k = begins_here && i == from.index ? from.tool : 0; k < agent.tools->tools.size(); ++k) {
        if (!policy.reaches(principal, agent.agent->id, agent.tools->tools[k].name)) continue;
        if (!take(entry_of(agent, k), {Part::agents, i, k})) return false;
      }
    }
    return true;
  };
  (void)(visit_list(front_, Part::front) && visit_agents() && visit_list(behind_, Part::behind));
}

std::string Section::bookmark(const Place& place) const {
  switch (place.part) {
    case Place::Part::front:
      return fmt::format("f:{}:{}", place.index, front_[place.index].name);
    case Place::Part::agents:
      return fmt::format("a:{}:{}", place.tool, agents_[place.index].agent->id);
    case Place::Part::behind:
      return fmt::format("b:{}:{}", place.index, behind_[place.index].name);
  }
  return {};
}

std::optional<Place> Section::behind_bookmark(std::string_view bookmark) const {
  std::size_t first = bookmark.find(':');
  std::size_t second = first == std::string_view::npos ? first : bookmark.find(':', first + 1);
  if (first != 1 || second == std::string_view::npos) return std::nullopt;
  auto number = parse_int64(bookmark.substr(2, second - 2));
  if (!number || *number < 0) return std::nullopt;
  auto index = static_cast<std::size_t>(*number);
  std::string_view name = bookmark.substr(second + 1);
  auto behind = [&](const Index& by_name, Place::Part part, std::size_t count) {
    auto found = by_name.find(std::string(name));
    // When the entry itself has gone: at about its place.
    return Place{part, std::min(found == by_name.end() ? index : found->second + 1, count), 0};
  };
  switch (bookmark.front()) {
    case 'f':
      return behind(front_by_name_, Place::Part::front, front_.size());
    case 'b':
      return behind(behind_by_name_, Place::Part::behind, behind_.size());
    case 'a': {
      auto agent = std::ranges::lower_bound(agents_, name, {}, id_of);
      Place place{Place::Part::agents, static_cast<std::size_t>(agent - agents_.begin()), 0};
      if (agent != agents_.end() && agent->agent->id == name) place.tool = index + 1;
      return place;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace hive::mcp_surface
