#include <limits>

#include "base/strings.h"
#include "gateway/surfaces/rest/endpoints.h"
#include "protocol/json.h"

namespace hive::rest {

namespace {

constexpr std::int64_t max_limit = 1000;

Result<std::uint64_t> number_parameter(const std::string& text, std::string_view name, std::int64_t max) {
  std::optional<std::int64_t> number = parse_int64(text);
  if (!number || *number < 1 || *number > max) {
    return fail(ErrorCode::invalid_argument, "query parameter {}: not a whole number from 1 to {}", name, max);
  }
  return static_cast<std::uint64_t>(*number);
}

/// The beginning of "2026-11-30T12:57:23.123Z": entries are compared with it as text, so anything else would match
/// nothing or everything without a word.
bool is_time_prefix(std::string_view text) {
  constexpr std::string_view shape = "dddd-dd-ddTdd:dd:dd";
  for (std::size_t i = 0; i < text.size() && i < shape.size(); ++i) {
    bool digit = text[i] >= '0' && text[i] <= '9';
    if (shape[i] == 'd' ? !digit : text[i] != shape[i]) return false;
  }
  if (text.size() <= shape.size()) return text.size() >= 4;
  std::string_view rest = text.substr(shape.size());
  if (rest.front() == '.') {
    rest.remove_prefix(1);
    while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9')
      rest.remove_prefix(1);
  }
  return rest.empty() || rest == "Z";
}

Result<audit::Query> query_of(const net::http::Request& request) {
  auto text = [&](std::string_view name) { return request.query_parameter(name).value_or(""); };
  audit::Query query;
  query.principal = text("principal");
  if (auto actor = request.query_parameter("actor")) {
    if (!query.principal.empty()) {
      return fail(ErrorCode::invalid_argument,
                  "query parameter actor: it is another name of principal; give one of them");
    }
    query.principal = *std::move(actor);
  }
  query.agent = text("agent");
  query.action = text("action");
  query.tool = text("tool");
  query.call_id = text("call_id");
  query.request_id = text("request_id");
  query.reason = text("reason");
  query.since = text("since");
  query.until = text("until");
  for (const auto& [name, value] : {std::pair("since", &query.since), std::pair("until", &query.until)}) {
    if (value->empty() || is_time_prefix(*value)) continue;
    return fail(ErrorCode::invalid_argument, "query parameter {}: not a time in UTC such as 2026-11-30T12:57:23Z",
                name);
  }
  if (std::string name = text("outcome"); !name.empty()) {
    query.outcome = protocol::outcome_from_string(name);
    if (!query.outcome) {
      return fail(ErrorCode::invalid_argument,
                  "query parameter outcome: not one of success, denied, failure, cancelled, expired, unknown");
    }
  }
  if (auto limit = request.query_parameter("limit")) {
    query.limit = TRY(number_parameter(*limit, "limit", max_limit));
  }
  if (auto before = request.query_parameter("before")) {
    query.before_seq = TRY(number_parameter(*before, "before", std::numeric_limits<std::int64_t>::max()));
  }
  return query;
}

std::string page_body(const audit::Page& page) {
  std::size_t size = 64;
  for (const std::string& entry : page.entries)
    size += entry.size() + 1;
  std::string body = R"({"entries":[)";
  body.reserve(size);
  for (const std::string& entry : page.entries) {
    if (!body.ends_with('[')) body += ',';
    body += entry;
  }
  body += R"(],"next_before":)";
  body += page.before_seq ? std::to_string(*page.before_seq) : "null";
  return body + "}\n";
}

}  // namespace

void get_audit(const ContextPointer& context) {
  const Dependencies& dependencies = context->services->dependencies;
  if (!dependencies.read_audit) {
    return context->refuse({404, "audit_disabled", "there is no audit log: audit_log_path is not set"});
  }
  Result<audit::Query> query = query_of(*context->request);
  if (!query) return context->refuse({400, "invalid_query", query.error().message});
  dependencies.runtime.run_blocking([context, query = *std::move(query)] {
    Result<audit::Page> page = context->services->dependencies.read_audit(query);
    if (page) return context->respond_json(page_body(*page));
    bool is_bad_query = page.error().code == ErrorCode::invalid_argument;
    context->refuse({is_bad_query ? 400U : 500U, is_bad_query ? "invalid_query" : "audit_unreadable",
                     "the audit log cannot be read: " + page.error().message});
  });
}

}  // namespace hive::rest
