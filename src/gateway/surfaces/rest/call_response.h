#pragma once

#include "gateway/calls/call.h"
#include "gateway/surfaces/rest/services.h"

namespace hive::rest {

/// Myrmex-Outcome, and Myrmex-Reason where there is one.
net::http::Headers outcome_headers(const calls::CallResult& result);

/// Answers a request with how a call ended, or with 202 where it waits for other people.
void answer_call(const Context& context, const calls::CallResult& result);

/// {"status":"pending_approval",...}: what a caller is told whose call waits.
std::string pending_json(const Context& context, const calls::CallResult& result);

}  // namespace hive::rest
