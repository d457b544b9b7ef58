#include "gateway/surfaces/mcp/core.h"

#include "gateway/surfaces/mcp/exchange.h"
#include "gateway/surfaces/mcp/legacy_session.h"
#include "gateway/surfaces/mcp/methods.h"
#include "gateway/surfaces/mcp/server.h"

namespace hive::mcp_surface {

namespace {

class CoreImpl final : public Core {
 public:
  CoreImpl(Dependencies dependencies, std::shared_ptr<const config::GatewayConfig> config)
      : server_(std::make_shared<Server>(std::move(dependencies), std::move(config))) {
    server_->start();
  }
  ~CoreImpl() override { server_->close(); }
  CoreImpl(const CoreImpl&) = delete;
  CoreImpl& operator=(const CoreImpl&) = delete;

  void apply(std::shared_ptr<const config::GatewayConfig> config) override { server_->apply(std::move(config)); }
  void fleet_changed() override { server_->subscriptions->fleet_changed(); }

  std::shared_ptr<Running> request(net::Worker& worker, Client client, std::string text,
                                   std::shared_ptr<Reply> reply) override {
    auto parsed = Exchange::parse(worker, std::move(client), std::move(text), reply);
    if (!parsed) return refuse(*reply, parsed.error());
    ExchangePointer exchange = *std::move(parsed);
    auto revision = mcp::modern_revision(exchange->message(), exchange->meta());
    if (!revision) return refuse(*reply, revision.error());
    const mcp::RequestMeta& meta = exchange->meta();
    exchange->set_context({.revision = *revision,
                           .capabilities = std::string(meta.client_capabilities),
                           .caller_key = {},
                           .log_level = meta.log_level,
                           .session = nullptr,
                           .server_info = Server::server_info()});
    worker.dispatch([server = server_, exchange] { handle(server, exchange); });
    return exchange->is_over() ? nullptr : exchange;
  }

  std::shared_ptr<Session> open_session(const Client& client) override { return LegacySession::open(server_, client); }

  [[nodiscard]] std::optional<std::string> mirroring_schema(const policy::Principal& principal,
                                                            std::string_view tool) const override {
    auto catalog = server_->catalogs->current();
    std::optional<Entry> entry = catalog->of(Kind::tools).find(tool);
    if (!entry) return std::nullopt;
    // Few schemas mirror anything, and these cannot but contain the word, unless it is written with escapes.
    bool may_mirror = entry->raw->contains("mcp-header") || entry->raw->contains('\\');
    if (!may_mirror || !is_visible(*server_->policy(), principal, *entry)) return std::nullopt;
    auto members = json::parse_object(*entry->raw, mcp::message_limits);
    auto schema = members ? json::find(*members, "inputSchema") : std::nullopt;
    if (!schema || !json::is_object(*schema)) return std::nullopt;
    return std::string(*schema);
  }

  void close() override { server_->close(); }

 private:
  static std::shared_ptr<Running> refuse(Reply& reply, const mcp::Fault& fault) {
    reply.finish(mcp::encode_fault(fault), fault.http_status);
    return nullptr;
  }

  const std::shared_ptr<Server> server_;
};

}  // namespace

std::shared_ptr<Core> Core::create(Dependencies dependencies, std::shared_ptr<const config::GatewayConfig> config) {
  return std::make_shared<CoreImpl>(std::move(dependencies), std::move(config));
}

}  // namespace hive::mcp_surface
