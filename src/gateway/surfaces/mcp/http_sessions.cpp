#include "gateway/surfaces/mcp/http_sessions.h"

#include <utility>

namespace hive::mcp_surface {

bool HttpSessions::has_expired(const HttpSession& session) const {
  return clock_.steady_now() - session.last_used() >= limits_.idle_time && !session.is_busy();
}

bool HttpSessions::add(std::shared_ptr<HttpSession> session) {
  std::shared_ptr<HttpSession> evicted;
  {
    std::lock_guard lock(mutex_);
    std::size_t of_owner = 0;
    Map::iterator oldest = sessions_.end();
    for (auto each = sessions_.begin(); each != sessions_.end(); ++each) {
      if (each->second->owner() != session->owner()) continue;
      ++of_owner;
      if (oldest != sessions_.end() && each->second->last_used() >= oldest->second->last_used()) continue;
      if (!each->second->is_busy()) oldest = each;
    }
    if (of_owner >= limits_.sessions_per_owner || sessions_.size() >= limits_.sessions) {
      if (oldest == sessions_.end()) return false;
      evicted = std::move(oldest->second);
      sessions_.erase(oldest);
    }
    sessions_.emplace(session->id(), std::move(session));
  }
  if (evicted) evicted->close();
  return true;
}

std::shared_ptr<HttpSession> HttpSessions::find(std::string_view id) {
  std::shared_ptr<HttpSession> expired;
  {
    std::lock_guard lock(mutex_);
    auto found = sessions_.find(id);
    if (found == sessions_.end()) return nullptr;
    if (!has_expired(*found->second)) {
      return found->second;
    }
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
