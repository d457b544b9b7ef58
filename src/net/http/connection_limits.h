#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace hive::net::http {

/// Counts open connections, in all and by source. Thread-safe.
class ConnectionLimits : public std::enable_shared_from_this<ConnectionLimits> {
  struct Source {
    std::size_t connections = 0;  // guarded by mutex_
    std::atomic<std::size_t> body_bytes = 0;
  };
  // Elements keep their address.
  using Sources = std::unordered_map<std::string, Source>;

 public:
  /// A place for one connection; given back on destruction.
  class Slot {
   public:
    Slot(std::shared_ptr<ConnectionLimits> limits, Sources::value_type& source)
        : limits_(std::move(limits)), source_(&source) {}
    Slot(Slot&&) noexcept = default;
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (limits_) limits_->release(*source_);
    }

    /// Bytes of request bodies that are arriving over all connections of this one's source.
    [[nodiscard]] std::atomic<std::size_t>& source_body_bytes() const { return source_->second.body_bytes; }

   private:
    std::shared_ptr<ConnectionLimits> limits_;
    Sources::value_type* source_;  // there as long as one of its connections is
  };

  ConnectionLimits(std::size_t max_total, std::size_t max_per_source)
      : max_total_(max_total), max_per_source_(max_per_source) {}

  /// nullopt when there is no place. `source` is source_of() of the peer.
  std::optional<Slot> acquire(const std::string& source);
  /// Places that are taken.
  [[nodiscard]] std::size_t total() const;

 private:
  void release(Sources::value_type& source);

  const std::size_t max_total_;
  const std::size_t max_per_source_;
  mutable std::mutex mutex_;
  std::size_t total_ = 0;  // guarded by mutex_
  Sources sources_;        // guarded by mutex_
};

/// What counts as one source: an IPv4 address, or the /64 of an IPv6 address, since one host owns all of it.
std::string source_of(const std::string& address);

}  // namespace hive::net::http
