#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gateway/fleet/agent_status.h"
#include "gateway/policy/policy.h"

namespace hive::mcp_surface {

/// Whose a thing is.
enum class Owner { gateway, agent, upstream };

/// One tool, prompt, resource or resource template as clients know it.
struct Entry {
  std::string name;  ///< for clients; of resources the URI, of templates the URI template
  Owner owner = Owner::gateway;
  std::string target = {};    ///< the agent or upstream
  std::string own_name = {};  ///< as the target knows it
  std::string gate = {};      ///< the tool for which the policy is asked
  bool for_admins = false;
  bool for_callers = false;                     ///< for roles that may call tools
  std::shared_ptr<const std::string> raw = {};  ///< the whole object as its owner described it
  std::size_t digest = 0;                       ///< of everything above
};

/// Whether a caller may know of an entry.
bool is_visible(const policy::Policy& policy, const policy::Principal& principal, const Entry& entry);

/// Adds a value to a digest that tells contents apart, for this process alone.
void mix(std::size_t& digest, std::size_t value);
void mix(std::size_t& digest, std::string_view text);

/// The tools of one list, which most agents share.
struct AgentTools {
  struct Tool {
    std::string name;  ///< as the agent knows it
    std::shared_ptr<const std::string> raw;
  };
  std::vector<Tool> tools;  ///< each name once
  std::size_t digest = 0;
};

/// The entries of one kind in the order in which they are listed, found by name: those in front, the tools of the
/// agents, and those behind. The tools of the agents are not spelled out, since ten thousand agents have ninety
/// thousand of them: an entry is made when somebody asks for it.
class Section {
 public:
  struct Agent {
    fleet::AgentPointer agent;
    std::shared_ptr<const AgentTools> tools;
  };

  /// Where an entry stands.
  struct Place {
    enum class Part { front, agents, behind };
    Part part = Part::front;
    std::size_t index = 0;  ///< of the entry, or of the agent
    std::size_t tool = 0;   ///< of the agent
    bool operator==(const Place&) const = default;
  };

  /// While it is made; names that are there already are left out.
  void add_front(Entry entry);
  void add_behind(Entry entry);
  /// In the order of their ids, between the two.
  void add_agent(Agent agent);
  /// When everything is there.
  void close();

  [[nodiscard]] std::optional<Entry> find(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const { return find(name).has_value(); }
  [[nodiscard]] std::size_t digest() const { return digest_; }
  /// Changes when what a caller sees changes.
  [[nodiscard]] std::size_t digest_of_visible(const policy::Policy& policy, const policy::Principal& principal) const;

  /// Goes through what a caller may see from `from` on, until `take` says false.
  void visit(const Place& from, const policy::Policy& policy, const policy::Principal& principal,
             const std::function<bool(const Entry&, const Place&)>& take) const;

  /// A text from which the place behind an entry is found again, though others have come and gone.
  [[nodiscard]] std::string bookmark(const Place& place) const;
  /// nullopt for a text that is none.
  [[nodiscard]] std::optional<Place> behind_bookmark(std::string_view bookmark) const;

 private:
  using Index = std::unordered_map<std::string, std::size_t>;

  [[nodiscard]] static Entry entry_of(const Agent& agent, std::size_t tool);
  [[nodiscard]] std::optional<Entry> find_agents(std::string_view name) const;
  [[nodiscard]] const Agent* agent_of(std::string_view id) const;

  std::vector<Entry> front_;
  std::vector<Agent> agents_;
  std::vector<Entry> behind_;
  Index front_by_name_;
  Index behind_by_name_;
  std::size_t agents_digest_ = 0;
  std::size_t digest_ = 0;
};

}  // namespace hive::mcp_surface
