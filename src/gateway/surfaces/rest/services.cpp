#include "gateway/surfaces/rest/services.h"

#include <algorithm>

#include "base/log.h"
#include "crypto/random.h"

namespace hive::rest {

Services::Services(Dependencies given, std::shared_ptr<const Settings> settings)
    : dependencies(std::move(given)),
      failures(dependencies.clock),
      refusals(dependencies.clock),
      started_at(dependencies.clock.wall_now()),
      request_id_prefix_("r-" + crypto::random_hex(4) + "-"),
      settings_(std::move(settings)) {}

std::shared_ptr<const Settings> Services::settings() const {
  std::lock_guard lock(mutex_);
  return settings_;
}

void Services::apply(std::shared_ptr<const Settings> settings) {
  std::lock_guard lock(mutex_);
  settings_ = std::move(settings);
}

std::string Services::next_request_id() {
  return request_id_prefix_ + std::to_string(next_request_.fetch_add(1, std::memory_order_relaxed));
}

unsigned Services::retry_after(std::chrono::milliseconds wait, unsigned spread_seconds) {
  std::uint8_t random = 0;
  crypto::random_bytes({&random, 1});
  auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
  return static_cast<unsigned>(std::max<std::int64_t>(seconds, 1)) + random % (spread_seconds + 1);
}

void Services::record(audit::Record record) {
  if (dependencies.log == nullptr) return;
  if (record.surface.empty()) record.surface = "rest";
  std::string action = record.action;
  if (auto queued = dependencies.log->append(std::move(record)); !queued) {
    log::error("an event is not recorded", {{"action", action}, {"reason", queued.error().message}});
  }
}

void Services::record(audit::Record record, net::Task done) {
  if (dependencies.log == nullptr) return done();
  record.surface = "rest";
  auto action = std::make_shared<const std::string>(record.action);
  auto shared_done = std::make_shared<net::Task>(std::move(done));
  auto tell = [action](const Error& error) {
    log::error("an event is not recorded", {{"action", *action}, {"reason", error.message}});
  };
  auto queued = dependencies.log->append(std::move(record), [tell, shared_done](Result<std::uint64_t> written) {
    if (!written) tell(written.error());
    (*shared_done)();
  });
  if (queued) return;
  tell(queued.error());
  (*shared_done)();
}

void Services::record(const std::vector<policy::AuthenticationFailures::Report>& reports) {
  for (const policy::AuthenticationFailures::Report& report : reports) {
    log::warning("authentication failed",
                 {{"source", report.source},
                  {"count", report.count},
                  {"reason", report.detail.empty() ? report.reason : report.reason + ": " + report.detail}});
    audit::Record entry;
    entry.action = "authentication_failed";
    entry.outcome = protocol::Outcome::denied;
    entry.reason = report.reason;
    entry.detail =
        fmt::format("{} from {}", report.count == 1 ? "once" : fmt::format("{} times", report.count), report.source);
    if (!report.detail.empty()) entry.detail += (report.count == 1 ? ": " : "; the last time: ") + report.detail;
    record(std::move(entry));
  }
}

void Services::record_refusal(audit::Record refusal) {
  if (auto entry = refusals.admit(std::move(refusal))) record(*std::move(entry));
}

void Services::record_due(bool all) {
  record(failures.take_due(all));
  for (audit::Record& entry : refusals.take_due(all))
    record(std::move(entry));
}

void Context::complete(net::http::Response& response) const {
  response.headers.emplace_back("Myrmex-Request-Id", request_id);
  if (std::string_view origin = settings->origins.shared_origin(*request); !origin.empty()) {
    response.headers.emplace_back("Access-Control-Allow-Origin", origin);
    response.headers.emplace_back(
        "Access-Control-Expose-Headers",
        "Myrmex-Request-Id, Myrmex-Outcome, Myrmex-Reason, Myrmex-Approval, Location, Retry-After, Mcp-Session-Id, "
        "WWW-Authenticate");
    response.headers.emplace_back("Vary", "Origin");
  }
}

void Context::respond(net::http::Response response) const {
  complete(response);
  responder->respond(std::move(response));
}

void Context::respond_json(std::string body) const {
  net::http::Response response;
  response.body = std::move(body);
  respond(std::move(response));
}

void Context::refuse(const Problem& problem, net::http::Headers headers) const {
  net::http::Response response = problem_response(problem, request_id);
  response.headers = std::move(headers);
  bool has_reason =
      std::ranges::any_of(response.headers, [](const auto& header) { return header.first == "Myrmex-Reason"; });
  if (!has_reason) response.headers.emplace_back("Myrmex-Reason", problem.code);
  respond(std::move(response));
}

}  // namespace hive::rest
