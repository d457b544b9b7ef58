#include "priv/server.h"

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "priv/peer.h"

namespace hive::priv {

namespace {

constexpr int backlog = 16;
constexpr std::chrono::milliseconds out_of_descriptors_pause{100};

int milliseconds_until(SteadyTime deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - system_clock().steady_now()).count();
  return left < 0 ? 0 : static_cast<int>(std::min<long long>(left, 1'000'000));
}

// Waits until the socket can be read (POLLIN) or written (POLLOUT); false at the deadline.
bool wait_for(int socket, short events, SteadyTime deadline) {
  while (true) {
    pollfd wanted{.fd = socket, .events = events, .revents = 0};
    int ready = ::poll(&wanted, 1, milliseconds_until(deadline));
    if (ready > 0) return true;
    if (ready == 0 && system_clock().steady_now() >= deadline) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// One line, without its end. Nothing may follow it.
Outcome<std::string> read_line(int socket, SteadyTime deadline) {
  std::string text;
  std::array<char, 16384> buffer;
  while (true) {
    if (!wait_for(socket, POLLIN, deadline)) return refuse(Code::bad_request, "no complete request came in time");
    ssize_t count = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return std::unexpected(Refusal(system_error(errno, "read a request")));
    if (count == 0) return refuse(Code::bad_request, "the request has no line end");
    text.append(buffer.data(), static_cast<size_t>(count));
    size_t end = text.find('\n');
    if (end == std::string::npos && text.size() <= max_request_bytes) continue;
    if (end == std::string::npos || end > max_request_bytes) {
      return refuse(Code::bad_request, "the request is longer than {} bytes", max_request_bytes);
    }
    if (end + 1 != text.size())
      return refuse(Code::bad_request, "something follows the request; send one a connection");
    text.resize(end);
    return text;
  }
}

void send_answer(int socket, std::string answer, SteadyTime deadline) {
  answer += '\n';
  for (size_t sent = 0; sent < answer.size();) {
    ssize_t count = ::send(socket, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      if (!wait_for(socket, POLLOUT, deadline)) return;
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

struct Server::State {
  State(UniqueFd listening, Desk& answering, const Settings& given_settings, ServerLimits given_limits,
        std::atomic<bool>& stop_flag)
      : listener(std::move(listening)),
        wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        desk(answering),
        settings(given_settings),
        limits(given_limits),
        stopping(stop_flag) {}

  void serve(const UniqueFd& connection) {
    auto peer = peer_of(connection.get());
    SteadyTime deadline = system_clock().steady_now() + limits.request_time;
    std::string answer;
    if (!peer) {
      answer = desk.refuse_unread(Refusal(peer.error()), {});
    } else if (auto allowed = check_peer(connection.get(), *peer, settings); !allowed) {
      answer =
          desk.refuse_unread(Refusal(Code::denied, "this peer may not use hive-priv", allowed.error().message), *peer);
    } else if (auto line = read_line(connection.get(), deadline); !line) {
      answer = desk.refuse_unread(line.error(), *peer);
    } else {
      answer = desk.answer(*line, *peer);
    }
    send_answer(connection.get(), std::move(answer), system_clock().steady_now() + limits.answer_time);
  }

  void end_connection() {
    std::lock_guard lock(mutex);
    --connections;
    idle.notify_all();
    // The main loop counts idle time from here.
    wake_up();
  }

  void wake_up() const {
    std::uint64_t one = 1;
    // Full means that a wake-up is pending already.
    [[maybe_unused]] ssize_t written = ::write(wake.get(), &one, sizeof one);
  }

  // False where every place is taken.
  bool take_place() {
    std::lock_guard lock(mutex);
    if (connections == limits.max_connections) return false;
    ++connections;
    return true;
  }

  [[nodiscard]] bool is_idle() {
    std::lock_guard lock(mutex);
    return connections == 0;
  }

  void accept_one() {
    UniqueFd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) {
      // Without a descriptor to give, the same connection would be offered again at once.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        wait_for(wake.get(), POLLIN, system_clock().steady_now() + out_of_descriptors_pause);
      }
      return;
    }
    if (!take_place()) {
      auto peer = peer_of(connection.get());
      send_answer(connection.get(),
                  desk.refuse_unread(Refusal(Code::busy, "too many connections; try again"), peer ? *peer : PeerIds{}),
                  system_clock().steady_now());
      return;
    }
    try {
      // Detached, but counted: run() returns after the last one.
      std::thread([this, held = std::move(connection)]() mutable {
        serve(held);
        held.reset();
        end_connection();
      }).detach();
    } catch (const std::system_error&) {
      // No thread was to be had; the connection is closed without an answer.
      end_connection();
    }
  }

  UniqueFd listener;
  UniqueFd wake;
  Desk& desk;
  const Settings& settings;
  ServerLimits limits;
  std::atomic<bool>& stopping;
  std::mutex mutex;
  std::condition_variable idle;
  size_t connections = 0;
};

Server::Server(UniqueFd listener, Desk& desk, const Settings& settings, ServerLimits limits,
               std::atomic<bool>& stopping)
    : state_(std::make_unique<State>(std::move(listener), desk, settings, limits, stopping)) {}

Server::~Server() = default;

Result<void> Server::run() {
  State& state = *state_;
  auto result = [&]() -> Result<void> {
    SteadyTime idle_since = system_clock().steady_now();
    while (!state.stopping.load()) {
      bool idle = state.is_idle();
      if (!idle) idle_since = system_clock().steady_now();
      int patience = -1;
      if (idle && state.limits.idle_exit.count() > 0) {
        patience = milliseconds_until(idle_since + state.limits.idle_exit);
      }
      std::array<pollfd, 2> wanted = {pollfd{.fd = state.listener.get(), .events = POLLIN, .revents = 0},
                                      pollfd{.fd = state.wake.get(), .events = POLLIN, .revents = 0}};
      int ready = ::poll(wanted.data(), wanted.size(), patience);
      if (ready < 0 && errno != EINTR) return std::unexpected(system_error(errno, "wait for requests"));
      // Nobody has come and nobody waits; who comes from now on stays in the socket's queue, and systemd starts the
      // program again for it.
      if (ready == 0 && patience == 0) return {};
      if (ready <= 0) continue;
      if ((wanted[1].revents & POLLIN) != 0) {
        std::uint64_t count = 0;
        [[maybe_unused]] ssize_t got = ::read(state.wake.get(), &count, sizeof count);
        if (state.is_idle()) idle_since = system_clock().steady_now();
      }
      if ((wanted[0].revents & POLLIN) != 0) state.accept_one();
    }
    return {};
  }();
  std::unique_lock lock(state.mutex);
  state.idle.wait(lock, [&] { return state.connections == 0; });
  return result;
}

void Server::stop() {
  state_->stopping.store(true);
  state_->wake_up();
}

Result<UniqueFd> listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::invalid_argument, "{}: longer than a socket's path may be", path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return std::unexpected(system_error(errno, "make a socket"));
  ::unlink(path.c_str());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), backlog) != 0) {
    return std::unexpected(system_error(errno, "listen at " + path));
  }
  return socket;
}

Result<UniqueFd> listener_from_systemd() {
  int count = sd_listen_fds(1);
  if (count < 0) return std::unexpected(system_error(-count, "take the socket from systemd"));
  if (count == 0) return UniqueFd();
  if (count > 1) return fail(ErrorCode::invalid_argument, "systemd passes {} sockets; hive-priv serves one", count);
  UniqueFd socket(SD_LISTEN_FDS_START);
  if (sd_is_socket_unix(socket.get(), SOCK_STREAM, 1, nullptr, 0) <= 0) {
    return fail(ErrorCode::invalid_argument, "systemd passes something else than a listening stream socket");
  }
  int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return std::unexpected(system_error(errno, "prepare the socket of systemd"));
  }
  return socket;
}

}  // namespace hive::priv
