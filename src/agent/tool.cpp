#include "agent/tool.h"

#include <atomic>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "protocol/agent_protocol.h"
#include "protocol/json.h"

namespace hive::agent {

namespace {

using protocol::Outcome;

constexpr std::chrono::milliseconds default_timeout = std::chrono::seconds(30);

ToolReply rejected(Outcome outcome, std::string_view reason, std::string_view text, std::string_view output) {
  return {.text = fmt::format("{} {}\nOutput:\n{}", protocol::rejected_marker, text, output),
          .structured = {},
          .outcome = outcome,
          .reason = std::string(reason)};
}

// A call that waits for the pool; whoever comes first replies.
struct PooledCall {
  ToolCall call;
  std::move_only_function<ToolReply()> work;
  ToolReply result;  // written by the pool before it posts
  net::Timer deadline;
  std::atomic<bool> answered = false;  // read by the pool

  void reply(ToolReply reply) {
    answered = true;
    deadline.cancel();
    if (auto callback = std::exchange(call.reply, nullptr)) callback(std::move(reply));
  }
};

}  // namespace

ToolReply invalid_arguments(std::string message) {
  return {.text = std::move(message),
          .structured = {},
          .outcome = Outcome::denied,
          .reason = "invalid_arguments",
          .error_code = protocol::invalid_params_code};
}

ToolReply denied(std::string_view reason, std::string_view text, std::string_view output) {
  return rejected(Outcome::denied, reason, text, output);
}

ToolReply failed(std::string_view reason, std::string_view text, std::string_view output) {
  return rejected(Outcome::failure, reason, text, output);
}

ToolReply cancelled(std::string_view text, std::string_view output) {
  return rejected(Outcome::cancelled, "cancelled", text, output);
}

std::string encode_tool_result(const ToolReply& reply) {
  std::string result = R"({"content":[{"type":"text","text":)";
  result.reserve(reply.text.size() + reply.structured.size() + 256);
  json::append_string(result, reply.text);
  result += "}]";
  if (!reply.structured.empty()) {
    result += R"(,"structuredContent":)";
    result += reply.structured;
  }
  bool is_error = reply.outcome != Outcome::success;
  result += is_error ? R"(,"isError":true,"_meta":{)" : R"(,"isError":false,"_meta":{)";
  result += fmt::format(R"("{}":"{}")", protocol::outcome_meta_key, to_string(reply.outcome));
  if (!reply.reason.empty()) {
    result += fmt::format(R"(,"{}":)", protocol::reason_meta_key);
    json::append_string(result, reply.reason);
  }
  result += "}}";
  return result;
}

std::string encode_answer(std::string_view raw_id, const ToolReply& reply) {
  std::string line = reply.error_code != 0
                         ? protocol::encode_error(raw_id, reply.error_code, reply.text, reply.outcome, reply.reason)
                         : protocol::encode_result(raw_id, encode_tool_result(reply));
  if (line.size() <= protocol::default_max_line_bytes) return line;
  std::string text = fmt::format("the result takes {} bytes, a line of the tunnel holds {}; ask for less", line.size(),
                                 protocol::default_max_line_bytes);
  return protocol::encode_result(raw_id, encode_tool_result(failed("result_too_large", text)));
}

CancelHook run_in_pool(ToolServices& services, ToolCall call, std::move_only_function<ToolReply()> work) {
  auto pooled = std::make_shared<PooledCall>(std::move(call), std::move(work));
  std::chrono::milliseconds timeout = std::min(pooled->call.timeout.value_or(default_timeout), default_timeout);
  pooled->deadline = services.worker.schedule(timeout, [weak = std::weak_ptr(pooled), timeout] {
    if (auto late = weak.lock()) {
      late->reply(failed("timed_out", fmt::format("command timed out: no answer after {} ms", timeout.count())));
    }
  });
  bool taken = services.reads.run([pooled, &worker = services.worker]() mutable {
    if (!pooled->answered) pooled->result = pooled->work();
    pooled->work = nullptr;
    // The last reference must not end on this thread.
    worker.post([ended = std::move(pooled)] { ended->reply(std::move(ended->result)); });
  });
  if (!taken) {
    pooled->reply(denied("busy", "agent is busy: too many reads of files have not returned; a file system may hang"));
    return {};
  }
  return [weak = std::weak_ptr(pooled)] {
    if (auto waiting = weak.lock()) waiting->reply(cancelled("cancelled by the caller"));
  };
}

}  // namespace hive::agent
