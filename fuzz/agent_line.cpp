// Lines of the tunnel, read by both ends: never a crash, and what is taken out of a line is JSON again.
#include "fuzz_target.h"
#include "protocol/agent_protocol.h"

namespace {

using namespace hive;

void check_json(std::string_view raw) {
  if (!raw.empty()) CHECK(json::validate(raw).has_value());
}

void read_as_agent(std::string_view line) {
  Result<protocol::AgentRequest> request = protocol::parse_agent_request(line, json::Limits{});
  if (!request) return;
  check_json(request->id);
  check_json(request->params);
  std::string answer = protocol::encode_result(request->id, "{}");
  CHECK(!answer.contains('\n'));
  check_json(answer);
  Result<protocol::ToolCallParams> params = protocol::parse_tool_call_params(request->params);
  if (!params) return;
  check_json(params->arguments);
  check_json(params->progress_token);
}

void read_as_gateway(std::string_view line) {
  Result<protocol::AgentMessage> message = protocol::parse_agent_message(line, json::Limits{});
  if (!message) return;
  if (const auto* response = std::get_if<protocol::AgentResponse>(&*message)) {
    check_json(response->body);
    (void)(response->is_error ? protocol::classify_error(response->body) : protocol::classify_result(response->body));
  } else {
    check_json(std::get<protocol::AgentProgress>(*message).params);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view line = fuzz::as_text(data, size);
  read_as_agent(line);
  read_as_gateway(line);
  (void)protocol::classify_result(line);
  (void)protocol::classify_error(line);
  (void)protocol::parse_tool_call_params(line);
  return 0;
}
