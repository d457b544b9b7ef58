#include "net/http/acceptor.h"

#include <algorithm>
#include <cerrno>

#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/log.h"
#include "net/http/connection.h"
#include "net/http/shard.h"

namespace hive::net::http {

namespace {

using boost::asio::ip::tcp;

constexpr int max_accepts_a_turn = 64;
constexpr std::chrono::milliseconds accept_pause(100);
/// What a client gets that there is no place for.
const std::string& overloaded_answer() {
  static const std::string text = [] {
    Response response = problem_response({503, "overloaded", "too many connections are open; try again later"});
    response.headers.emplace_back("Retry-After", "5");
    std::string made;
    append_head(made, response, {}, {.keep_alive = false, .content_length = response.body.size()});
    return made + response.body;
  }();
  return text;
}

std::string address_text(const tcp::endpoint& endpoint) {
  boost::asio::ip::address address = endpoint.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6()).to_string();
  }
  return address.to_string();
}

void set_option(int fd, int level, int name, int value) {
  // Best effort: without these a connection is slower or noticed late, not wrong.
  (void)::setsockopt(fd, level, name, &value, sizeof value);
}

void tune(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 15);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

/// Makes the connection on its worker.
void adopt(const std::shared_ptr<ServerState>& server, Shard& shard, UniqueFd fd, ConnectionLimits::Slot slot,
           const tcp::endpoint& peer) {
  auto give_up = [&] { shard.load().fetch_sub(1, std::memory_order_relaxed); };
  if (server->draining) return give_up();
  SslPointer ssl;
  if (std::shared_ptr<SSL_CTX> context = server->tls_context()) {
    Result<SslPointer> made = make_server_tls_session(context.get(), fd.get());
    if (!made) {
      log::error("connection refused", {{"reason", made.error().message}});
      return give_up();
    }
    ssl = *std::move(made);
  }
  Connection::Socket socket(shard.worker().context());
  boost::system::error_code error;
  socket.assign(peer.protocol(), fd.get(), error);
  if (error) {
    log::error("connection refused", {{"reason", error.message()}});
    return give_up();
  }
  (void)fd.release();
  tcp::endpoint local = socket.local_endpoint(error);
  shard.add(std::make_shared<Connection>(server, shard, std::move(socket), std::move(ssl), std::move(slot),
                                         Connection::Addresses{address_text(peer), address_text(local)}));
}

}  // namespace

Acceptor::Acceptor(std::shared_ptr<ServerState> server, Worker& worker)
    : server_(std::move(server)), worker_(worker), socket_(worker.context()) {}

Result<std::shared_ptr<Acceptor>> Acceptor::create(std::shared_ptr<ServerState> server, Worker& worker,
                                                   UniqueFd listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return std::unexpected(system_error(errno, "getsockname"));
  }
  std::shared_ptr<Acceptor> acceptor(new Acceptor(std::move(server), worker));
  boost::system::error_code error;
  acceptor->socket_.assign(address.ss_family == AF_INET ? tcp::v4() : tcp::v6(), listener.get(), error);
  if (error) return fail(ErrorCode::io, "cannot watch the listening socket: {}", error.message());
  (void)listener.release();
  acceptor->port_ = acceptor->socket_.local_endpoint(error).port();
  return acceptor;
}

void Acceptor::stop() {
  pause_.cancel();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void Acceptor::wait() {
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->socket_.is_open()) self->accept_ready();
  });
}

void Acceptor::accept_ready() {
  for (int i = 0; i < max_accepts_a_turn; ++i) {
    tcp::endpoint peer;
    auto size = static_cast<socklen_t>(peer.capacity());
    UniqueFd fd(::accept4(socket_.native_handle(), peer.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      peer.resize(size);
      admit(std::move(fd), peer);
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    // These concern one connection that is already gone (accept(2)).
    if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO || errno == EPERM) continue;
    return pause(errno);
  }
  wait();
}

void Acceptor::pause(int error_number) {
  // Out of descriptors or memory: the connection stays in the queue, and asking again at once would spin.
  if (may_warn()) log::error("cannot accept connections", {{"reason", system_error(error_number, "accept").message}});
  pause_ = worker_.schedule(accept_pause, [this] { accept_ready(); });
}

void Acceptor::admit(UniqueFd fd, const tcp::endpoint& peer) {
  std::string source = source_of(address_text(peer));
  std::optional<ConnectionLimits::Slot> slot = server_->limits->acquire(source);
  if (!slot) {
    if (may_warn()) log::warning("connection refused: too many are open", {{"source", source}});
    if (!server_->tls_context()) {
      (void)::send(fd.get(), overloaded_answer().data(), overloaded_answer().size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    return;
  }
  tune(fd.get());
  Shard& shard = **std::ranges::min_element(server_->shards, {}, [](const std::unique_ptr<Shard>& each) {
    return each->load().load(std::memory_order_relaxed);
  });
  shard.load().fetch_add(1, std::memory_order_relaxed);
  shard.worker().dispatch([server = server_, &shard, fd = std::move(fd), slot = std::move(*slot), peer]() mutable {
    adopt(server, shard, std::move(fd), std::move(slot), peer);
  });
}

bool Acceptor::may_warn() {
  auto now = std::chrono::steady_clock::now();
  if (now < quiet_until_) return false;
  quiet_until_ = now + std::chrono::minutes(1);
  return true;
}

}  // namespace hive::net::http
