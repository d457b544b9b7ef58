#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "gateway/audit/refusal_log.h"
#include "gateway/policy/authentication_failures.h"
#include "gateway/surfaces/rest/api.h"
#include "gateway/surfaces/rest/problem.h"

namespace hive::rest {

/// What all requests share. Thread-safe.
class Services {
 public:
  Services(Dependencies given, std::shared_ptr<const Settings> settings);

  [[nodiscard]] std::shared_ptr<const Settings> settings() const;
  void apply(std::shared_ptr<const Settings> settings);

  /// Unique for this run of the gateway and unlikely to repeat in another; made here only, so that a client cannot
  /// choose what stands in the log.
  [[nodiscard]] std::string next_request_id();

  /// A number of seconds for Retry-After, at least 1, with some more at random, so that clients that were turned away
  /// together do not come back together.
  [[nodiscard]] unsigned retry_after(std::chrono::milliseconds wait, unsigned spread_seconds);

  /// Adds what is not a call to the audit log. Nobody waits for it.
  void record(audit::Record record);
  /// The same, and `done` runs once, on some thread, when the entry is on disk, or cannot be written: the log of the
  /// program says so then.
  void record(audit::Record record, net::Task done);
  void record(const std::vector<policy::AuthenticationFailures::Report>& failures);
  /// The same for a known caller who asked for what it may not do; many of them are summed up.
  void record_refusal(audit::Record refusal);
  /// Writes what was counted and is due. With `all`: also what is not due yet.
  void record_due(bool all = false);

  const Dependencies dependencies;
  policy::AuthenticationFailures failures;
  audit::RefusalLog refusals;
  const WallTime started_at;

 private:
  const std::string request_id_prefix_;
  std::atomic<std::uint64_t> next_request_ = 1;
  mutable std::mutex mutex_;
  std::shared_ptr<const Settings> settings_;  // guarded by mutex_
};

/// One request on its way through the surface, with what is known about its caller.
struct Context {
  std::shared_ptr<Services> services;
  std::shared_ptr<const Settings> settings;
  std::shared_ptr<net::http::Request> request;
  std::shared_ptr<net::http::Responder> responder;
  std::string request_id;
  policy::Principal principal;  ///< of routes that need a role

  /// Adds the headers that every answer of this surface carries.
  void complete(net::http::Response& response) const;
  void respond(net::http::Response response) const;
  void respond_json(std::string body) const;
  void refuse(const Problem& problem, net::http::Headers headers = {}) const;
};
using ContextPointer = std::shared_ptr<const Context>;

}  // namespace hive::rest
