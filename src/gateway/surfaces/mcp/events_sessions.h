#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "gateway/surfaces/mcp/core.h"
#include "gateway/surfaces/mcp/event_stream.h"
#include "gateway/surfaces/mcp/http_sessions.h"
#include "gateway/surfaces/mcp/stream_quota.h"
#include "gateway/surfaces/rest/mcp_endpoint.h"

namespace hive::mcp_surface {

/// The transport of MCP 2024-11-05, HTTP+SSE: one stream a client, on which everything for it arrives, and a path for
/// what it sends. A session ends with its stream. Thread-safe.
class EventsSessions : public std::enable_shared_from_this<EventsSessions> {
 public:
  /// `others` are asked to make room when the core has none left.
  EventsSessions(std::shared_ptr<Core> core, std::shared_ptr<StreamQuota> quota, std::shared_ptr<HttpSessions> others,
                 std::chrono::milliseconds heartbeat)
      : core_(std::move(core)), quota_(std::move(quota)), others_(std::move(others)), heartbeat_(heartbeat) {}

  /// GET /sse.
  void open(rest::McpRequest request);
  /// POST /message.
  void post(rest::McpRequest request);
  /// Sends all clients away as soon as they have their answers.
  void close();
  [[nodiscard]] std::size_t size() const;

 private:
  struct Entry {
    std::shared_ptr<Session> session;
    std::shared_ptr<EventStream> stream;
    std::atomic<std::size_t> in_flight = 0;
  };
  class Answer;

  void end(const std::string& id);
  void answered(Entry& entry);
  std::shared_ptr<Entry> find(std::string_view id) const;

  const std::shared_ptr<Core> core_;
  const std::shared_ptr<StreamQuota> quota_;
  const std::shared_ptr<HttpSessions> others_;
  const std::chrono::milliseconds heartbeat_;
  std::atomic<bool> is_closed_ = false;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;  // guarded by mutex_
};

}  // namespace hive::mcp_surface
