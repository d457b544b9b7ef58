#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "container/layout.h"
#include "container/record.h"

/// Requests to hive-priv, one connection each.
namespace hive::container {

/// What hive-priv answered.
struct PrivAnswer {
  bool ok = false;
  std::string result;   ///< raw JSON of "result", or "{}"
  std::string code;     ///< of a refusal
  std::string message;  ///< of a refusal, as it came
};

/// Sends one line and waits for the last line of the answer. Failure: nobody listens, no answer in time, or no JSON.
Result<PrivAnswer> ask_priv(std::string_view request, const Layout& layout,
                            std::chrono::seconds timeout = std::chrono::seconds(3600));

/// The request that goes out before every start: the agent's folders, the bridge and its gateway.
std::string flags_request(const Record& record, const Layout& layout);
/// {"op": OP, "container": NAME}.
std::string container_request(std::string_view op, std::string_view name);

}  // namespace hive::container
