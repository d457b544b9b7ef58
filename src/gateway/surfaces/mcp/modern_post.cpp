#include "gateway/surfaces/mcp/modern_post.h"

#include <atomic>
#include <utility>

#include "gateway/surfaces/mcp/event_stream.h"
#include "gateway/surfaces/mcp/http_answers.h"
#include "protocol/agent_protocol.h"

namespace hive::mcp_surface {

namespace {

using MaybeFault = std::expected<void, mcp::Fault>;

class ModernReply final : public Reply {
 public:
  ModernReply(std::shared_ptr<EventStream> stream, std::string id, std::shared_ptr<void> place)
      : stream_(std::move(stream)), id_(std::move(id)), place_(std::move(place)) {}

  // Whoever waits learns that nothing comes. A client that has gone does not hear it.
  ~ModernReply() override {
    if (is_finished_) return;
    stream_->queue_answer(std::make_shared<const std::string>(mcp::encode_error(
                              id_, protocol::internal_error_code, "the request was ended without an answer")),
                          500);
    stream_->flush();
  }

  void send(std::string message) override {
    stream_->queue_message(std::make_shared<const std::string>(std::move(message)));
    stream_->flush();
  }

  void finish(std::string message, unsigned http_status) override {
    if (is_finished_.exchange(true)) return;
    stream_->queue_answer(std::make_shared<const std::string>(std::move(message)), http_status);
    stream_->flush();
  }

 private:
  const std::shared_ptr<EventStream> stream_;
  const std::string id_;
  const std::shared_ptr<void> place_;  // among the streams of its identity; may be null
  std::atomic<bool> is_finished_ = false;
};

mcp::Fault mismatch(const mcp::Message& message, std::string text) {
  return {.code = mcp::header_mismatch_code, .message = std::move(text), .id = std::string(message.id)};
}

std::string supported_versions() {
  std::string list;
  for (mcp::Revision revision : mcp::all_revisions()) {
    if (mcp::is_modern(revision)) list += (list.empty() ? "" : ", ") + std::string(mcp::to_string(revision));
  }
  return list;
}

// The order in which a client learns what is wrong: no version in the headers, no version in the body, different ones,
// one that is not served, and only then the headers that this version asks for.
MaybeFault check_version(const net::http::Request& request, const mcp::Message& message, const mcp::RequestMeta& meta) {
  std::optional<std::string_view> version = request.header("mcp-protocol-version");
  if (!version) {
    return std::unexpected(mismatch(
        message, has_header(request, "mcp-protocol-version")
                     ? "MCP-Protocol-Version is given twice"
                     : fmt::format("MCP-Protocol-Version is missing; this server supports {}", supported_versions())));
  }
  std::expected<mcp::Revision, mcp::Fault> revision = mcp::modern_revision(message, meta);
  if (revision) return {};
  bool is_incomplete = revision.error().code == protocol::invalid_params_code;
  if (!is_incomplete && *version != *meta.protocol_version) {
    return std::unexpected(mismatch(message, "MCP-Protocol-Version does not match the body"));
  }
  return std::unexpected(std::move(revision).error());
}

// Headers that mirror parameters of the tool. A tool that the caller does not see has none, and is refused later.
MaybeFault check_parameters(const Core& core, const rest::McpRequest& request, const mcp::Message& message) {
  if (message.method != "tools/call") return {};
  auto params = json::parse_object(message.params, mcp::message_limits);
  if (!params) return {};
  std::optional<std::string_view> raw_name = json::find(*params, "name");
  std::optional<std::string> name = raw_name ? json::decode_string(*raw_name) : std::nullopt;
  if (!name) return {};
  std::optional<std::string> schema = core.mirroring_schema(request.principal, *name);
  if (!schema) return {};
  return mcp::check_parameter_headers(header_lookup(*request.request), message, *schema);
}

MaybeFault check(const Core& core, const rest::McpRequest& request, const mcp::Message& message) {
  std::expected<mcp::RequestMeta, mcp::Fault> meta = mcp::parse_meta(message);
  if (!meta) return std::unexpected(std::move(meta).error());
  if (auto version = check_version(*request.request, message, *meta); !version) return version;
  if (auto headers = mcp::check_headers(header_lookup(*request.request), message, *meta); !headers) return headers;
  return check_parameters(core, request, message);
}

}  // namespace

void modern_post(const ModernContext& context, rest::McpRequest request,
                 const std::expected<mcp::Message, mcp::Fault>& parsed) {
  if (!parsed) return respond(request, fault_response(parsed.error()));
  const mcp::Message& message = *parsed;
  if (message.kind == mcp::MessageKind::notification) {
    return respond(request, {.status = 202, .content_type = ""});
  }
  if (message.kind != mcp::MessageKind::request) {
    return respond(request,
                   refusal_response(400, protocol::invalid_request_code, "clients send no responses in this revision"));
  }
  if (auto checked = check(*context.core, request, message); !checked) {
    return respond(request, fault_response(checked.error()));
  }
  Accepted accept = accepted(*request.request);
  bool listens = message.method == "subscriptions/listen";
  if (!accept.events && (listens || !accept.json)) {
    return respond(request, refusal_response(406, protocol::invalid_request_code,
                                             listens ? "subscriptions/listen needs Accept: text/event-stream"
                                                     : "Accept admits neither application/json nor text/event-stream",
                                             message.id));
  }
  std::shared_ptr<void> place;
  if (listens) {
    place = context.quota->take(request.principal.identity());
    if (!place) {
      return respond(
          request, refusal_response(429, protocol::internal_error_code,
                                    fmt::format("{} event streams are open already; close some", context.quota->max()),
                                    message.id));
    }
  }

  net::Worker& worker = *request.request->worker;
  EventStream::Options options{.headers = std::move(request.headers),
                               .accepts_json = accept.json,
                               .accepts_events = accept.events,
                               .heartbeat = context.heartbeat};
  if (listens) options.is_still_admitted = std::move(request.is_still_admitted);
  auto stream = EventStream::create(worker, std::move(request.responder), std::move(options));
  auto reply = std::make_shared<ModernReply>(stream, std::string(message.id), std::move(place));
  Client client{std::move(request.principal), request.surface, std::move(request.request_id)};
  std::shared_ptr<Running> running =
      context.core->request(worker, std::move(client), std::move(request.request->body), std::move(reply));
  if (running) {
    stream->on_gone([running = std::move(running)] { running->cancel("the client has gone"); });
  }
}

}  // namespace hive::mcp_surface
