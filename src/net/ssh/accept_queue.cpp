#include "net/ssh/accept_queue.h"

#include <algorithm>
#include <utility>

namespace hive::net::ssh {

std::optional<AcceptQueue::Waiting> AcceptQueue::push(Waiting waiting) {
  auto found = by_name_.find(waiting.source);
  if (found == by_name_.end()) {
    sources_.push_back(Source{waiting.source, {}});
    found = by_name_.emplace(waiting.source, std::prev(sources_.end())).first;
  }
  found->second->waiting.push_back(std::move(waiting));
  if (++size_ <= max_waiting_) return std::nullopt;
  // Of queues that are equally long, the one whose turn is last: who has waited long keeps the place, also when a flood
  // comes from a source for each connection.
  auto longest = found->second;
  for (auto source = sources_.end(); source != sources_.begin();) {
    --source;
    if (source->waiting.size() > longest->waiting.size()) longest = source;
  }
  return take(longest, true);
}

std::optional<AcceptQueue::Waiting> AcceptQueue::pop(const std::function<bool(const std::string& source)>& may_begin) {
  for (auto source = sources_.begin(); source != sources_.end(); ++source) {
    if (!may_begin(source->name)) continue;
    // Behind all others, if more of it wait.
    sources_.splice(sources_.end(), sources_, source);
    return take(source, false);
  }
  return std::nullopt;
}

std::size_t AcceptQueue::waiting_of(const std::string& source) const {
  const auto found = by_name_.find(source);
  return found == by_name_.end() ? 0 : found->second->waiting.size();
}

AcceptQueue::Waiting AcceptQueue::take(Sources::iterator source, bool newest) {
  Waiting taken = std::move(newest ? source->waiting.back() : source->waiting.front());
  if (newest) {
    source->waiting.pop_back();
  } else {
    source->waiting.pop_front();
  }
  --size_;
  if (source->waiting.empty()) {
    by_name_.erase(source->name);
    sources_.erase(source);
  }
  return taken;
}

}  // namespace hive::net::ssh
