#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "base/result.h"
#include "forwarder/journal_reader.h"
#include "forwarder/otlp.h"
#include "forwarder/position.h"

/// Sends a guest's journal to a collector, because the journal goes with the guest's root at every stop.
///
/// An entry counts as sent when the collector has answered 2xx; only then the position is written. So nothing is lost
/// by a crash of anybody; a crash of this program between the answer and the write sends one batch again, whose records
/// carry the same ids (log.record.uid). An orderly stop doubles nothing.
namespace hive::forwarder {

struct Options {
  std::string endpoint;                      ///< "http://10.42.0.1:4318"; "/v1/logs" is added
  std::string journal = "/var/log/journal";  ///< a folder of journal files
  std::string position_path;                 ///< in a folder that outlives the root
  std::string token_path;                    ///< file with a bearer token; empty: none
  std::string ca_certificate;                ///< empty: the system's store
  Resource resource;
  size_t max_records = 512;
  size_t max_bytes = size_t{512} << 10;
  std::chrono::milliseconds farewell = std::chrono::seconds(10);  ///< for what is left when it is told to stop
};

/// How an attempt to send a batch ended.
enum class Sent {
  accepted,     ///< the collector has it
  later,        ///< not now: unreachable, busy, or our credentials are refused; the same again after a pause
  too_large,    ///< the collector says so of the whole
  unacceptable  ///< the collector will never take this request
};

/// Sends a request's body; how it ended, and what to tell about it.
struct Answer {
  Sent sent = Sent::later;
  std::string problem;
  std::chrono::seconds retry_after{0};
};
using Send = std::function<Answer(const std::string& body)>;

/// The real one: HTTP POST to the endpoint of `options`, which must outlive it. Reads the token's file each time, so
/// that it may be replaced.
Send http_sender(const Options& options);

/// Forwards until `stop_fd` is readable, then what is there at that moment, within `farewell`. Fails only when the
/// journal or the position cannot be used; a collector that is away is waited for.
Result<void> forward(const Options& options, const Send& send, int stop_fd);

}  // namespace hive::forwarder
