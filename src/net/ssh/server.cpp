#include "net/ssh/server.h"

#include <utility>

#include "net/ssh/handshake_thread.h"
#include "net/ssh/sockets.h"

namespace hive::net::ssh {

namespace {

class ServerImpl final : public Server {
 public:
  ServerImpl(std::unique_ptr<HandshakeThread> thread, std::uint16_t port) : thread_(std::move(thread)), port_(port) {}

  std::uint16_t port() const override { return port_; }
  void stop_accepting() override { thread_->stop(); }

 private:
  std::unique_ptr<HandshakeThread> thread_;
  std::uint16_t port_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(Runtime& runtime, ServerOptions options) {
  if (!options.authenticate || !options.accept) {
    return fail(ErrorCode::internal, "SSH server: authenticate and accept must be set");
  }
  const HostAndPort where = TRY(parse_listen_address(options.listen_address));
  const crypto::PrivateKey host_key = TRY_CONTEXT("SSH host key", crypto::PrivateKey::load(options.host_key_path));
  ListenSocket listener = TRY(listen_on(where));
  auto thread = TRY(HandshakeThread::start(runtime, std::move(listener.fd), host_key,
                                           std::make_shared<const ServerOptions>(std::move(options))));
  return std::make_unique<ServerImpl>(std::move(thread), listener.port);
}

}  // namespace hive::net::ssh
