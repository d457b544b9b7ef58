#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include <curl/curl.h>

#include "base/result.h"
#include "net/http/client.h"

/// Private to this room: what the waiting and the asynchronous client do alike with a handle of libcurl.
namespace hive::net::http {

struct CloseCurlMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct CloseCurlEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeCurlList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlMulti = std::unique_ptr<CURLM, CloseCurlMulti>;
using CurlEasy = std::unique_ptr<CURL, CloseCurlEasy>;
using CurlHeaderList = std::unique_ptr<curl_slist, FreeCurlList>;

/// Before the first handle; cheap afterwards. Thread-safe.
void initialise_curl();

/// Where a request goes, for messages and decisions.
struct Target {
  std::string host;       ///< as written, IPv6 in brackets
  std::string authority;  ///< host:port, safe to print
};

/// Whether a request can be sent at all.
Result<Target> check_request(const RequestOptions& request);

/// A CA file that cannot be used is the caller's mistake, and libcurl would report it as a failed handshake. Reads it.
Result<void> check_ca_file(const std::string& path);

/// One request on one handle: its options, its limits, and what became of it. Belongs to one thread at a time; request
/// and target must outlive it.
class Transfer {
 public:
  using HeaderCallback = size_t (*)(char*, size_t, size_t, void*);
  using BodyCallback = size_t (*)(char*, size_t, size_t, void*);

  Transfer(CurlEasy& easy, const RequestOptions& request, const Target& target)
      : easy_(easy), request_(request), target_(target) {}

  /// Sets all options of the handle, which must be new or reset.
  Result<void> prepare(HeaderCallback on_header, BodyCallback on_body, void* context);
  /// False when the head is larger than any honest one.
  bool take_header_line(std::string_view line);
  /// False when the body is larger than the request allows.
  bool count_body(size_t bytes);
  /// Puts the status into `response`.
  void read_status();
  /// What went wrong, from libcurl's code and the state of the handle.
  [[nodiscard]] std::unexpected<Error> describe(CURLcode code) const;

  ClientResponse response;
  bool stopped = false;  ///< our side wanted no more

 private:
  CurlEasy& easy_;
  const RequestOptions& request_;
  const Target& target_;
  CurlHeaderList header_list_;
  std::array<char, CURL_ERROR_SIZE> error_buffer_{};
  size_t received_bytes_ = 0;
  size_t header_bytes_ = 0;
  bool too_large_ = false;
};

}  // namespace hive::net::http
