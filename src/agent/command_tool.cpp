#include "agent/command_tool.h"

#include <csignal>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "protocol/json.h"

namespace hive::agent {

namespace {

using exec::CommandResult;
using exec::Ending;
using exec::Force;

// The output stands in an answer twice, as text and in structuredContent; together they must fit into a line.
constexpr size_t max_encoded_output_bytes = size_t{1700} << 10;

std::string seconds_text(std::chrono::milliseconds duration) {
  if (duration.count() % 1000 == 0) return fmt::format("{} s", duration.count() / 1000);
  return fmt::format("{:.3g} s", static_cast<double>(duration.count()) / 1000);
}

std::string_view force_text(Force force) {
  switch (force) {
    case Force::none:
    case Force::terminate:
      return "ended with SIGTERM";
    case Force::kill:
      return "ended with SIGKILL, it did not react to SIGTERM";
    case Force::failed:
      return "could not be killed; what is left of it hangs in the kernel or belongs to another user";
  }
  return "";
}

std::string_view signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? std::string_view("unknown") : std::string_view(name);
}

struct EncodedOutput {
  exec::RenderedOutput rendered;
  std::string text_json;  // rendered.text as a JSON string
};

EncodedOutput encode_output(const exec::CapturedOutput& output, size_t max_bytes) {
  for (;;) {
    EncodedOutput encoded{exec::render(output, max_bytes), {}};
    json::append_string(encoded.text_json, encoded.rendered.text);
    size_t size = encoded.text_json.size() + encoded.rendered.base64.size();
    if (size <= max_encoded_output_bytes || max_bytes < 1024) return encoded;
    // Escapes made it grow; the next try assumes that they are spread evenly.
    size_t kept = std::min<size_t>(max_bytes, output.head.size() + output.tail.size());
    max_bytes = std::min<size_t>(kept * max_encoded_output_bytes / size, kept) * 9 / 10;
  }
}

std::string structured_content(const CommandResult& result, const EncodedOutput& output) {
  std::string text = "{";
  if (result.exit_code) text += fmt::format(R"("exit_code":{},)", *result.exit_code);
  if (result.signal) text += fmt::format(R"("signal":{},)", *result.signal);
  text += fmt::format(R"("timed_out":{},"output":{})", result.ending == Ending::timed_out, output.text_json);
  if (output.rendered.is_binary) text += fmt::format(R"(,"output_base64":"{}")", output.rendered.base64);
  if (output.rendered.was_replaced) text += R"(,"invalid_utf8_replaced":true)";
  text += fmt::format(R"(,"output_bytes":{},"omitted_bytes":{},"leftover_processes_killed":{},"duration_ms":{}}})",
                      output.rendered.total_bytes, output.rendered.omitted_bytes, result.leftovers_killed,
                      result.duration.count());
  return text;
}

}  // namespace

ToolReply command_reply(const CommandResult& result, size_t max_output_bytes, std::chrono::milliseconds timeout) {
  EncodedOutput output = encode_output(result.output, max_output_bytes);
  std::string text = std::move(output.rendered.text);
  if (result.leftovers_killed > 0) {
    if (!text.empty() && text.back() != '\n') text += '\n';
    text += fmt::format("[left-over processes killed: {}]\n", result.leftovers_killed);
  }
  if (result.force == Force::failed && result.ending != Ending::timed_out && result.ending != Ending::cancelled) {
    text += "[some left-over processes could not be killed]\n";
  }
  ToolReply reply;
  switch (result.ending) {
    case Ending::exited:
      if (result.exit_code == 0) {
        reply.text = std::move(text);
      } else {
        reply = failed("exit_status", fmt::format("command failed: exit status {}", *result.exit_code), text);
      }
      break;
    case Ending::signalled:
      reply =
          failed("signal",
                 fmt::format("command failed: signal: {} (SIG{})", *result.signal, signal_name(*result.signal)), text);
      break;
    case Ending::timed_out:
      reply =
          failed("timed_out",
                 fmt::format("command timed out: after {}; {}", seconds_text(timeout), force_text(result.force)), text);
      break;
    case Ending::cancelled:
      reply = cancelled(fmt::format("command cancelled: {}", force_text(result.force)), text);
      break;
    case Ending::unknown:
      reply = failed("exit_status_unknown", fmt::format("command failed: {}", result.problem), text);
      break;
    case Ending::not_started:
      reply = failed("not_started", fmt::format("command failed: {}", result.problem));
      break;
  }
  reply.structured = structured_content(result, output);
  return reply;
}

ToolReply refusal_reply(const exec::Refusal& refusal) {
  return refusal.denied ? denied(refusal.reason, refusal.text) : failed(refusal.reason, refusal.text);
}

CancelHook run_allowlisted(ToolServices& services, ToolCall call, std::string_view name,
                           const std::vector<std::string>& args, Judge judge) {
  auto approved = services.allowlist.check(name, args);
  if (!approved) {
    call.reply(refusal_reply(approved.error()));
    return {};
  }
  exec::Command command;
  command.path = std::move(approved->path);
  command.argv.reserve(args.size() + 1);
  command.argv.emplace_back(name);
  for (std::string& argument : approved->args)
    command.argv.push_back(std::move(argument));
  command.environment = approved->profile->environment;
  command.run_as = approved->profile->run_as;
  command.max_output_bytes = approved->profile->max_output_bytes;
  command.timeout = approved->profile->timeout;
  if (call.timeout) command.timeout = std::min(command.timeout, *call.timeout);
  auto done = [reply = std::move(call.reply), judge = std::move(judge), timeout = command.timeout,
               max_output_bytes = command.max_output_bytes](CommandResult result) mutable {
    ToolReply answer = command_reply(result, max_output_bytes, timeout);
    if (judge) answer = judge(result, std::move(answer));
    reply(std::move(answer));
  };
  auto running = services.runner.run(std::move(command), std::move(call.progress), std::move(done));
  return [running = std::move(running)] { running->cancel(); };
}

bool is_plain_name(std::string_view text, std::string_view punctuation) {
  auto is_alphanumeric = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  if (text.empty() || text.size() > 256 || !is_alphanumeric(text.front())) return false;
  for (char c : text) {
    if (!is_alphanumeric(c) && punctuation.find(c) == std::string_view::npos) return false;
  }
  return true;
}

}  // namespace hive::agent
