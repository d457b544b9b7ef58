#include "cli/gateway_client.h"

#include <memory>

#include "base/strings.h"
#include "net/http/event_stream_reader.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr json::Limits answer_limits{.max_bytes = size_t{64} << 20, .max_depth = 128, .max_values = 5'000'000};
constexpr size_t max_quoted_bytes = 400;
/// What the gateway may need on top of a call's own deadline to end it and to answer.
constexpr std::chrono::milliseconds answer_grace = std::chrono::seconds(10);

std::optional<std::string> text_member(const std::vector<json::Member>& members, std::string_view key) {
  auto raw = json::find(members, key);
  return raw ? json::decode_string(*raw) : std::nullopt;
}

std::string first_line(std::string_view text) {
  std::string_view line = trim(text);
  line = trim(line.substr(0, line.find('\n')));
  return escape_for_terminal(line.substr(0, max_quoted_bytes)) + (line.size() > max_quoted_bytes ? "..." : "");
}

/// The explanation in an error's body, with the gateway's request id for its log.
std::string explanation(std::string_view body) {
  auto members = json::parse_object(body, answer_limits);
  if (!members) return first_line(body);
  std::string text;
  for (std::string_view key : {"detail", "message", "title", "status"}) {
    if (auto value = text_member(*members, key); value && !value->empty()) {
      text = first_line(*value);
      break;
    }
  }
  if (auto id = text_member(*members, "request_id"); id && !id->empty()) {
    text += fmt::format(" (request {})", first_line(*id));
  }
  return text;
}

/// Why, as a short code for programs: from the header, or from the problem's body.
std::string reason_code(const net::http::ClientResponse& response) {
  if (std::string_view header = response.header("myrmex-reason"); !header.empty()) return std::string(header);
  auto members = json::parse_object(response.body, answer_limits);
  return members ? text_member(*members, "code").value_or("") : "";
}

}  // namespace

GatewayClient::GatewayClient(Connection connection, std::chrono::milliseconds timeout, int cancel_fd)
    : connection_(std::move(connection)), timeout_(timeout), cancel_fd_(cancel_fd) {}

net::http::ClientRequest GatewayClient::request_to(std::string_view path) const {
  net::http::ClientRequest request;
  request.url = connection_.url;
  request.url += path;
  if (!connection_.token.empty()) request.headers.emplace_back("Authorization", "Bearer " + connection_.token);
  request.headers.emplace_back("Accept", "application/json");
  request.timeout = timeout_;
  request.ca_certificate_path = connection_.ca_certificate_path;
  request.verify_tls = connection_.verify_tls;
  request.cancel_fd = cancel_fd_;
  return request;
}

Failure GatewayClient::failure_from(const Error& error, bool may_have_run) const {
  switch (error.code) {
    case ErrorCode::invalid_argument:
      return {ExitCode::usage, error.message};
    case ErrorCode::permission_denied:
      return {ExitCode::unreachable,
              error.message + ": set MYRMEX_CACERT or --cacert to the gateway's certificate; `myrmex doctor` shows it"};
    case ErrorCode::unavailable:
      return {ExitCode::unreachable, "the gateway cannot be reached: " + error.message + " (try `myrmex doctor`)"};
    case ErrorCode::cancelled:
      return {ExitCode::interrupted, "interrupted"};
    case ErrorCode::timed_out:
    case ErrorCode::io:
      if (may_have_run) {
        return {ExitCode::unsettled, error.message + ": whether the call ran is unknown; the audit log will tell"};
      }
      return {ExitCode::unreachable, error.message};
    default:
      return {ExitCode::error, error.message};
  }
}

Failure GatewayClient::failure_from(const net::http::ClientResponse& response, bool may_have_run) const {
  std::string text = explanation(response.body);
  Failure failure{.code = exit_code_for_status(response.status, may_have_run), .message = ""};
  failure.reason = reason_code(response);
  // Whoever speaks HTTP there: a request that is wrong or refused was not carried out.
  if (response.status >= 400 && response.status < 500) failure.outcome = protocol::Outcome::denied;
  if (auto outcome = protocol::outcome_from_string(response.header("myrmex-outcome"));
      outcome && *outcome != protocol::Outcome::success && response.status != 401 && response.status != 202) {
    failure.code = exit_code_for(*outcome, response.header("myrmex-reason"));
    failure.outcome = outcome;
  }
  if (response.status == 504 && may_have_run && failure.code == ExitCode::unsettled) {
    failure.outcome = protocol::Outcome::unknown;
    failure.message = "outcome unknown: " + (text.empty() ? "the gateway had no answer in time" : text);
    return failure;
  }
  std::string message = fmt::format("{}: HTTP {}{}{}", escape_for_terminal(connection_.url), response.status,
                                    text.empty() ? "" : ": ", text);
  if (response.status == 401) message += ": check the token (MYRMEX_TOKEN, --token-file or a profile)";
  if (response.status >= 300 && response.status < 400) message += ": redirects are not followed; check the URL";
  failure.message = std::move(message);
  return failure;
}

std::expected<std::string, Failure> GatewayClient::json_body(net::http::ClientResponse response, std::string_view path,
                                                             bool may_have_run) const {
  if (response.status != 200) return std::unexpected(failure_from(response, may_have_run));
  if (auto valid = json::validate(response.body, answer_limits); !valid) {
    return std::unexpected(
        Failure{ExitCode::error, fmt::format("{}{}: the answer is not JSON: is this a gateway? ({})",
                                             escape_for_terminal(connection_.url), path, valid.error().message)});
  }
  return std::move(response.body);
}

std::expected<std::string, Failure> GatewayClient::get_json(std::string_view path) const {
  auto response = get(path);
  if (!response) return std::unexpected(failure_from(response.error(), false));
  return json_body(*std::move(response), path, false);
}

std::expected<net::http::ClientResponse, Failure> GatewayClient::post(std::string_view path, std::string body) const {
  net::http::ClientRequest request = request_to(path);
  request.method = "POST";
  request.body = std::move(body);
  request.headers.emplace_back("Content-Type", "application/json");
  auto response = net::http::perform(request);
  if (response) return *std::move(response);
  Failure failure = failure_from(response.error(), false);
  if (response.error().code == ErrorCode::timed_out || response.error().code == ErrorCode::io) {
    failure.code = ExitCode::unsettled;
    failure.message += ": whether the gateway acted on it is unknown; the audit log will tell";
  }
  return std::unexpected(std::move(failure));
}

std::expected<std::string, Failure> GatewayClient::post_json(std::string_view path, std::string body) const {
  auto response = post(path, std::move(body));
  if (!response) return std::unexpected(std::move(response.error()));
  return json_body(*std::move(response), path, true);
}

Result<net::http::ClientResponse> GatewayClient::get(std::string_view path) const {
  return net::http::perform(request_to(path));
}

Result<net::http::ClientResponse> GatewayClient::get(std::string_view path, std::chrono::milliseconds timeout) const {
  net::http::ClientRequest request = request_to(path);
  request.timeout = timeout;
  return net::http::perform(request);
}

std::expected<net::http::ClientResponse, Failure> GatewayClient::call(CallRequest call) const {
  net::http::ClientRequest request = request_to(call.path);
  request.max_response_bytes = call.max_bytes;
  request.method = "POST";
  request.body = std::move(call.body);
  request.headers.emplace_back("Content-Type", "application/json");
  if (call.timeout.count() > 0) request.timeout = call.timeout + answer_grace;
  request.timeout += call.wait;
  std::unique_ptr<net::http::EventStreamReader> events;
  if (call.on_event) {
    events = std::make_unique<net::http::EventStreamReader>(
        [&call](const net::http::StreamEvent& event) { call.on_event(event.name, event.data); },
        answer_limits.max_bytes);
    std::erase_if(request.headers, [](const auto& header) { return header.first == "Accept"; });
    request.headers.emplace_back("Accept", "text/event-stream");
    request.on_head = [](const net::http::ClientResponse& head) {
      return head.status == 200 && head.header("content-type").starts_with("text/event-stream");
    };
    request.on_data = [&events](std::string_view piece) { return events->feed(piece); };
  }
  auto response = net::http::perform(request);
  if (!response) return std::unexpected(failure_from(response.error(), true));
  return *std::move(response);
}

}  // namespace hive::cli
