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
#include "net/ssh/accept_queue.h"
#include "net/ssh/handshake.h"
#include "net/ssh/server.h"

struct ssh_bind_struct;

namespace hive::net::ssh {

/// The thread that accepts connections and brings them to an open channel. Apart from the workers because a handshake
/// costs as much as thirty calls: a fleet that comes back must not stop those that are here.
///
/// At most max_handshakes connections are in their handshake at a time; the others wait in an AcceptQueue. None is
/// refused for its number: who is not served yet is told nothing and waits, as behind a busy server. Only one that
/// stands still while others wait gives way.
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
    SteadyTime moved;  // when something came from the peer last
    std::uint64_t received = 0;
    bool waits_to_write = false;
    std::list<Entry>::iterator self;
  };
  using Entries = std::list<Entry>;

  HandshakeThread(Runtime& runtime, UniqueFd listener, std::shared_ptr<const ServerOptions> options);
  Result<void> prepare(const crypto::PrivateKey& host_key);

  void run();
  [[nodiscard]] int wait_milliseconds() const;
  void accept_some();
  void begin_waiting();
  void begin(AcceptQueue::Waiting waiting);
  [[nodiscard]] bool may_begin(const std::string& source) const;
  /// Whether a connection that waits could begin if this handshake ended.
  [[nodiscard]] bool is_in_the_way(const Entry& entry) const;
  /// When this handshake may be ended for others that wait.
  [[nodiscard]] SteadyTime gives_way_at(const Entry& entry) const;
  /// Ends a handshake that stands still, of the source that has the most; false when there is none.
  bool make_room();
  void forgive_pause(int asked_wait);
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
  AcceptQueue queue_;
  std::unordered_map<std::string, size_t> in_progress_;  // handshakes by source; none is zero
  bool may_begin_more_ = false;                          // begin_waiting() stopped although more could begin
  bool listening_ = false;
  SteadyTime accept_again_;
  SteadyTime accept_error_told_;
  SteadyTime turn_ = system_clock().steady_now();  // when the loop came round last
  SteadyTime log_window_;
  size_t logged_ = 0;
  size_t not_logged_ = 0;
  std::thread thread_;
};

}  // namespace hive::net::ssh
