#include <map>
#include <tuple>
#include <vector>

#include "base/strings.h"
#include "base/utf8.h"
#include "gateway/surfaces/mcp/call_answer.h"
#include "gateway/surfaces/mcp/methods.h"
#include "gateway/surfaces/mcp/server.h"
#include "gateway/surfaces/rest/fan_out_json.h"
#include "gateway/surfaces/rest/fan_out_request.h"
#include "protocol/json_object.h"

namespace hive::mcp_surface {

namespace {

// Common clients give a request up after a minute; who wants to wait longer says so.
constexpr std::chrono::seconds default_deadline{50};
// What a model reads of one agent, and of all of them together.
constexpr std::size_t max_output_bytes = 4000;
constexpr std::size_t max_answer_bytes = std::size_t{200} << 10;
constexpr std::size_t max_named_agents = 50;

/// The text blocks of a tool's result, as much of them as is shown.
std::string output_of(const calls::CallResult& call) {
  if (call.is_error) return message_of_error(call.body);
  std::string output;
  auto members = json::parse_object(call.body, mcp::message_limits);
  auto content = members ? json::find(*members, "content") : std::nullopt;
  auto blocks = content ? json::parse_array(*content, mcp::message_limits) : fail(ErrorCode::not_found, "no content");
  if (!blocks) return output;
  for (std::string_view block : *blocks) {
    auto fields = json::parse_object(block, mcp::message_limits);
    auto text = fields ? json::find(*fields, "text") : std::nullopt;
    if (auto decoded = text ? json::decode_string(*text) : std::nullopt) output += *decoded;
    if (output.size() > max_output_bytes) break;
  }
  if (output.size() <= max_output_bytes) return output;
  return std::string(utf8::truncate(output, max_output_bytes)) + " [cut: call AGENT__TOOL for the whole]";
}

/// Gathers what a model is to read: who ended how, and each output once.
class AgentsAnswer final : public calls::FanOutSink {
 public:
  explicit AgentsAnswer(ExchangePointer exchange) : exchange_(std::move(exchange)) {}

  void begin(std::shared_ptr<calls::RunningFanOut> running) {
    running_ = std::move(running);
    lines_.resize(running_->agents().size());
  }

  void result(calls::FanOutResult result) override {
    const calls::CallResult& call = result.call;
    bool waits = !call.approval_id.empty();
    std::string outcome(waits ? "approval_required" : protocol::to_string(call.outcome));
    std::string output = waits ? "approval id " + call.approval_id : output_of(call);
    report_progress(result.agent, outcome);
    // The text has each output once, the table has it for each agent; both are read, so both are bounded.
    auto known = groups_.find({outcome, call.reason, output});
    bool is_new = known == groups_.end();
    bool fits = !is_new || text_bytes_ + output.size() <= max_answer_bytes;
    bool fits_table = table_bytes_ + output.size() <= max_answer_bytes;
    json::ObjectText line;
    line.text("agent", result.agent).text("outcome", outcome);
    if (!call.reason.empty()) line.text("reason", call.reason);
    if (waits) line.text("approval_id", call.approval_id);
    if (!waits) line.number("duration_us", static_cast<std::int64_t>(call.duration_us));
    if (!waits && fits_table) {
      line.text(call.is_error ? "message" : "output", output);
      table_bytes_ += output.size();
    }
    if (!waits && !fits_table) line.boolean("output_left_out", true);
    lines_[result.place] = line.take();
    if (fits && is_new) text_bytes_ += output.size();
    groups_[{outcome, call.reason, fits ? output : std::string(left_out)}].emplace_back(result.agent);
  }

  void end(const calls::FanOutEnd& end) override {
    // The members of the summary, then the table.
    std::string structured = rest::fan_out_end_json(exchange_->client().request_id, *running_, end);
    structured.back() = ',';
    structured += R"("results":[)" + join(lines_, ",") + "]}";
    std::string content = "[" + json::ObjectText().text("type", "text").text("text", text(end)).take() + "]";
    exchange_->finish(json::ObjectText().raw("content", content).raw("structuredContent", structured).take());
  }

 private:
  static constexpr std::string_view left_out = "[output left out: the answer is large already]";

  void report_progress(std::string_view agent, std::string_view outcome) {
    ++ended_;
    if (!exchange_->wants_progress()) return;
    exchange_->progress(json::ObjectText()
                            .number("progress", static_cast<std::int64_t>(ended_))
                            .number("total", static_cast<std::int64_t>(running_->agents().size()))
                            .text("message", fmt::format("{}: {}", agent, outcome))
                            .take());
  }

  [[nodiscard]] std::string text(const calls::FanOutEnd& end) const {
    std::size_t count = running_->agents().size();
    std::string text = fmt::format("{} agent{}", count, count == 1 ? "" : "s");
    if (running_->left_out() > 0) text += fmt::format(" (and {} left out that are offline)", running_->left_out());
    if (!end.stopped_by.empty()) text += fmt::format("; ended early by {}", end.stopped_by);
    for (const auto& [what, agents] : groups_) {
      const auto& [outcome, reason, output] = what;
      text += fmt::format("\n\n{} of {}", outcome, agents.size());
      if (!reason.empty()) text += fmt::format(" ({})", reason);
      text += ": " + names(agents) + "\n" + output;
    }
    return text;
  }

  static std::string names(const std::vector<std::string>& agents) {
    if (agents.size() <= max_named_agents) return join(agents, ", ");
    std::span<const std::string> shown(agents.data(), max_named_agents);
    return join(shown, ", ") + fmt::format(" and {} more", agents.size() - max_named_agents);
  }

  const ExchangePointer exchange_;
  std::shared_ptr<calls::RunningFanOut> running_;
  std::vector<std::string> lines_;  // by place
  // By outcome, reason and output.
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::string>> groups_;
  std::size_t text_bytes_ = 0;
  std::size_t table_bytes_ = 0;
  std::size_t ended_ = 0;
};

std::string refused(const calls::CallResult& refusal) {
  return tool_error(message_of_error(refusal.body), protocol::to_string(refusal.outcome), refusal.reason);
}

void preview(const std::shared_ptr<Server>& server, const ExchangePointer& exchange, calls::FanOutRequest request) {
  server->dependencies.runtime.run_blocking([server, exchange, request = std::move(request)] {
    auto preview = server->dependencies.fan_outs.preview(request);
    std::string result = preview ? std::string() : refused(preview.error());
    if (preview) {
      std::string structured = rest::fan_out_preview_json(*preview);
      std::string content = "[" + json::ObjectText().text("type", "text").text("text", structured).take() + "]";
      result = json::ObjectText().raw("content", content).raw("structuredContent", structured).take();
    }
    exchange->worker().post([exchange, result = std::move(result)] { exchange->finish(result); });
  });
}

}  // namespace

void call_agents(const std::shared_ptr<Server>& server, const ExchangePointer& exchange,
                 std::string_view raw_arguments) {
  Result<rest::FanOutBody> body = rest::parse_fan_out_request(raw_arguments);
  if (!body) return exchange->finish(tool_error(body.error().message, "denied", "invalid_arguments"));
  calls::FanOutRequest& request = body->request;
  request.principal = exchange->client().principal;
  request.surface = exchange->client().surface;
  request.request_id = exchange->client().request_id;
  if (request.deadline.count() == 0) request.deadline = default_deadline;
  if (body->dry_run) return preview(server, exchange, std::move(request));
  auto answer = std::make_shared<AgentsAnswer>(exchange);
  auto running = server->dependencies.fan_outs.start(exchange->worker(), std::move(request), answer);
  if (!running) return exchange->finish(refused(running.error()));
  answer->begin(*running);
  exchange->on_cancel([running = *std::move(running)](std::string_view reason) { running->cancel(reason); });
}

}  // namespace hive::mcp_surface
