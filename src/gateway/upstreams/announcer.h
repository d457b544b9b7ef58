#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "gateway/upstreams/upstreams.h"
#include "net/runtime/runtime.h"

/// Private to this room.
namespace hive::upstreams {

/// Gathers changes over a short window and tells those who listen. Thread-safe.
class Announcer : public std::enable_shared_from_this<Announcer> {
 public:
  Announcer(net::Worker& worker, std::chrono::milliseconds window) : worker_(worker), window_(window) {}

  void add(const Change& change);
  std::shared_ptr<void> listen(Upstreams::Listener listener);
  /// Tells nothing any more; `stopped` runs on the worker then.
  void stop(net::Task stopped);

 private:
  void deliver();

  net::Worker& worker_;
  const std::chrono::milliseconds window_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Upstreams::Listener>> listeners_;  // guarded by mutex_
  Change gathered_;                                            // guarded by mutex_
  std::set<std::string> updated_;                              // guarded by mutex_
  bool is_scheduled_ = false;                                  // guarded by mutex_
  bool is_stopped_ = false;                                    // guarded by mutex_
  net::Timer timer_;                                           // on the worker
};

}  // namespace hive::upstreams
