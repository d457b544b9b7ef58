#include "net/http/server.h"

#include <algorithm>

#include "base/log.h"
#include "net/http/acceptor.h"
#include "net/http/listen_address.h"
#include "net/http/server_state.h"
#include "net/http/shard.h"

namespace hive::net::http {

namespace {

/// Runs a task on a worker, or at the latest when the worker's queue is destroyed: sockets must be closed while their
/// event loop exists, also if it was stopped before.
void post_certainly(Worker& worker, std::function<void()> task) {
  struct Certainly {
    std::function<void()> task;
    explicit Certainly(std::function<void()> given) : task(std::move(given)) {}
    Certainly(const Certainly&) = delete;
    Certainly& operator=(const Certainly&) = delete;
    ~Certainly() {
      if (task) task();
    }
  };
  worker.post([pending = std::make_unique<Certainly>(std::move(task))] { std::exchange(pending->task, nullptr)(); });
}

/// Deadlines are met to a quarter of the shortest, within reason.
std::chrono::milliseconds sweep_period(const ServerOptions& options) {
  auto shortest = std::min({options.header_timeout, options.body_timeout, options.idle_timeout, options.write_timeout});
  return std::clamp(shortest / 4, std::chrono::milliseconds(20), std::chrono::milliseconds(500));
}

Result<std::shared_ptr<SSL_CTX>> load_tls(const ServerOptions& options) {
  return std::shared_ptr<SSL_CTX>(
      TRY(make_server_tls_context(options.tls_certificate_path, options.tls_key_path, options.client_ca_path))
          .release(),
      SslContextDeleter());
}

class WorkerServer final : public Server {
 public:
  WorkerServer(std::shared_ptr<ServerState> state, std::shared_ptr<Acceptor> acceptor)
      : state_(std::move(state)), acceptor_(std::move(acceptor)), port_(acceptor_->port()) {
    acceptor_->worker().post([acceptor = acceptor_] { acceptor->start(); });
  }

  ~WorkerServer() override {
    stop_accepting();
    for (const std::unique_ptr<Shard>& shard : state_->shards) {
      post_certainly(shard->worker(), [state = state_, &shard = *shard] { shard.close_all(); });
    }
  }

  std::uint16_t port() const override { return port_; }

  void drain() override {
    state_->draining = true;
    stop_accepting();
    for (const std::unique_ptr<Shard>& shard : state_->shards) {
      shard->worker().post([state = state_, &shard = *shard] { shard.drain(); });
    }
  }

  std::size_t open_connections() const override { return state_->limits->total(); }

  Result<void> reload_certificate() override {
    if (state_->options.tls_certificate_path.empty()) return {};
    state_->set_tls_context(TRY(load_tls(state_->options)));
    if (state_->options.client_ca_path.empty()) return {};
    for (const std::unique_ptr<Shard>& shard : state_->shards) {
      shard->worker().post([state = state_, &shard = *shard] { shard.close_outdated(); });
    }
    return {};
  }

 private:
  void stop_accepting() {
    post_certainly(acceptor_->worker(), [acceptor = acceptor_] { acceptor->stop(); });
  }

  std::shared_ptr<ServerState> state_;
  std::shared_ptr<Acceptor> acceptor_;
  std::uint16_t port_;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(Runtime& runtime, ServerOptions options, Handler handler) {
  if (options.tls_certificate_path.empty() != options.tls_key_path.empty()) {
    return fail(ErrorCode::invalid_argument, "TLS needs a certificate and a key: only {} is set",
                options.tls_key_path.empty() ? options.tls_certificate_path : options.tls_key_path);
  }
  if (!options.client_ca_path.empty() && options.tls_certificate_path.empty()) {
    return fail(ErrorCode::invalid_argument, "client certificates ({}) need TLS on {}", options.client_ca_path,
                options.listen_address);
  }
  auto state = std::make_shared<ServerState>(std::move(options), std::move(handler));
  if (!state->options.tls_certificate_path.empty()) state->set_tls_context(TRY(load_tls(state->options)));
  for (std::size_t i = 0; i < runtime.size(); ++i) {
    state->shards.push_back(std::make_unique<Shard>(runtime.worker(i), sweep_period(state->options)));
  }
  UniqueFd listener = TRY(open_listener(state->options.listen_address, state->options.loopback_only));
  std::shared_ptr<Acceptor> acceptor = TRY(Acceptor::create(state, runtime.next_worker(), std::move(listener)));
  return std::make_unique<WorkerServer>(std::move(state), std::move(acceptor));
}

}  // namespace hive::net::http
