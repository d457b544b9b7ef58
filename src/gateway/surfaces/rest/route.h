#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "gateway/policy/principal.h"
#include "gateway/surfaces/rest/services.h"

namespace hive::rest {

/// Which roles a route admits; none: it is public, and says nothing that is worth a credential.
class RoleSet {
 public:
  constexpr RoleSet() = default;
  constexpr RoleSet(std::initializer_list<policy::Role> roles) {
    for (policy::Role role : roles)
      bits_ |= bit(role);
  }
  [[nodiscard]] constexpr bool contains(policy::Role role) const { return (bits_ & bit(role)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }

 private:
  static constexpr unsigned bit(policy::Role role) { return 1U << static_cast<unsigned>(role); }
  unsigned bits_ = 0;
};

struct QueryParameter {
  std::string_view name;
  std::string_view description;
};

/// Who says no to a role that a route does not admit.
enum class RoleGate {
  surface,  ///< this surface, before the handler runs
  funnel,   ///< the funnel's first gate, which also records the refused call with its agent and tool
};

/// One row of the table that drives the server, the permission check, OPTIONS and the OpenAPI page.
struct Route {
  std::string_view method;
  std::string_view path;  ///< a segment "{NAME}" stands for any one that is not empty
  bool is_public = false;
  RoleSet roles = {};
  void (*handler)(const ContextPointer& context) = nullptr;
  std::string_view summary;
  std::span<const QueryParameter> parameters = {};  ///< others are refused
  std::string_view request_schema = {};             ///< JSON Schema of the body; empty: no body
  RoleGate role_gate = RoleGate::surface;
  bool whole_fleet = false;  ///< concerns the gateway itself: closed to credentials that reach a part of the fleet
  bool names_host = false;   ///< public, but its answer names the host: Host and Origin are checked all the same
  bool is_mcp = false;  ///< of the MCP surface: browsers may send its headers, and a 401 says where tokens come from
};

/// All routes, those of one path together.
std::span<const Route> routes();

/// The row for a request; HEAD is served as GET, and /mcp/ as /mcp. nullptr if there is none.
const Route* find_route(std::string_view method, std::string_view path);

/// What stands in `path` where the path of its route has its "{NAME}"; empty if it has none.
std::string_view path_parameter(std::string_view path);

/// The NAME of a route's "{NAME}"; empty if it has none.
std::string_view path_parameter_name(const Route& route);

/// Whether a path is one of the MCP surface.
bool is_mcp_path(std::string_view path);

/// "GET, HEAD, OPTIONS" for the Allow header; empty if the path does not exist.
std::string allowed_methods(std::string_view path);

/// The table as an OpenAPI 3.1 document.
std::string openapi_document();

}  // namespace hive::rest
