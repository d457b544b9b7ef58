#include "net/http/client.h"

#include <curl/curl.h>
#include <poll.h>

#include "net/http/curl_transfer.h"

namespace hive::net::http {

namespace {

/// The handles of one thread: their pool of connections and TLS sessions makes the next request to the same host cheap.
struct ThreadHandles {
  CurlMulti multi{curl_multi_init()};
  CurlEasy easy{curl_easy_init()};
};

ThreadHandles& thread_handles() {
  initialise_curl();
  thread_local ThreadHandles handles;
  return handles;
}

/// What the callbacks work on during one exchange.
struct Exchange {
  const ClientRequest& request;
  Transfer transfer;
  bool head_is_delivered = false;
  bool streams = false;
};

size_t on_header(char* data, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  return exchange.transfer.take_header_line({data, size * count}) ? size * count : 0;
}

size_t on_body(char* data, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  std::string_view piece(data, size * count);
  if (!exchange.transfer.count_body(piece.size())) return 0;
  ClientResponse& response = exchange.transfer.response;
  if (!exchange.head_is_delivered) {
    exchange.head_is_delivered = true;
    exchange.transfer.read_status();
    exchange.streams = exchange.request.on_data != nullptr &&
                       (exchange.request.on_head == nullptr || exchange.request.on_head(response));
  }
  if (!exchange.streams) {
    response.body.append(piece);
  } else if (!exchange.request.on_data(piece)) {
    exchange.transfer.stopped = true;
    return 0;
  }
  return piece.size();
}

/// Whether the caller gave the request up before it began; what is not sent need not be undone.
bool is_cancelled(int cancel_fd) {
  pollfd entry{cancel_fd, POLLIN, 0};
  return cancel_fd >= 0 && ::poll(&entry, 1, 0) > 0;
}

/// Drives the transfer until it ends or the caller gives it up.
Result<CURLcode> drive(CURLM* multi, CURL* easy, int cancel_fd, const Target& target) {
  while (true) {
    int running = 0;
    if (CURLMcode code = curl_multi_perform(multi, &running); code != CURLM_OK) {
      return fail(ErrorCode::internal, "{}: {}", target.authority, curl_multi_strerror(code));
    }
    int queued = 0;
    while (CURLMsg* message = curl_multi_info_read(multi, &queued)) {
      if (message->msg == CURLMSG_DONE && message->easy_handle == easy) return message->data.result;
    }
    curl_waitfd cancel{cancel_fd, CURL_WAIT_POLLIN, 0};
    if (CURLMcode code = curl_multi_poll(multi, &cancel, cancel_fd >= 0 ? 1 : 0, 1000, nullptr); code != CURLM_OK) {
      return fail(ErrorCode::internal, "{}: {}", target.authority, curl_multi_strerror(code));
    }
    if (cancel.revents != 0) return fail(ErrorCode::cancelled, "{}: the request was cancelled", target.authority);
  }
}

}  // namespace

Result<ClientResponse> perform(const ClientRequest& request) {
  Target target = TRY(check_request(request));
  if (request.verify_tls) TRY(check_ca_file(request.ca_certificate_path));
  if (is_cancelled(request.cancel_fd)) {
    return fail(ErrorCode::cancelled, "{}: cancelled before it was sent", target.authority);
  }
  ThreadHandles& handles = thread_handles();
  if (handles.easy == nullptr || handles.multi == nullptr) {
    return fail(ErrorCode::internal, "libcurl could not be started");
  }
  CURL* easy = handles.easy.get();
  CURLM* multi = handles.multi.get();
  curl_easy_reset(easy);
  Exchange exchange{.request = request, .transfer = Transfer(handles.easy, request, target)};
  TRY(exchange.transfer.prepare(&on_header, &on_body, &exchange));

  if (CURLMcode code = curl_multi_add_handle(multi, easy); code != CURLM_OK) {
    return fail(ErrorCode::internal, "{}: {}", target.authority, curl_multi_strerror(code));
  }
  Result<CURLcode> ended = drive(multi, easy, request.cancel_fd, target);
  exchange.transfer.read_status();
  // Before the handle leaves the pool, because the reasons are read from it. An unfinished transfer's connection is
  // closed by the removal, which is how the other side learns of a cancelled request.
  Result<ClientResponse> result = [&]() -> Result<ClientResponse> {
    if (!ended) return std::unexpected(ended.error());
    if (*ended != CURLE_OK) return exchange.transfer.describe(*ended);
    return std::move(exchange.transfer.response);
  }();
  curl_multi_remove_handle(multi, easy);
  return result;
}

}  // namespace hive::net::http
