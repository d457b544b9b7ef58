#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "gateway/fleet/agent_description.h"

namespace hive::fleet {

/// Agents of one version list the same tools; each list is parsed and kept once, however many agents have it.
/// Thread-safe.
class ToolListCache {
 public:
  explicit ToolListCache(std::size_t max_tools) : max_tools_(max_tools) {}

  static constexpr std::size_t max_list_bytes = std::size_t{512} << 10;

  /// The list that the result of tools/list describes; an error when it is longer than max_list_bytes.
  Result<std::shared_ptr<const ToolList>> get(std::string_view result);

  /// The list whose text has this SHA-256 (hexadecimal), if some agent has it now; otherwise null.
  [[nodiscard]] std::shared_ptr<const ToolList> find(const std::string& digest);

 private:
  const std::size_t max_tools_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const ToolList>>
      lists_;  // by the hexadecimal digest of the text; guarded by mutex_
};

}  // namespace hive::fleet
