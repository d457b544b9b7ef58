#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "net/ssh/server.h"
#include "net/ssh/session.h"

struct ssh_bind_struct;
struct ssh_channel_struct;
struct ssh_message_struct;

namespace hive::net::ssh {

/// One connection on its way from accept to an open channel, on the server's handshake thread.
class Handshake {
 public:
  /// Takes the connection. `bind` holds the host key; `options` must outlive the handshake.
  static Result<std::unique_ptr<Handshake>> begin(ssh_bind_struct* bind, UniqueFd connection, Peer peer,
                                                  const ServerOptions& options);
  ~Handshake();
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  enum class Progress {
    waiting,   ///< for the descriptor
    finished,  ///< authenticated, channel open
    failed,    ///< see failure()
  };
  /// Goes on as far as that is possible without waiting and without taking long; the descriptor stays ready when there
  /// is more to do.
  [[nodiscard]] Progress step();

  [[nodiscard]] int fd() const { return session_.fd(); }
  [[nodiscard]] bool wants_to_write() const { return session_.has_pending_output(); }
  [[nodiscard]] std::uint64_t received_bytes() const { return session_.received_bytes(); }
  [[nodiscard]] const Peer& peer() const { return peer_; }
  [[nodiscard]] const std::string& failure() const { return failure_; }

  /// After finished: the session, stripped of everything that points here, and its channel.
  struct Outcome {
    Session session;
    ssh_channel_struct* channel = nullptr;
    Peer peer;
  };
  [[nodiscard]] Outcome take();

 private:
  struct Callbacks;
  Handshake(const ServerOptions& options, Session session, Peer peer);

  [[nodiscard]] Progress go_on();
  [[nodiscard]] std::string_view stage() const;
  /// The decision about a key; the same for the question whether it would be accepted (`probe`) and for the proof.
  [[nodiscard]] bool judge_key(const char* user, ssh_key_struct* key, bool proven, bool probe);
  void judge_other_method(const char* user, bool is_none);
  [[nodiscard]] bool accept_direct_channel(ssh_message_struct* message);
  /// Notes a refused try; too many end the handshake.
  void deny(const char* user, std::string_view reason);
  /// Ends the handshake after the current step.
  void refuse(std::string reason);

  const ServerOptions& options_;
  std::unique_ptr<Callbacks> callbacks_;
  Session session_;
  Peer peer_;
  ssh_channel_struct* channel_ = nullptr;
  std::string failure_;
  std::string last_denial_;
  bool keys_exchanged_ = false;
  bool authenticated_ = false;
  bool finished_ = false;
  // Set while libssh reads a CHANNEL_OPEN of the wanted type.
  bool direct_channel_announced_ = false;
  int refused_tries_ = 0;
  bool asked_for_methods_ = false;
};

}  // namespace hive::net::ssh
