#pragma once

#include <string>
#include <string_view>

#include "net/http/message.h"

namespace hive::rest {

/// A refusal or failure as the client sees it.
struct Problem {
  unsigned status = 500;
  std::string_view code;          ///< for programs: short, stable
  std::string detail;             ///< for people: one line with the remedy
  std::string_view outcome = {};  ///< of a call that this answers; may be empty
};

/// application/problem+json (RFC 9457) with the members type, title, status, code, detail, request_id and outcome.
net::http::Response problem_response(const Problem& problem, std::string_view request_id);

}  // namespace hive::rest
