#include "gateway/fleet/session_watch.h"

#include <atomic>

#include "base/log.h"

namespace hive::fleet {

namespace {

constexpr std::chrono::milliseconds period{250};

class SessionWatchImpl final : public SessionWatch, public std::enable_shared_from_this<SessionWatchImpl> {
 public:
  SessionWatchImpl(net::Runtime& runtime, Fleet& fleet, AuthorizedKeysFile& keys)
      : runtime_(runtime), worker_(runtime.worker(0)), fleet_(fleet), keys_(keys) {}

  void start() {
    worker_.post([self = shared_from_this()] { self->wait(); });
  }

  void stop() override { stopped_ = true; }

 private:
  void wait() {
    if (stopped_) return;
    // Weak: the timer is a member, and a circle would keep both for ever.
    timer_ = worker_.schedule(period, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->look_elsewhere();
    });
  }

  void look_elsewhere() {
    runtime_.run_blocking([self = shared_from_this()] {
      self->look();
      self->worker_.post([self] { self->wait(); });
    });
  }

  void look() {
    if (stopped_) return;
    Result<bool> known = keys_.refresh();
    if (!known) {
      // New connections are refused meanwhile. A disk that fails for a moment must not end the whole fleet.
      if (!failing_) log::error("authorized_keys cannot be read; sessions stay", {{"reason", known.error().message}});
      failing_ = true;
      return;
    }
    failing_ = false;
    if (!*known) return;
    auto enrolled = keys_.agents();
    if (enrolled != enrolled_) fleet_.set_enrolled(*enrolled);
    enrolled_ = std::move(enrolled);
    // Ten thousand sessions need no look while nothing has changed for them; new ones are checked when they register.
    KeyState state = keys_.state();
    if (state == checked_) return;
    checked_ = std::move(state);
    for (const std::string& agent : end_unauthorized_sessions(fleet_, keys_))
      log::info("a session ends because its key is not admitted any more", {{"agent", agent}});
  }

  net::Runtime& runtime_;
  net::Worker& worker_;
  Fleet& fleet_;
  AuthorizedKeysFile& keys_;
  net::Timer timer_;                                          // on the worker
  bool failing_ = false;                                      // this and the next: one look at a time
  KeyState checked_;                                          // every session was held against this
  std::shared_ptr<const std::vector<std::string>> enrolled_;  // was told to the fleet
  std::atomic<bool> stopped_ = false;
};

}  // namespace

std::shared_ptr<SessionWatch> SessionWatch::create(net::Runtime& runtime, Fleet& fleet, AuthorizedKeysFile& keys) {
  auto watch = std::make_shared<SessionWatchImpl>(runtime, fleet, keys);
  watch->start();
  return watch;
}

std::vector<std::string> end_unauthorized_sessions(Fleet& fleet, AuthorizedKeysFile& keys) {
  std::vector<std::string> ended;
  fleet.disconnect_unless(
      [&](const net::ssh::Peer& peer) {
        bool may_stay = keys.authorize_session(peer.user, peer.key_fingerprint, peer.address).has_value();
        if (!may_stay) ended.push_back(peer.user);
        return may_stay;
      },
      "the key is not admitted any more");
  return ended;
}

}  // namespace hive::fleet
