#pragma once

#include <array>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "net/runtime/service_manager.h"

namespace hive::net {

/// The socket of a service manager, which the test reads. Sets the variables that a service finds.
class ListeningManager {
 public:
  explicit ListeningManager(std::string_view watchdog_usec = "") {
    static int number = 0;
    const std::string name = "hive-notify-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + 1, name.size());
    socket_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ::setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
    ::unsetenv("WATCHDOG_PID");
    ::unsetenv("WATCHDOG_USEC");
    if (!watchdog_usec.empty()) ::setenv("WATCHDOG_USEC", std::string(watchdog_usec).c_str(), 1);
  }

  /// The next message; fails the test when none comes.
  std::string take() {
    pollfd wait{socket_.get(), POLLIN, 0};
    if (::poll(&wait, 1, 20'000) != 1) {
      ADD_FAILURE() << "the manager is told nothing";
      return "";
    }
    std::array<char, 2048> buffer{};
    const ssize_t size = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    return std::string(buffer.data(), size < 0 ? 0 : static_cast<size_t>(size));
  }

  /// Whether nothing is there now; takes what is.
  bool drain() {
    std::array<char, 2048> buffer{};
    bool empty = true;
    while (::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT) > 0)
      empty = false;
    return empty;
  }

 private:
  UniqueFd socket_;
};

}  // namespace hive::net
