#include <algorithm>

#include "base/file.h"
#include "base/strings.h"
#include "forwarder/forwarder.h"
#include "net/http/client.h"

namespace hive::forwarder {

namespace {

constexpr size_t max_token_bytes = 16384;
constexpr size_t max_answer_bytes = size_t{1} << 20;

Answer answer_for(const net::http::ClientResponse& response) {
  Answer answer{.sent = Sent::accepted, .problem = {}};
  if (response.status >= 200 && response.status < 300) {
    if (std::int64_t rejected = rejected_records(response.body); rejected > 0) {
      answer.problem = fmt::format("{} records were rejected", rejected);
    }
    return answer;
  }
  answer.problem = fmt::format("HTTP status {}", response.status);
  if (response.status == 413) {
    answer.sent = Sent::too_large;
  } else if (response.status == 400 || response.status == 422) {
    answer.sent = Sent::unacceptable;
  } else {
    // Also 401, 403 and 404: somebody will mend the configuration, and the entries must still be there then.
    answer.sent = Sent::later;
    answer.retry_after = std::chrono::seconds(
        std::clamp<std::int64_t>(parse_int64(response.header("retry-after")).value_or(0), 0, 3600));
  }
  return answer;
}

}  // namespace

Send http_sender(const Options& options) {
  // A request under way is finished when we are told to stop: its answer decides whether it must go again.
  return [&options](const std::string& body) -> Answer {
    net::http::ClientRequest request;
    request.method = "POST";
    request.url = options.endpoint + "/v1/logs";
    request.headers = {{"content-type", "application/json"}};
    request.body = body;
    request.connect_timeout = std::chrono::seconds(5);
    request.timeout = std::chrono::seconds(20);
    request.max_response_bytes = max_answer_bytes;
    request.ca_certificate_path = options.ca_certificate;
    if (!options.token_path.empty()) {
      auto token = read_file(options.token_path, max_token_bytes, FileSecrecy::owner_only);
      if (!token) return {.sent = Sent::later, .problem = token.error().message};
      request.headers.emplace_back("authorization", fmt::format("Bearer {}", trim(*token)));
    }
    auto response = net::http::perform(request);
    if (!response) return {.sent = Sent::later, .problem = response.error().message};
    return answer_for(*response);
  };
}

}  // namespace hive::forwarder
