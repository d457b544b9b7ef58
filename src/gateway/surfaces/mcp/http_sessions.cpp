#include "gateway/surfaces/mcp/http_sessions.h"

#include <algorithm>
#include <utility>

namespace hive::mcp_surface {

bool HttpSessions::has_expired(const HttpSession& session) const {
  return clock_.steady_now() - session.last_used() >= limits_.idle_time && !session.is_busy();
}

HttpSessions::Map::iterator HttpSessions::longest_unused(std::string_view owner) {
  auto oldest = sessions_.end();
  for (auto each = sessions_.begin(); each != sessions_.end(); ++each) {
    if (each->second->owner() != owner || each->second->is_busy()) continue;
    if (oldest == sessions_.end() || each->second->last_used() < oldest->second->last_used()) oldest = each;
  }
  return oldest;
}

bool HttpSessions::add(std::shared_ptr<HttpSession> session) {
  std::shared_ptr<HttpSession> evicted;
  {
    std::lock_guard lock(mutex_);
    auto of_owner =
        std::ranges::count_if(sessions_, [&](const auto& each) { return each.second->owner() == session->owner(); });
    if (std::cmp_greater_equal(of_owner, limits_.sessions_per_owner) || sessions_.size() >= limits_.sessions) {
      auto oldest = longest_unused(session->owner());
      if (oldest == sessions_.end()) return false;
      evicted = std::move(oldest->second);
      sessions_.erase(oldest);
    }
    sessions_.emplace(session->id(), std::move(session));
  }
  if (evicted) evicted->close();
  return true;
}

bool HttpSessions::make_room(std::string_view owner) {
  std::shared_ptr<HttpSession> evicted;
  {
    std::lock_guard lock(mutex_);
    auto oldest = longest_unused(owner);
    if (oldest == sessions_.end()) return false;
    evicted = std::move(oldest->second);
    sessions_.erase(oldest);
  }
  evicted->close();
  return true;
}

std::shared_ptr<HttpSession> HttpSessions::find(std::string_view id) {
  std::shared_ptr<HttpSession> expired;
  {
    std::lock_guard lock(mutex_);
    auto found = sessions_.find(id);
    if (found == sessions_.end()) return nullptr;
    if (!has_expired(*found->second)) return found->second;
    expired = std::move(found->second);
    sessions_.erase(found);
  }
  expired->close();
  return nullptr;
}

std::shared_ptr<HttpSession> HttpSessions::remove(std::string_view id) {
  std::lock_guard lock(mutex_);
  auto found = sessions_.find(id);
  if (found == sessions_.end()) return nullptr;
  std::shared_ptr<HttpSession> removed = std::move(found->second);
  sessions_.erase(found);
  return removed;
}

void HttpSessions::sweep() {
  std::vector<std::shared_ptr<HttpSession>> expired;
  {
    std::lock_guard lock(mutex_);
    for (auto each = sessions_.begin(); each != sessions_.end();) {
      if (!has_expired(*each->second)) {
        ++each;
        continue;
      }
      expired.push_back(std::move(each->second));
      each = sessions_.erase(each);
    }
  }
  for (const std::shared_ptr<HttpSession>& session : expired)
    session->close();
  SteadyTime oldest = clock_.steady_now() - limits_.replay_time;
  for (const std::shared_ptr<HttpSession>& session : all())
    session->forget_streams_ended_before(oldest);
}

std::vector<std::shared_ptr<HttpSession>> HttpSessions::all() const {
  std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<HttpSession>> sessions;
  sessions.reserve(sessions_.size());
  for (const auto& [id, session] : sessions_)
    sessions.push_back(session);
  return sessions;
}

std::size_t HttpSessions::size() const {
  std::lock_guard lock(mutex_);
  return sessions_.size();
}

}  // namespace hive::mcp_surface
