#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "crypto/ssh_key.h"
#include "net/runtime/runtime.h"
#include "net/ssh/handshake.h"
#include "net/ssh/server.h"
#include "net/ssh/source_limiter.h"

struct ssh_bind_struct;

namespace hive::net::ssh {

/// The thread that accepts connections and brings them to an open channel. Apart from the workers because a handshake
/// costs as much as thirty calls: a fleet that comes back must not stop those that are here.
///
/// At most max_unauthenticated connections are in their handshake; the rest waits in the kernel's queue.
class HandshakeThread {
 public:
  static Result<std::unique_ptr<HandshakeThread>> start(Runtime& runtime, UniqueFd listener,
                                                        const crypto::PrivateKey& host_key,
                                                        std::shared_ptr<const ServerOptions> options);
  /// Stops and joins.
  ~HandshakeThread();
  HandshakeThread(const HandshakeThread&) = delete;
  HandshakeThread& operator=(const HandshakeThread&) = delete;

  /// Ends the thread's work soon. Thread-safe.
  void stop();

 private:
  struct BindDeleter {
    void operator()(ssh_bind_struct* bind) const;
  };
  struct Entry {
    std::uint64_t id = 0;
    std::unique_ptr<Handshake> handshake;
    std::string source;
    SteadyTime deadline;
    bool waits_to_write = false;
    std::list<Entry>::iterator self;
  };
  using Entries = std::list<Entry>;

  HandshakeThread(Runtime& runtime, UniqueFd listener, std::shared_ptr<const ServerOptions> options);
  Result<void> prepare(const crypto::PrivateKey& host_key);

  void run();
  [[nodiscard]] int wait_milliseconds() const;
  void accept_some();
  void begin(UniqueFd connection, Peer peer, std::string source);
  void go_on(Entry& entry);
  void hand_over(Entry& entry);
  void expire();
  void remove(Entry& entry);
  void update_listening();
  void tell_refused(const Peer& peer, const std::string& reason);

  Runtime& runtime_;
  std::shared_ptr<const ServerOptions> options_;
  UniqueFd listener_;
  UniqueFd epoll_;
  UniqueFd wake_;
  std::unique_ptr<ssh_bind_struct, BindDeleter> bind_;
  std::atomic<bool> stopping_ = false;
  Entries entries_;  // in the order of their deadlines
  // What epoll knows is a number, not a pointer: its registration outlives the descriptor for as long as a child of a
  // fork in progress holds a copy, and then tells of connections that are gone.
  std::unordered_map<std::uint64_t, Entry*> by_id_;
  std::uint64_t next_id_;
  SourceLimiter sources_;
  bool listening_ = false;
  SteadyTime accept_again_;
  SteadyTime log_window_;
  size_t logged_ = 0;
  size_t not_logged_ = 0;
  std::thread thread_;
};

}  // namespace hive::net::ssh
