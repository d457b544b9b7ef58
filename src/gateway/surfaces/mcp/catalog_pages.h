#pragma once

#include <expected>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "gateway/surfaces/mcp/catalog.h"

namespace hive::mcp_surface {

/// The pages of tools/list and its sisters. What was rendered for one scope is kept until the catalog or the policy
/// changes. Thread-safe.
class CatalogPages {
 public:
  /// Entries on one page.
  static constexpr std::size_t page_size = 200;

  /// The result object for a client of `revision`, or nullptr for a cursor that is none of ours. `cursor` is empty for
  /// the first page.
  std::shared_ptr<const std::string> page(const std::shared_ptr<const Catalog>& catalog,
                                          const std::shared_ptr<const policy::Policy>& policy,
                                          const policy::Principal& principal, Kind kind, std::string_view cursor,
                                          mcp::Revision revision, std::string_view server_info);

 private:
  static constexpr std::size_t max_kept_pages = 64;

  std::mutex mutex_;
  std::uint64_t catalog_number_ = 0;                                // guarded by mutex_
  std::shared_ptr<const policy::Policy> policy_;                    // guarded by mutex_
  std::map<std::string, std::shared_ptr<const std::string>> kept_;  // guarded by mutex_
};

/// The method that lists a kind, and the member of its result.
std::string_view list_method(Kind kind);
std::string_view list_member(Kind kind);

/// A tool as clients see it: under its public name, with title, schema and hints, everything else as its owner
/// described it. Empty for what is no object.
std::string render_tool(const Entry& entry, const policy::Policy& policy);

}  // namespace hive::mcp_surface
