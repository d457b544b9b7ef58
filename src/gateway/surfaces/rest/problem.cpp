#include "gateway/surfaces/rest/problem.h"

#include "net/http/response_writer.h"
#include "protocol/json.h"

namespace hive::rest {

net::http::Response problem_response(const Problem& problem, std::string_view request_id) {
  net::http::Response response;
  response.status = problem.status;
  response.content_type = "application/problem+json";
  std::string& body = response.body;
  auto add = [&](std::string_view key, std::string_view value) {
    body += body.empty() ? "{\"" : ",\"";
    body += key;
    body += "\":";
    json::append_string(body, value);
  };
  add("type", "about:blank");
  add("title", net::http::reason_phrase(problem.status));
  body += fmt::format(",\"status\":{}", problem.status);
  add("code", problem.code);
  add("detail", problem.detail);
  add("request_id", request_id);
  if (!problem.outcome.empty()) add("outcome", problem.outcome);
  body += "}\n";
  return response;
}

}  // namespace hive::rest
