#include "gateway/fleet/tool_list_cache.h"

#include "base/strings.h"
#include "crypto/sha256.h"

namespace hive::fleet {

Result<std::shared_ptr<const ToolList>> ToolListCache::get(std::string_view result) {
  // Lists are kept as long as their agents are there: ten thousand of four megabytes each must not be possible.
  if (result.size() > max_list_bytes) {
    return fail(ErrorCode::resource_exhausted, "{} bytes are more than the limit of {}", result.size(), max_list_bytes);
  }
  std::string digest = to_hex(crypto::sha256(result));
  if (auto known = find(digest)) return known;
  auto list = std::make_shared<const ToolList>(TRY(parse_tools_list(result, max_tools_)));
  std::lock_guard lock(mutex_);
  // Lists that no agent has any more go when a new one comes: their number stays that of the lists in use.
  std::erase_if(lists_, [](const auto& entry) { return entry.second.expired(); });
  lists_[digest] = list;
  return list;
}

std::shared_ptr<const ToolList> ToolListCache::find(const std::string& digest) {
  std::lock_guard lock(mutex_);
  auto found = lists_.find(digest);
  return found == lists_.end() ? nullptr : found->second.lock();
}

}  // namespace hive::fleet
