#include <algorithm>
#include <array>
#include <deque>

#include "gateway/surfaces/rest/call_answer.h"
#include "gateway/surfaces/rest/call_request.h"
#include "gateway/surfaces/rest/call_response.h"
#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/fan_out_json.h"
#include "gateway/surfaces/rest/fan_out_request.h"

namespace hive::rest {

namespace {

constexpr std::chrono::seconds heartbeat_period{15};
constexpr std::chrono::milliseconds reader_pause{20};
// Of one request in memory, apart from what the kernel holds: results of a client that does not read them.
constexpr std::size_t max_held_bytes = std::size_t{8} << 20;
// More is not given to the connection before the client has taken some; far below where the server cuts it off.
constexpr std::size_t max_queued_bytes = std::size_t{256} << 10;

void refuse(const Context& context, const calls::CallResult& refusal) {
  static constexpr std::array<std::pair<std::string_view, unsigned>, 6> statuses = {{
      {"role", 403},
      {"arguments_too_large", 413},
      {"no_target", 422},
      {"too_many_approvals", 422},
      {"fan_outs_full", 429},
      {"draining", 503},
  }};
  const auto* found = std::ranges::find(statuses, refusal.reason, [](const auto& entry) { return entry.first; });
  unsigned status = found == statuses.end() ? 400 : found->second;
  net::http::Headers headers = outcome_headers(refusal);
  if (status == 429) {
    unsigned wait = context.services->retry_after(std::chrono::seconds(1), 4);
    headers.emplace_back("Retry-After", std::to_string(wait));
  }
  context.refuse({status, refusal.reason, error_message(refusal), protocol::to_string(refusal.outcome)},
                 std::move(headers));
}

/// Results as server-sent events, one an agent as they come. Everything happens on the request's worker.
class StreamedFanOut final : public calls::FanOutSink, public std::enable_shared_from_this<StreamedFanOut> {
 public:
  explicit StreamedFanOut(ContextPointer context) : context_(std::move(context)) {}

  void begin(std::shared_ptr<calls::RunningFanOut> running) {
    running_ = std::move(running);
    net::http::Response head;
    head.content_type = "text/event-stream";
    // Proxies that collect an answer before they pass it on would defeat the purpose.
    head.headers.emplace_back("X-Accel-Buffering", "no");
    context_->complete(head);
    stream_ = context_->responder->respond_stream(std::move(head));
    push(server_sent_event("start", fan_out_start_json(context_->request_id, *running_)));
    beat();
  }

  void result(calls::FanOutResult result) override {
    bool fits = backlog_bytes_ + result.call.body.size() <= max_held_bytes;
    push(server_sent_event("result", fan_out_result_json(result, fits)));
  }

  void end(const calls::FanOutEnd& end) override {
    ended_ = true;
    push(server_sent_event("end", fan_out_end_json(context_->request_id, *running_, end)));
  }

  [[nodiscard]] bool has_room() const override { return backlog_.empty(); }

  /// The client has gone, or reads so slowly that it was cut off.
  void leave() {
    gone_ = true;
    backlog_.clear();
    backlog_bytes_ = 0;
    heartbeat_.cancel();
    running_->cancel("the client has gone or reads too slowly");
  }

 private:
  net::Worker& worker() { return *context_->request->worker; }

  void push(std::string event) {
    if (gone_) return;
    backlog_bytes_ += event.size();
    backlog_.push_back(std::move(event));
    flush();
  }

  void flush() {
    while (!gone_ && !backlog_.empty() && stream_->queued_bytes() < max_queued_bytes) {
      gone_ = !stream_->send(backlog_.front());
      backlog_bytes_ -= backlog_.front().size();
      backlog_.pop_front();
    }
    if (gone_) return leave();
    if (!backlog_.empty()) {
      // The connection says nothing when its client has read on. Behind the end, nobody else keeps this alive.
      reader_timer_ = worker().schedule(reader_pause, [self = shared_from_this()] { self->read_on(); });
      return;
    }
    if (ended_) {
      heartbeat_.cancel();
      stream_->end();
    }
  }

  void read_on() {
    if (gone_) return;
    flush();
    if (!gone_ && !ended_ && backlog_.empty()) running_->resume();
  }

  void beat() {
    heartbeat_ = worker().schedule(heartbeat_period, [weak = weak_from_this()] {
      auto alive = weak.lock();
      if (!alive || alive->ended_ || alive->gone_) return;
      // Behind results that wait, there is no silence to fill.
      if (alive->backlog_.empty()) alive->push(": heartbeat\n\n");
      alive->beat();
    });
  }

  const ContextPointer context_;
  std::shared_ptr<calls::RunningFanOut> running_;
  std::shared_ptr<net::http::Stream> stream_;
  std::deque<std::string> backlog_;
  std::size_t backlog_bytes_ = 0;
  net::Timer reader_timer_;
  net::Timer heartbeat_;
  bool ended_ = false;
  bool gone_ = false;
};

/// Results as one JSON document in the order of the agents, bounded in all.
class CollectedFanOut final : public calls::FanOutSink {
 public:
  explicit CollectedFanOut(ContextPointer context) : context_(std::move(context)) {}

  void begin(std::shared_ptr<calls::RunningFanOut> running) {
    running_ = std::move(running);
    results_.resize(running_->agents().size());
  }

  void result(calls::FanOutResult result) override {
    bool fits = bytes_ + result.call.body.size() <= max_held_bytes;
    if (fits) bytes_ += result.call.body.size();
    results_[result.place] = fan_out_result_json(result, fits);
  }

  void end(const calls::FanOutEnd& end) override {
    std::string body = fan_out_end_json(context_->request_id, *running_, end);
    body.back() = ',';
    body += R"("results":[)";
    for (std::string& result : results_) {
      if (!body.ends_with('[')) body += ',';
      body += std::exchange(result, {});
    }
    context_->respond_json(body + "]}\n");
  }

  void leave() { running_->cancel("the client has gone"); }

 private:
  const ContextPointer context_;
  std::shared_ptr<calls::RunningFanOut> running_;
  std::vector<std::string> results_;
  std::size_t bytes_ = 0;
};

template <class Sink>
void run(const ContextPointer& context, calls::FanOutRequest request) {
  auto sink = std::make_shared<Sink>(context);
  auto running = context->services->dependencies.fan_outs.start(*context->request->worker, std::move(request), sink);
  if (!running) return refuse(*context, running.error());
  sink->begin(*running);
  context->responder->on_disconnect([sink] { sink->leave(); });
}

void preview(const ContextPointer& context, calls::FanOutRequest request) {
  const Dependencies& dependencies = context->services->dependencies;
  dependencies.runtime.run_blocking([context, &fan_outs = dependencies.fan_outs, request = std::move(request)] {
    auto preview = fan_outs.preview(request);
    if (!preview) return refuse(*context, preview.error());
    context->respond_json(fan_out_preview_json(*preview) + "\n");
  });
}

}  // namespace

void post_fan_out(const ContextPointer& context) {
  Result<FanOutBody> body = parse_fan_out_request(context->request->body);
  if (!body) return context->refuse({400, "invalid_request", body.error().message});
  body->request.principal = context->principal;
  body->request.surface = calls::Surface::rest;
  body->request.request_id = context->request_id;
  if (body->dry_run) return preview(context, std::move(body->request));
  if (prefers_event_stream(context->request->header("accept").value_or(""))) {
    return run<StreamedFanOut>(context, std::move(body->request));
  }
  run<CollectedFanOut>(context, std::move(body->request));
}

}  // namespace hive::rest
