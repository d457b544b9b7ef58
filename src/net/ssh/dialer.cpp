#include "net/ssh/dialer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <netdb.h>

#include "base/strings.h"

namespace hive::net::ssh {

namespace {

Result<std::vector<Endpoint>> look_up(const std::string& host, std::uint16_t port, std::string_view whose) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) {
    return fail(ErrorCode::not_found, "cannot look up the {}host {}: {}", whose, quote(host),
                error == EAI_SYSTEM ? system_error(errno, "getaddrinfo").message : std::string(::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  std::vector<Endpoint> endpoints;
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    if (info->ai_addrlen > sizeof(sockaddr_storage)) continue;
    Endpoint& endpoint = endpoints.emplace_back();
    endpoint.size = info->ai_addrlen;
    std::copy_n(reinterpret_cast<const char*>(info->ai_addr), info->ai_addrlen,
                reinterpret_cast<char*>(&endpoint.address));
  }
  if (endpoints.empty()) return fail(ErrorCode::not_found, "the {}host {} has no address", whose, quote(host));
  return endpoints;
}

}  // namespace

Result<Route> find_route(const std::string& host, std::uint16_t port,
                         const std::optional<config::ProxyAddress>& proxy) {
  Route route{.endpoints = {}, .proxy = proxy, .host = host, .port = port};
  if (!proxy) {
    route.endpoints = TRY(look_up(host, port, ""));
    return route;
  }
  route.endpoints = TRY(look_up(proxy->host, proxy->port, "proxy's "));
  if (proxy->scheme == config::ProxyScheme::socks5) {
    route.host = describe_address(TRY(look_up(host, port, "")).front().address).address;
  }
  return route;
}

std::vector<std::string> addresses_of(const Route& route) {
  std::vector<std::string> addresses;
  for (const Endpoint& endpoint : route.endpoints)
    addresses.push_back(describe_address(endpoint.address).address);
  return addresses;
}

Dialer::Dialer(Worker& worker, Route route, std::chrono::milliseconds timeout, AtProxy at_proxy, Done done)
    : worker_(worker),
      route_(std::move(route)),
      timeout_(timeout),
      at_proxy_(std::move(at_proxy)),
      done_(std::move(done)) {}

void Dialer::start() {
  deadline_ = system_clock().steady_now() + timeout_;
  next_endpoint();
}

void Dialer::abandon() {
  done_ = nullptr;
  timer_ = Timer();
  if (readiness_) readiness_->release();
  socket_.reset();
}

/// Tries the next address; each gets its share of the time that is left, so that one that drops our packets does not
/// take it all.
void Dialer::next_endpoint() {
  while (endpoint_ < route_.endpoints.size()) {
    const Endpoint& endpoint = route_.endpoints[endpoint_++];
    address_ = describe_address(endpoint.address);
    const size_t left = route_.endpoints.size() - endpoint_ + 1;
    const auto share = std::chrono::duration_cast<std::chrono::milliseconds>((deadline_ - system_clock().steady_now()) /
                                                                             static_cast<int>(left));
    if (share <= std::chrono::milliseconds::zero()) break;
    socket_.reset(::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_) {
      errors_ = system_error(errno, "socket").message;
      continue;
    }
    configure_connection(socket_.get());
    if (route_.max_segment_bytes > 0) limit_segments(socket_.get(), route_.max_segment_bytes);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.size) != 0 &&
        errno != EINPROGRESS) {
      note_error(errno);
      continue;
    }
    auto readiness = Readiness::watch(worker_, socket_.get());
    if (!readiness) return finish(std::unexpected(readiness.error()));
    readiness_ = std::move(*readiness);
    readiness_->wait_writable(shared_from_this());
    timer_ = worker_.schedule(share, [self = weak_from_this()] {
      const auto dialer = self.lock();
      if (!dialer || !dialer->done_ || dialer->dialogue_) return;
      dialer->note_error(ETIMEDOUT);
      dialer->readiness_->release();
      dialer->next_endpoint();
    });
    return;
  }
  const std::string where =
      route_.proxy ? fmt::format("proxy {} cannot be reached: ", route_.proxy->to_string()) : std::string();
  finish(fail(timed_out_ ? ErrorCode::timed_out : ErrorCode::unavailable, "{}{}", where, errors_));
}

void Dialer::note_error(int error) {
  timed_out_ = error == ETIMEDOUT;
  const std::string message = system_error(error, address_.address).message;
  errors_ = errors_.empty() ? message : fmt::format("{}; {}", errors_, message);
}

void Dialer::on_ready() {
  if (!done_) return;
  if (!dialogue_) return connected();
  if (Result<void> talked = talk(); !talked) return finish(std::unexpected(std::move(talked).error()));
  if (dialogue_->finished()) return succeed();
  readiness_->wait_readable(shared_from_this());
  if (!output_.empty()) readiness_->wait_writable(shared_from_this());
}

void Dialer::connected() {
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) {
    note_error(error);
    readiness_->release();
    return next_endpoint();
  }
  if (!route_.proxy) return succeed();
  ask_proxy();
}

void Dialer::ask_proxy() {
  auto dialogue = proxy::Dialogue::begin(*route_.proxy, route_.host, route_.port);
  if (!dialogue) return finish(std::unexpected(std::move(dialogue).error()));
  if (at_proxy_) at_proxy_(address_);
  dialogue_ = std::move(*dialogue);
  timer_ = worker_.schedule(timeout_, [self = weak_from_this()] {
    const auto dialer = self.lock();
    if (!dialer || !dialer->done_) return;
    dialer->finish(fail(ErrorCode::timed_out, "proxy {} does not open the tunnel to {} port {} within {} ms",
                        dialer->route_.proxy->to_string(), dialer->route_.host, dialer->route_.port,
                        dialer->timeout_.count()));
  });
  on_ready();
}

Result<void> Dialer::talk() {
  for (;;) {
    TRY(send_output());
    if (dialogue_->finished() || !output_.empty()) return {};
    if (!TRY(read_answer())) return {};
  }
}

Result<void> Dialer::send_output() {
  output_ += dialogue_->take_output();
  while (!output_.empty()) {
    const ssize_t sent = ::send(socket_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return {};
    // An answer may explain why the proxy has closed its side.
    if (sent < 0) {
      output_.clear();
      return {};
    }
    output_.erase(0, static_cast<size_t>(sent));
  }
  return {};
}

/// False when nothing more is there now. Looks before it takes: what follows the answer is for the SSH session.
Result<bool> Dialer::read_answer() {
  std::array<char, 4096> buffer{};
  const ssize_t seen = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_PEEK);
  if (seen < 0 && errno == EINTR) return true;
  if (seen < 0 && errno == EAGAIN) return false;
  if (seen <= 0) {
    const int error = errno;
    Error ended = dialogue_->ended();
    if (seen < 0) ended.message += fmt::format(" ({})", system_error(error, "read").message);
    return std::unexpected(std::move(ended));
  }
  const size_t used = TRY(dialogue_->feed(std::string_view(buffer.data(), static_cast<size_t>(seen))));
  // The bytes are there, so this takes them all.
  if (::recv(socket_.get(), buffer.data(), used, 0) != static_cast<ssize_t>(used)) {
    return std::unexpected(system_error(errno, "read from the proxy"));
  }
  return true;
}

void Dialer::succeed() {
  finish(Dialed{std::move(socket_), address_});
}

void Dialer::finish(Result<Dialed> result) {
  if (!done_) return;
  Done done = std::exchange(done_, nullptr);
  // Whoever closes the descriptor later must find it unwatched.
  abandon();
  done(std::move(result));
}

}  // namespace hive::net::ssh
