#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace hive::net::http {

/// Counts open connections, in all and by source. Thread-safe.
class ConnectionLimits : public std::enable_shared_from_this<ConnectionLimits> {
 public:
  /// A place for one connection; given back on destruction.
  class Slot {
   public:
    Slot(std::shared_ptr<ConnectionLimits> limits, std::string source)
        : limits_(std::move(limits)), source_(std::move(source)) {}
    Slot(Slot&&) noexcept = default;
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (limits_) limits_->release(source_);
    }

   private:
    std::shared_ptr<ConnectionLimits> limits_;
    std::string source_;
  };

  ConnectionLimits(std::size_t max_total, std::size_t max_per_source)
      : max_total_(max_total), max_per_source_(max_per_source) {}

  /// nullopt when there is no place. `source` is source_of() of the peer.
  std::optional<Slot> acquire(const std::string& source);
  /// Places that are taken.
  [[nodiscard]] std::size_t total() const;

 private:
  void release(const std::string& source);

  const std::size_t max_total_;
  const std::size_t max_per_source_;
  mutable std::mutex mutex_;
  std::size_t total_ = 0;                                 // guarded by mutex_
  std::unordered_map<std::string, std::size_t> sources_;  // guarded by mutex_
};

/// What counts as one source: an IPv4 address, or the /64 of an IPv6 address, since one host owns all of it.
std::string source_of(const std::string& address);

}  // namespace hive::net::http
