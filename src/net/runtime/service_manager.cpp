#include "net/runtime/service_manager.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strings.h"

namespace hive::net {

namespace {

constexpr std::size_t max_status_bytes = 512;

// A few datagrams fit into the manager's queue; it reads them when it comes to it.
constexpr std::chrono::milliseconds patience = std::chrono::seconds(5);

std::optional<std::string> take_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  std::string copy = value;
  ::unsetenv(name);
  return copy;
}

/// "/path" or "@name" in the abstract namespace.
UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() < 2 || path.size() >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@')) return {};
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (path[0] == '@' ? 0 : 1));
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    log::warning("the service manager cannot be told anything",
                 {{"reason", system_error(errno, "NOTIFY_SOCKET").message}});
    return {};
  }
  return socket;
}

std::string status_line(std::string_view text) {
  std::string line = escape_for_terminal(text.substr(0, max_status_bytes), true);
  std::ranges::replace(line, '\n', ' ');
  return "STATUS=" + line;
}

}  // namespace

ServiceManager ServiceManager::of_this_process() {
  ServiceManager manager;
  const std::optional<std::string> path = take_variable("NOTIFY_SOCKET");
  const std::optional<std::string> limit = take_variable("WATCHDOG_USEC");
  const std::optional<std::string> pid = take_variable("WATCHDOG_PID");
  if (!path) return manager;
  manager.socket_ = connect_to(*path);
  const bool is_meant = !pid || parse_int64(*pid) == ::getpid();
  if (limit && is_meant) {
    manager.watchdog_limit_ = std::chrono::microseconds(std::max<std::int64_t>(parse_int64(*limit).value_or(0), 0));
  }
  return manager;
}

void ServiceManager::ready(std::string_view status) const {
  send("READY=1\n" + status_line(status), patience);
}

void ServiceManager::reloading() const {
  // The time is what tells a newer systemd this reload from the one before.
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1'000'000 + now.tv_nsec / 1000), patience);
}

void ServiceManager::stopping() const {
  send("STOPPING=1\n" + status_line("stopping"), patience);
}

void ServiceManager::feed_watchdog() const {
  send("WATCHDOG=1", patience);
}

bool ServiceManager::status(std::string_view text) const {
  return send(status_line(text), std::chrono::milliseconds(0));
}

bool ServiceManager::send(std::string message, std::chrono::milliseconds wait) const {
  if (!socket_) return true;
  message += '\n';
  const auto deadline = std::chrono::steady_clock::now() + wait;
  for (;;) {
    if (::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL) >= 0) return true;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return false;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd writable{socket_.get(), POLLOUT, 0};
    ::poll(&writable, 1, static_cast<int>(left));
  }
}

}  // namespace hive::net
