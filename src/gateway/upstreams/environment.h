#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "gateway/store/database.h"
#include "gateway/upstreams/catalog.h"
#include "gateway/upstreams/connection.h"
#include "gateway/upstreams/upstreams.h"
#include "net/runtime/runtime.h"

/// Private to this room: what all servers share.
namespace hive::upstreams {

/// Opens connections; tests put their own in place.
using ConnectionFactory = std::function<std::unique_ptr<Connection>(net::Worker&, ConnectionOptions, ConnectionEvents)>;

/// How long things take and how many there may be; tests make them shorter and fewer.
struct Tuning {
  std::chrono::milliseconds backoff_base = std::chrono::seconds(1);
  std::chrono::milliseconds backoff_cap = std::chrono::seconds(60);
  /// A session counts as useful, and the next failure as the first, when it has stood this long or answered a call.
  std::chrono::milliseconds settled = std::chrono::seconds(10);
  std::chrono::milliseconds start_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds list_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds gather = std::chrono::milliseconds(200);  ///< before a changed list is asked for
  std::chrono::milliseconds refresh_pause =
      std::chrono::milliseconds(1500);  ///< between refreshes, however many changes
  std::chrono::milliseconds refresh_retry = std::chrono::seconds(30);
  std::chrono::milliseconds refresh_interval = std::chrono::hours(1);
  std::chrono::milliseconds announce = std::chrono::milliseconds(100);  ///< in which changes for listeners are gathered
  std::chrono::milliseconds session_idle = std::chrono::seconds(60);
  std::size_t max_sessions = 32;  ///< further sessions of one server, for callers of their own
  std::size_t max_children = 8;   ///< the same where each is a process
  std::size_t max_in_flight = 256;
  std::size_t max_watched = 1000;
  std::size_t max_events_per_hour = 200;  ///< audit entries about one server; the rest is logged
  ListingLimits listing;
};

struct Environment {
  net::Runtime& runtime;
  const Clock& clock;
  store::Database& database;
  ConnectionFactory connect;
  Tuning tuning;
  std::function<double()> random;  ///< from 0 to 1; any thread
  std::function<void(const std::string& upstream, const std::string& action, const std::string& detail)> event;
  /// A server offers something else than before. Any worker.
  std::function<void(const Change& change)> changed;
};

}  // namespace hive::upstreams
