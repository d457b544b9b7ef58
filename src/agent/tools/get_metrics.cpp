#include "agent/arguments.h"
#include "agent/tools/metrics_sampler.h"
#include "agent/tools/tools.h"
#include "protocol/agent_protocol.h"

namespace hive::agent {

CancelHook get_metrics(ToolServices& services, ToolCall call) {
  HIVE_TRY_ARGUMENT(call, Arguments::parse(call.arguments, "get_metrics", true));
  auto metrics = services.metrics.sample();
  if (!metrics) {
    call.reply({.text = "metrics cannot be read: " + metrics.error().message,
                .structured = {},
                .outcome = protocol::Outcome::failure,
                .reason = "metrics_unavailable",
                .error_code = protocol::internal_error_code});
    return {};
  }
  std::string json = to_json(*metrics);
  ToolReply reply;
  reply.structured = json;
  reply.text = std::move(json);
  call.reply(std::move(reply));
  return {};
}

}  // namespace hive::agent
