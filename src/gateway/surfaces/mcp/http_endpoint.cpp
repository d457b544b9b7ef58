#include "gateway/surfaces/mcp/http_endpoint.h"

#include <atomic>
#include <utility>

#include "crypto/random.h"
#include "gateway/surfaces/mcp/events_sessions.h"
#include "gateway/surfaces/mcp/http_answers.h"
#include "gateway/surfaces/mcp/legacy_post.h"
#include "gateway/surfaces/mcp/modern_post.h"
#include "protocol/agent_protocol.h"

namespace hive::mcp_surface {

namespace {

using protocol::internal_error_code;
using protocol::invalid_request_code;

constexpr std::chrono::seconds sweep_period(30);

std::optional<mcp::Revision> header_revision(const net::http::Request& request) {
  std::optional<std::string_view> version = request.header("mcp-protocol-version");
  return version ? mcp::revision_from_string(*version) : std::nullopt;
}

bool has_modern_version(const net::http::Request& request) {
  std::optional<mcp::Revision> revision = header_revision(request);
  return revision && mcp::is_modern(*revision);
}

// A version that nobody knows is probably newer than ours: its client then learns in the way of its era which versions
// there are. Within a session it is an error of the session's.
bool is_modern_by_headers(const net::http::Request& request) {
  if (has_modern_version(request)) return true;
  return has_header(request, "mcp-protocol-version") && !header_revision(request) &&
         !has_header(request, "mcp-session-id");
}

bool has_modern_keys(const mcp::Message& message) {
  // Few requests of a session have such a key, and none that has one lacks the word, unless it is written with escapes.
  std::string_view params = message.params;
  bool may_have = params.find("io.modelcontextprotocol") != std::string_view::npos || params.contains('\\');
  if (!may_have) return false;
  std::expected<mcp::RequestMeta, mcp::Fault> meta = mcp::parse_meta(message);
  return meta && meta->has_modern_keys;
}

void refuse(const rest::McpRequest& request, unsigned status, std::string message, std::string_view id = {}) {
  respond(request, refusal_response(status, invalid_request_code, std::move(message), id));
}

class Endpoint final : public HttpEndpoint, public std::enable_shared_from_this<Endpoint> {
 public:
  Endpoint(net::Runtime& runtime, std::shared_ptr<Core> core, const Clock& clock, HttpOptions options)
      : keeper_(runtime.worker(0)),
        clock_(clock),
        options_(options),
        core_(std::move(core)),
        quota_(std::make_shared<StreamQuota>(options.max_streams_per_identity)),
        sessions_(std::make_shared<HttpSessions>(clock, options.sessions)),
        events_(std::make_shared<EventsSessions>(core_, quota_, sessions_, options.heartbeat)) {}

  void start() {
    keeper_.post([weak = weak_from_this()] {
      if (auto alive = weak.lock()) alive->schedule_sweep();
    });
  }

  void serve(rest::McpRequest request) override {
    if (is_closed_) return refuse_closing(request);
    const std::string& method = request.request->method;
    if (request.surface == calls::Surface::mcp_sse) {
      return method == "GET" ? events_->open(std::move(request)) : events_->post(std::move(request));
    }
    if (method == "POST") return post(std::move(request));
    if (has_modern_version(*request.request)) {
      net::http::Response response =
          refusal_response(405, invalid_request_code, "from 2026-07-28 on this path has only POST");
      response.headers.emplace_back("Allow", "POST, OPTIONS");
      return respond(request, std::move(response));
    }
    return method == "GET" ? get(std::move(request)) : end_session(request);
  }

  void close() override {
    if (is_closed_.exchange(true)) return;
    for (const std::shared_ptr<HttpSession>& session : sessions_->all())
      session->send_listener_away();
    events_->close();
    keeper_.post([self = shared_from_this()] { self->sweep_timer_.cancel(); });
  }

  std::size_t session_count() const override { return sessions_->size() + events_->size(); }

 private:
  void schedule_sweep() {
    if (is_closed_) return;
    sweep_timer_ = keeper_.schedule(sweep_period, [weak = weak_from_this()] {
      auto alive = weak.lock();
      if (!alive) return;
      alive->sessions_->sweep();
      alive->schedule_sweep();
    });
  }

  static void refuse_closing(const rest::McpRequest& request) {
    std::uint8_t random = 0;
    crypto::random_bytes({&random, 1});
    net::http::Response response = refusal_response(503, internal_error_code, "the gateway stops; try again later");
    response.headers.emplace_back("Retry-After", std::to_string(2 + random % 5));
    respond(request, std::move(response));
  }

  void post(rest::McpRequest request) {
    const std::string& text = request.request->body;
    bool is_modern = is_modern_by_headers(*request.request);
    if (!is_modern && mcp::is_batch(text)) return post_batch(std::move(request));
    std::expected<mcp::Message, mcp::Fault> message = mcp::parse_message(text);
    if (is_modern || (message && has_modern_keys(*message))) {
      return modern_post({core_, quota_, options_.heartbeat}, std::move(request), message);
    }
    if (!message) return respond(request, fault_response(message.error()));
    bool is_request = message->kind == mcp::MessageKind::request;
    if (is_request && message->method == "initialize") return initialize(std::move(request), *message);
    std::shared_ptr<HttpSession> session = find_session(request, is_request ? message->id : "");
    if (!session) return;
    if (is_request) {
      LegacyRequests requests{.texts = {text}, .ids = {std::string(message->id)}};
      return legacy_requests(std::move(session), std::move(request), std::move(requests), options_.heartbeat);
    }
    Client client{request.principal, request.surface, request.request_id};
    session->core().accept(client, text);
    respond(request, {.status = 202, .content_type = ""});
  }

  void post_batch(rest::McpRequest request) {
    const std::string& text = request.request->body;
    std::shared_ptr<HttpSession> session = find_session(request, "");
    if (!session) return;
    if (session->core().revision() != mcp::Revision::v2025_03_26) {
      return refuse(request, 400, "batches are no part of this session's revision");
    }
    auto parts = mcp::split_batch(text);
    if (!parts) return respond(request, fault_response(parts.error()));
    LegacyRequests requests{.is_batch = true};
    std::vector<std::string> others;
    for (std::string_view part : *parts) {
      auto message = mcp::parse_message(part);
      if (!message) return respond(request, fault_response(message.error()));
      if (message->kind != mcp::MessageKind::request) {
        others.emplace_back(part);
      } else if (message->method == "initialize") {
        return refuse(request, 400, "initialize is never part of a batch", message->id);
      } else {
        requests.texts.emplace_back(part);
        requests.ids.emplace_back(message->id);
      }
    }
    Client client{request.principal, request.surface, request.request_id};
    for (std::string& each : others)
      session->core().accept(client, std::move(each));
    if (requests.texts.empty()) return respond(request, {.status = 202, .content_type = ""});
    legacy_requests(std::move(session), std::move(request), std::move(requests), options_.heartbeat);
  }

  void initialize(rest::McpRequest request, const mcp::Message& message) {
    if (has_header(*request.request, "mcp-session-id")) {
      return refuse(request, 400, "this session is initialized already; leave Mcp-Session-Id out to begin another",
                    message.id);
    }
    Client client{request.principal, request.surface, request.request_id};
    std::shared_ptr<Session> core_session = core_->open_session(client);
    // Many clients leave without a word, and their sessions wait for nobody.
    if (!core_session && sessions_->make_room(request.principal.identity())) core_session = core_->open_session(client);
    if (!core_session) {
      return respond(request, refusal_response(503, internal_error_code, "too many sessions are open; try again later",
                                               message.id));
    }
    auto session = HttpSession::create(std::move(core_session), clock_, options_.session);
    auto admit = [sessions = sessions_, session] { return sessions->add(session); };
    legacy_initialize(session, std::move(request), std::string(message.id), std::move(admit), options_.heartbeat);
  }

  void get(rest::McpRequest request) {
    std::shared_ptr<HttpSession> session = find_session(request, "");
    if (!session) return;
    if (!accepted(*request.request).events) {
      return refuse(request, 406, "this is an event stream; send Accept: text/event-stream");
    }
    std::shared_ptr<void> place = quota_->take(request.principal.identity());
    if (!place) {
      return refuse(request, 429, fmt::format("{} event streams are open already; close some", quota_->max()));
    }
    std::optional<std::string_view> last_event = request.request->header("last-event-id");
    auto stream = EventStream::create(*request.request->worker, request.responder,
                                      {.headers = request.headers,
                                       .accepts_json = false,
                                       .heartbeat = options_.heartbeat,
                                       .is_still_admitted = std::move(request.is_still_admitted)});
    std::string name = last_event ? session->resume(*last_event, stream) : session->listen(stream);
    if (name.empty()) {
      request.record_refusal("unknown_event", "Last-Event-ID names no event of the session");
      stream->queue_response(refusal_response(400, invalid_request_code,
                                              "Last-Event-ID names no event of this session, or what followed it is no "
                                              "longer kept; open the stream without it"));
      return stream->flush();
    }
    stream->on_gone([session = std::move(session), name = std::move(name), stream = stream.get(),
                     place = std::move(place)] { session->detach(name, stream); });
  }

  void end_session(const rest::McpRequest& request) {
    std::shared_ptr<HttpSession> session = find_session(request, "");
    if (!session) return;
    // Of two that end it at once, one finds it.
    if (sessions_->remove(session->id())) session->close();
    respond(request, {.status = 204, .content_type = ""});
  }

  /// Answers the request itself if it returns null.
  std::shared_ptr<HttpSession> find_session(const rest::McpRequest& request, std::string_view id) {
    const net::http::Request& http = *request.request;
    if (has_header(http, "mcp-protocol-version")) {
      std::optional<mcp::Revision> revision = header_revision(http);
      if (!revision || mcp::is_modern(*revision)) {
        refuse(request, 400, "MCP-Protocol-Version is not one of a session: 2024-11-05 to 2025-11-25", id);
        return nullptr;
      }
    }
    std::optional<std::string_view> name = http.header("mcp-session-id");
    if (!name) {
      refuse(request, 400,
             has_header(http, "mcp-session-id") ? "Mcp-Session-Id is given twice"
                                                : "Mcp-Session-Id is missing; begin a session with initialize",
             id);
      return nullptr;
    }
    std::shared_ptr<HttpSession> session = sessions_->find(*name);
    if (session && session->owner() != request.principal.identity()) {
      request.record_refusal("foreign_session", "a session of somebody else");
      session = nullptr;
    }
    if (!session) {
      refuse(request, 404, "there is no such session, or it has expired; begin another with initialize", id);
      return nullptr;
    }
    session->touch();
    return session;
  }

  net::Worker& keeper_;
  const Clock& clock_;
  const HttpOptions options_;
  const std::shared_ptr<Core> core_;
  const std::shared_ptr<StreamQuota> quota_;
  const std::shared_ptr<HttpSessions> sessions_;
  const std::shared_ptr<EventsSessions> events_;
  net::Timer sweep_timer_;  // on the keeper only
  std::atomic<bool> is_closed_ = false;
};

}  // namespace

std::shared_ptr<HttpEndpoint> HttpEndpoint::create(net::Runtime& runtime, std::shared_ptr<Core> core,
                                                   const Clock& clock, HttpOptions options) {
  auto made = std::make_shared<Endpoint>(runtime, std::move(core), clock, options);
  made->start();
  return made;
}

}  // namespace hive::mcp_surface
