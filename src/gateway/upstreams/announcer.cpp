#include "gateway/upstreams/announcer.h"

#include <utility>

namespace hive::upstreams {

namespace {

constexpr std::size_t max_updated = 1024;

}  // namespace

void Announcer::add(const Change& change) {
  {
    std::lock_guard lock(mutex_);
    if (is_stopped_) return;
    gathered_.tools = gathered_.tools || change.tools;
    gathered_.prompts = gathered_.prompts || change.prompts;
    gathered_.resources = gathered_.resources || change.resources;
    if (!change.updated_resource.empty() && updated_.size() < max_updated) updated_.insert(change.updated_resource);
    bool is_news = gathered_.tools || gathered_.prompts || gathered_.resources || !updated_.empty();
    if (!is_news || std::exchange(is_scheduled_, true)) return;
  }
  worker_.post([weak = weak_from_this()] {
    auto self = weak.lock();
    if (self == nullptr) return;
    self->timer_ = self->worker_.schedule(self->window_, [weak] {
      if (auto telling = weak.lock()) telling->deliver();
    });
  });
}

std::shared_ptr<void> Announcer::listen(Upstreams::Listener listener) {
  auto handle = std::make_shared<Upstreams::Listener>(std::move(listener));
  std::lock_guard lock(mutex_);
  std::erase_if(listeners_, [](const auto& entry) { return entry.expired(); });
  listeners_.push_back(handle);
  return handle;
}

void Announcer::deliver() {
  std::vector<std::weak_ptr<Upstreams::Listener>> listeners;
  Change change;
  std::set<std::string> updated;
  {
    std::lock_guard lock(mutex_);
    is_scheduled_ = false;
    if (is_stopped_) return;
    listeners = listeners_;
    change = std::exchange(gathered_, {});
    updated = std::exchange(updated_, {});
  }
  // Without the lock: a listener may well call back into this room.
  for (const auto& entry : listeners) {
    auto listener = entry.lock();
    if (listener == nullptr) continue;
    if (change.tools || change.prompts || change.resources) (*listener)(change);
    for (const std::string& uri : updated) {
      Change update;
      update.updated_resource = uri;
      (*listener)(update);
    }
  }
}

void Announcer::stop(net::Task stopped) {
  {
    std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  worker_.post([self = shared_from_this(), stopped = std::move(stopped)]() mutable {
    self->timer_.cancel();
    self.reset();
    if (stopped) stopped();
  });
}

}  // namespace hive::upstreams
