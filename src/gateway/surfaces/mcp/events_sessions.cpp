#include "gateway/surfaces/mcp/events_sessions.h"

#include <atomic>
#include <utility>
#include <vector>

#include "gateway/surfaces/mcp/http_answers.h"
#include "protocol/agent_protocol.h"

namespace hive::mcp_surface {

/// Everything goes to the one stream of the client.
class EventsSessions::Answer final : public Reply {
 public:
  Answer(std::shared_ptr<EventsSessions> sessions, std::shared_ptr<Entry> entry)
      : sessions_(std::move(sessions)), entry_(std::move(entry)) {
    ++entry_->in_flight;
  }
  ~Answer() override {
    if (!is_finished_) sessions_->answered(*entry_);
  }

  void send(std::string message) override {
    entry_->stream->queue_message(std::make_shared<const std::string>(std::move(message)));
    entry_->stream->flush();
  }
  void finish(std::string message, unsigned) override {
    if (is_finished_.exchange(true)) return;
    send(std::move(message));
    sessions_->answered(*entry_);
  }

 private:
  const std::shared_ptr<EventsSessions> sessions_;
  const std::shared_ptr<Entry> entry_;
  std::atomic<bool> is_finished_ = false;
};

void EventsSessions::open(rest::McpRequest request) {
  if (!accepted(*request.request).events) {
    return respond(request, refusal_response(406, protocol::invalid_request_code,
                                             "this is an event stream; send Accept: text/event-stream"));
  }
  std::shared_ptr<void> place = quota_->take(request.principal.identity());
  if (!place) {
    return respond(request,
                   refusal_response(429, protocol::internal_error_code,
                                    fmt::format("{} event streams are open already; close some", quota_->max())));
  }
  Client client{request.principal, request.surface, request.request_id};
  std::shared_ptr<Session> session = core_->open_session(client);
  if (!session && others_->make_room(request.principal.identity())) session = core_->open_session(client);
  if (!session) {
    return respond(request, refusal_response(503, protocol::internal_error_code, "too many sessions are open"));
  }
  auto stream = EventStream::create(*request.request->worker, std::move(request.responder),
                                    {.headers = std::move(request.headers),
                                     .accepts_json = false,
                                     .heartbeat = heartbeat_,
                                     .is_still_admitted = std::move(request.is_still_admitted)});
  {
    std::lock_guard lock(mutex_);
    auto entry = std::make_shared<Entry>();
    entry->session = session;
    entry->stream = stream;
    entries_.emplace(session->id(), std::move(entry));
  }
  stream->queue_text(fmt::format("event: endpoint\ndata: /message?session_id={}\n\n", session->id()));
  session->set_unsolicited([weak = std::weak_ptr(stream)](std::string message) {
    auto alive = weak.lock();
    if (!alive) return;
    alive->queue_message(std::make_shared<const std::string>(std::move(message)));
    alive->flush();
  });
  stream->on_gone([self = shared_from_this(), id = session->id(), place = std::move(place)] { self->end(id); });
  stream->flush();
}

void EventsSessions::post(rest::McpRequest request) {
  std::optional<std::string> id = request.request->query_parameter("session_id");
  if (!id) {
    return respond(request, refusal_response(400, protocol::invalid_request_code,
                                             "session_id is missing; post to the URL of the stream's endpoint event"));
  }
  std::shared_ptr<Entry> entry = find(*id);
  if (entry && entry->session->owner() != request.principal.identity()) {
    request.record_refusal("foreign_session", "a session of somebody else");
    entry = nullptr;
  }
  if (!entry) {
    return respond(request, refusal_response(404, protocol::invalid_request_code,
                                             "there is no such session; it ends with its stream: open GET /sse again"));
  }
  const std::string& text = request.request->body;
  auto message = mcp::parse_message(text);
  if (!message) return respond(request, fault_response(message.error()));
  Client client{request.principal, request.surface, request.request_id};
  if (message->kind != mcp::MessageKind::request) {
    entry->session->accept(client, text);
    return respond(request, {.status = 202, .content_type = ""});
  }
  // Before its answer can be on the stream.
  respond(request, {.status = 202, .content_type = ""});
  entry->session->request(*request.request->worker, std::move(client), text,
                          std::make_shared<Answer>(shared_from_this(), entry));
}

std::shared_ptr<EventsSessions::Entry> EventsSessions::find(std::string_view id) const {
  std::lock_guard lock(mutex_);
  auto found = entries_.find(std::string(id));
  return found == entries_.end() ? nullptr : found->second;
}

void EventsSessions::end(const std::string& id) {
  std::shared_ptr<Entry> entry;
  {
    std::lock_guard lock(mutex_);
    auto found = entries_.find(id);
    if (found == entries_.end()) return;
    entry = std::move(found->second);
    entries_.erase(found);
  }
  entry->session->set_unsolicited(nullptr);
  entry->session->close();
}

void EventsSessions::answered(Entry& entry) {
  if (--entry.in_flight > 0 || !is_closed_) return;
  entry.stream->queue_end();
  entry.stream->flush();
  end(entry.session->id());
}

void EventsSessions::close() {
  is_closed_ = true;
  std::vector<std::shared_ptr<Entry>> idle;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, entry] : entries_) {
      if (entry->in_flight == 0) idle.push_back(entry);
    }
  }
  for (const std::shared_ptr<Entry>& entry : idle) {
    entry->stream->queue_end();
    entry->stream->flush();
    end(entry->session->id());
  }
}

std::size_t EventsSessions::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace hive::mcp_surface
