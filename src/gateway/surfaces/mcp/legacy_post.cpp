#include "gateway/surfaces/mcp/legacy_post.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "gateway/surfaces/mcp/event_stream.h"
#include "gateway/surfaces/mcp/http_answers.h"
#include "protocol/agent_protocol.h"

namespace hive::mcp_surface {

namespace {

/// The answer to one POST, in which the answers to all its requests come together. Thread-safe. Its lock is taken
/// before those of the session and of the stream.
class PostAnswer : public std::enable_shared_from_this<PostAnswer> {
 public:
  PostAnswer(std::shared_ptr<HttpSession> session, std::shared_ptr<EventStream> client, Accepted accept,
             const LegacyRequests& requests)
      : session_(std::move(session)),
        client_(std::move(client)),
        accept_(accept),
        is_batch_(requests.is_batch),
        open_requests_(requests.texts.size()) {}

  // The stream calls back, so this is no work for the constructor.
  void start() {
    client_->on_gone([weak = weak_from_this()] {
      if (auto alive = weak.lock()) alive->client_gone();
    });
    client_->on_quiet([weak = weak_from_this()] {
      if (auto alive = weak.lock()) alive->open_when_quiet();
    });
  }

  void send(std::string message) {
    HttpSession::ToFlush client;
    {
      std::lock_guard lock(mutex_);
      if (open()) {
        client = session_->queue(stream_, std::move(message), false);
        message.clear();
      }
    }
    if (client) return client->flush();
    // There is no stream for it; perhaps the client listens on that of its session.
    if (!message.empty()) session_->send_unsolicited(std::move(message));
  }

  /// `message` is empty for a request that was withdrawn, which gets no answer.
  void finish(std::string message) {
    session_->end_request();
    HttpSession::ToFlush client;
    {
      std::lock_guard lock(mutex_);
      client = add_answer(std::move(message));
      if (--open_requests_ == 0) {
        HttpSession::ToFlush ended = end();
        if (ended) client = std::move(ended);
      }
    }
    if (client) client->flush();
  }

  void interrupt() {
    HttpSession::ToFlush client;
    {
      std::lock_guard lock(mutex_);
      // A client that has no event's id cannot come back.
      bool can_come_back = session_->primes_streams() || !stream_.empty();
      if (can_come_back && open()) client = session_->interrupt(stream_);
    }
    if (client) client->flush();
  }

 private:
  /// Whether there is a stream, which begins if need be.
  bool open() {
    if (!stream_.empty()) return true;
    if (!accept_.events || is_gone_) return false;
    stream_ = session_->open_stream(client_);
    for (std::string& answer : answers_)
      (void)session_->queue(stream_, std::move(answer), true);  // whoever opened it flushes it
    answers_.clear();
    return true;
  }

  HttpSession::ToFlush add_answer(std::string message) {
    if (message.empty()) return nullptr;
    if (!accept_.json) open();
    if (!stream_.empty()) return session_->queue(stream_, std::move(message), true);
    answers_.push_back(std::move(message));
    return nullptr;
  }

  HttpSession::ToFlush end() {
    if (!stream_.empty()) return session_->end_stream(stream_);
    client_->queue_response(json_answer());
    return client_;
  }

  void open_when_quiet() {
    std::lock_guard lock(mutex_);
    open();
  }

  void client_gone() {
    std::lock_guard lock(mutex_);
    is_gone_ = true;
    if (!stream_.empty()) session_->detach(stream_, client_.get());
  }

  net::http::Response json_answer() {
    net::http::Response response;
    if (answers_.empty()) {
      response.status = 202;
      response.content_type = "";
    } else if (!is_batch_) {
      response.body = std::move(answers_.front());
    } else {
      for (const std::string& answer : answers_)
        response.body += (response.body.empty() ? "[" : ",") + answer;
      response.body += ']';
    }
    return response;
  }

  const std::shared_ptr<HttpSession> session_;
  const std::shared_ptr<EventStream> client_;
  const Accepted accept_;
  const bool is_batch_;
  std::mutex mutex_;
  std::size_t open_requests_;         // guarded by mutex_
  std::vector<std::string> answers_;  // guarded by mutex_; while there is no stream
  std::string stream_;                // guarded by mutex_; empty while there is none
  bool is_gone_ = false;              // guarded by mutex_
};

/// The answer to one request of a POST.
class LegacyReply final : public Reply {
 public:
  explicit LegacyReply(std::shared_ptr<PostAnswer> post) : post_(std::move(post)) {}
  ~LegacyReply() override {
    if (!is_finished_) post_->finish("");
  }

  void send(std::string message) override { post_->send(std::move(message)); }
  void finish(std::string message, unsigned) override {
    if (!is_finished_.exchange(true)) post_->finish(std::move(message));
  }
  void interrupt() override { post_->interrupt(); }

 private:
  const std::shared_ptr<PostAnswer> post_;
  std::atomic<bool> is_finished_ = false;
};

/// The answer to initialize, with which a session begins.
class InitializeReply final : public Reply {
 public:
  InitializeReply(std::shared_ptr<HttpSession> session, std::shared_ptr<EventStream> client, std::string id,
                  std::function<bool()> admit)
      : session_(std::move(session)), client_(std::move(client)), id_(std::move(id)), admit_(std::move(admit)) {}

  ~InitializeReply() override {
    if (!is_finished_) refuse(500, "the request was ended without an answer");
  }

  void send(std::string message) override { session_->send_unsolicited(std::move(message)); }

  void finish(std::string message, unsigned) override {
    if (is_finished_.exchange(true)) return;
    auto parsed = mcp::parse_message(message);
    bool is_accepted = parsed && parsed->kind == mcp::MessageKind::response;
    if (is_accepted && !admit_()) return refuse(503, "too many sessions are open; try again later");
    net::http::Headers headers;
    if (is_accepted) {
      headers.emplace_back("Mcp-Session-Id", session_->id());
    } else {
      session_->close();
    }
    client_->queue_answer(std::make_shared<const std::string>(std::move(message)), is_accepted ? 200 : 400,
                          std::move(headers));
    client_->flush();
  }

 private:
  void refuse(unsigned status, std::string_view why) {
    session_->close();
    client_->queue_answer(
        std::make_shared<const std::string>(mcp::encode_error(id_, protocol::internal_error_code, why)), status);
    client_->flush();
  }

  const std::shared_ptr<HttpSession> session_;
  const std::shared_ptr<EventStream> client_;
  const std::string id_;
  const std::function<bool()> admit_;
  std::atomic<bool> is_finished_ = false;
};

EventStream::Options options_of(rest::McpRequest& request, Accepted accept, std::chrono::milliseconds heartbeat) {
  return {.headers = std::move(request.headers),
          .accepts_json = accept.json,
          .accepts_events = accept.events,
          .heartbeat = heartbeat};
}

bool check_accept(const rest::McpRequest& request, Accepted accept, std::string_view id) {
  if (accept.json || accept.events) return true;
  respond(request, refusal_response(406, protocol::invalid_request_code,
                                    "Accept admits neither application/json nor text/event-stream", id));
  return false;
}

}  // namespace

void legacy_requests(std::shared_ptr<HttpSession> session, rest::McpRequest request, LegacyRequests requests,
                     std::chrono::milliseconds heartbeat) {
  Accepted accept = accepted(*request.request);
  if (!check_accept(request, accept, requests.is_batch ? "" : requests.ids.front())) return;
  for (std::size_t begun = 0; begun < requests.texts.size(); ++begun) {
    if (session->begin_request()) continue;
    for (; begun > 0; --begun)
      session->end_request();
    return respond(
        request, refusal_response(429, protocol::internal_error_code, "too many requests of this session are in flight",
                                  requests.is_batch ? "" : requests.ids.front()));
  }
  net::Worker& worker = *request.request->worker;
  auto stream = EventStream::create(worker, std::move(request.responder), options_of(request, accept, heartbeat));
  auto post = std::make_shared<PostAnswer>(session, std::move(stream), accept, requests);
  post->start();
  std::vector<std::shared_ptr<Reply>> replies;
  for (std::size_t i = 0; i < requests.texts.size(); ++i)
    replies.push_back(std::make_shared<LegacyReply>(post));
  Client client{std::move(request.principal), request.surface, std::move(request.request_id)};
  for (std::size_t i = 0; i < requests.texts.size(); ++i)
    session->core().request(worker, client, std::move(requests.texts[i]), std::move(replies[i]));
}

void legacy_initialize(std::shared_ptr<HttpSession> session, rest::McpRequest request, std::string id,
                       std::function<bool()> admit, std::chrono::milliseconds heartbeat) {
  Accepted accept = accepted(*request.request);
  if (!check_accept(request, accept, id)) return session->close();
  net::Worker& worker = *request.request->worker;
  auto stream = EventStream::create(worker, std::move(request.responder), options_of(request, accept, heartbeat));
  auto reply = std::make_shared<InitializeReply>(session, std::move(stream), std::move(id), std::move(admit));
  Client client{std::move(request.principal), request.surface, std::move(request.request_id)};
  session->core().request(worker, std::move(client), std::move(request.request->body), std::move(reply));
}

}  // namespace hive::mcp_surface
