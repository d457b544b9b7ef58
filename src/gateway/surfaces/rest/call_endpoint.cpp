#include "base/log.h"
#include "gateway/surfaces/rest/call_address.h"
#include "gateway/surfaces/rest/call_answer.h"
#include "gateway/surfaces/rest/call_request.h"
#include "gateway/surfaces/rest/call_response.h"
#include "gateway/surfaces/rest/endpoints.h"

namespace hive::rest {

namespace {

constexpr std::chrono::milliseconds stream_start_delay(250);
constexpr std::chrono::seconds heartbeat_period(15);

/// A call whose output goes out as server-sent events. Everything happens on the request's worker. The stream begins
/// with the first output or after a moment, so that a call that is refused at once still gets its HTTP status.
class StreamedCall : public std::enable_shared_from_this<StreamedCall> {
 public:
  explicit StreamedCall(ContextPointer context) : context_(std::move(context)) {}

  void start(calls::Call call) {
    auto self = shared_from_this();
    // Where other people are asked, nothing runs that could be silent, and the answer is a status and no stream.
    bool asks = is_for_approval(call);
    call.on_progress = [weak = weak_from_this()](std::string_view params) {
      if (auto alive = weak.lock()) alive->send(server_sent_event("progress", params));
    };
    running_ = context_->services->dependencies.funnel.run(worker(), std::move(call),
                                                           [self](calls::CallResult result) { self->finish(result); });
    context_->responder->on_disconnect([weak = weak_from_this()] {
      if (auto alive = weak.lock()) alive->cancel();
    });
    if (asks) return;
    timer_ = worker().schedule(stream_start_delay, [weak = weak_from_this()] {
      if (auto alive = weak.lock()) alive->open();
    });
  }

 private:
  net::Worker& worker() { return *context_->request->worker; }

  [[nodiscard]] bool is_for_approval(const calls::Call& call) const {
    const policy::Policy& policy = *context_->settings->policy;
    protocol::Tier tier = call.target == calls::TargetKind::upstream ? policy.tier_of_upstream(call.tool)
                                                                     : policy.tier_of(call.tool, call.arguments);
    policy::Question question{
        .principal = call.principal, .agent = call.agent, .tool = call.tool, .arguments = call.arguments, .tier = tier};
    return policy.check_approval(question).verdict == policy::Verdict::ask;
  }

  void open(net::http::Headers headers = {}) {
    if (stream_ || finished_) return;
    net::http::Response head;
    head.content_type = "text/event-stream";
    head.headers = std::move(headers);
    // Proxies that collect an answer before they pass it on would defeat the purpose.
    head.headers.emplace_back("X-Accel-Buffering", "no");
    context_->complete(head);
    stream_ = context_->responder->respond_stream(std::move(head));
    schedule_heartbeat();
  }

  void schedule_heartbeat() {
    timer_ = worker().schedule(heartbeat_period, [weak = weak_from_this()] {
      auto alive = weak.lock();
      if (!alive || alive->finished_) return;
      alive->send(": heartbeat\n\n");
      alive->schedule_heartbeat();
    });
  }

  void send(std::string_view event) {
    if (finished_) return;
    open();
    if (!stream_->send(event)) cancel();
  }

  void cancel() {
    if (!finished_ && running_) running_->cancel("the client has gone or reads too slowly");
  }

  void finish(const calls::CallResult& result) {
    finished_ = true;
    timer_.cancel();
    bool waits = !result.approval_id.empty();
    if (!stream_ && (waits || refusal_status(result))) return answer_call(*context_, result);
    if (!stream_) {
      finished_ = false;
      open(outcome_headers(result));
      finished_ = true;
      timer_.cancel();
    }
    std::string event = waits ? server_sent_event("pending_approval", pending_json(*context_, result))
                              : server_sent_event("result", json_rpc_response(context_->request_id, result));
    if (!stream_->send(event)) {
      // The stream is cut and not ended, so the client knows that it has no result; the audit log has the outcome.
      log::warning("a streamed call's result did not reach its client, which has gone or reads too slowly",
                   {{"request", context_->request_id}});
      return;
    }
    stream_->end();
  }

  const ContextPointer context_;
  std::shared_ptr<calls::RunningCall> running_;
  std::shared_ptr<net::http::Stream> stream_;
  net::Timer timer_;
  bool finished_ = false;
};

}  // namespace

void post_call(const ContextPointer& context) {
  Result<CallRequest> request = parse_call_request(context->request->body);
  if (!request) return context->refuse({400, "invalid_request", request.error().message});
  calls::Call call;
  address_call(*context, request->name, call);
  call.principal = context->principal;
  call.surface = calls::Surface::rest;
  call.request_id = context->request_id;
  call.arguments = std::move(request->arguments);
  call.timeout = request->timeout;
  call.wait_for_agent = request->wait;
  if (prefers_event_stream(context->request->header("accept").value_or(""))) {
    return std::make_shared<StreamedCall>(context)->start(std::move(call));
  }
  std::shared_ptr<calls::RunningCall> running = context->services->dependencies.funnel.run(
      *context->request->worker, std::move(call),
      [context](const calls::CallResult& result) { answer_call(*context, result); });
  context->responder->on_disconnect([running = std::move(running)] { running->cancel("the client has gone"); });
}

}  // namespace hive::rest
