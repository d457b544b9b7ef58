#include "net/ssh/handshake.h"

#include <string_view>
#include <utility>

#include <fcntl.h>
#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <libssh/server.h>

#include "base/strings.h"
#include "net/ssh/keys.h"
#include "net/ssh/peer_packet.h"

namespace hive::net::ssh {

namespace {

/// An honest handshake is about 20 packets and 8 KiB; a peer beyond these only burns our CPU.
constexpr std::uint64_t max_handshake_packets = 200;
constexpr std::uint64_t max_handshake_bytes = std::uint64_t{128} << 10;

/// libssh would otherwise ask the Kerberos library, which reads files and the DNS, for anybody who connects.
ssh_string refuse_gssapi(ssh_session, const char*, int, ssh_string*, void*) {
  return nullptr;
}

/// What stays with a session after its handshake: no callback points to anything that can go away.
ssh_server_callbacks_struct refuse_everything() {
  ssh_server_callbacks_struct callbacks{};
  callbacks.gssapi_select_oid_function = refuse_gssapi;
  ssh_callbacks_init(&callbacks);
  return callbacks;
}

int refuse_message(ssh_session, ssh_message, void*) {
  return 1;
}

}  // namespace

/// The structs that libssh keeps pointers to, and the functions in them.
struct Handshake::Callbacks {
  explicit Callbacks(Handshake* self) {
    server.userdata = self;
    server.auth_pubkey_function = on_public_key;
    server.channel_open_request_session_function = on_session_channel;
    server.gssapi_select_oid_function = on_gssapi;
    ssh_callbacks_init(&server);
    channel.userdata = self;
    channel.channel_subsystem_request_function = on_subsystem;
    ssh_callbacks_init(&channel);
  }

  static int on_public_key(ssh_session, const char* user, ssh_key key, char signature, void* self) {
    auto& handshake = *static_cast<Handshake*>(self);
    return handshake.judge_key(user, key, signature == SSH_PUBLICKEY_STATE_VALID, signature == SSH_PUBLICKEY_STATE_NONE)
               ? SSH_AUTH_SUCCESS
               : SSH_AUTH_DENIED;
  }

  static ssh_string on_gssapi(ssh_session, const char* user, int, ssh_string*, void* self) {
    static_cast<Handshake*>(self)->deny(user, "method gssapi-with-mic is not offered");
    return nullptr;
  }

  static ssh_channel on_session_channel(ssh_session session, void* self) {
    auto& handshake = *static_cast<Handshake*>(self);
    if (!handshake.authenticated_ || handshake.channel_ != nullptr) return nullptr;
    handshake.channel_ = ssh_channel_new(session);
    if (handshake.channel_ != nullptr) {
      ssh_set_channel_callbacks(handshake.channel_, &handshake.callbacks_->channel);
    }
    return handshake.channel_;
  }

  static int on_subsystem(ssh_session, ssh_channel, const char* name, void* self) {
    auto& handshake = *static_cast<Handshake*>(self);
    if (handshake.finished_) return 1;
    const bool is_probe = !handshake.options_.probe_subsystem.empty() && handshake.options_.probe_subsystem == name;
    if (!is_probe && handshake.options_.subsystem != name) {
      handshake.last_denial_ = fmt::format("subsystem {} was refused", quote(std::string_view(name).substr(0, 64)));
      return 1;
    }
    handshake.peer_.kind = is_probe ? ChannelKind::probe : ChannelKind::subsystem;
    handshake.finished_ = true;
    return 0;
  }

  /// Everything that has no callback of its own. 1 lets libssh refuse (for a service: accept).
  static int on_message(ssh_session, ssh_message message, void* self) {
    auto& handshake = *static_cast<Handshake*>(self);
    switch (ssh_message_type(message)) {
      case SSH_REQUEST_AUTH:
        handshake.judge_other_method(ssh_message_auth_user(message),
                                     ssh_message_subtype(message) == static_cast<int>(SSH_AUTH_METHOD_NONE));
        return 1;
      case SSH_REQUEST_SERVICE: {
        const char* service = ssh_message_service_service(message);
        if (service != nullptr && std::string_view(service) == "ssh-userauth") return 1;
        handshake.refuse("asked for another service than ssh-userauth");
        return 0;
      }
      case SSH_REQUEST_CHANNEL_OPEN:
        if (handshake.accept_direct_channel(message)) return 0;
        handshake.last_denial_ = "another channel than a session was refused";
        return 1;
      case SSH_REQUEST_CHANNEL:
        // The environment is offered by every OpenSSH client and means nothing.
        if (ssh_message_subtype(message) != static_cast<int>(SSH_CHANNEL_REQUEST_ENV)) {
          handshake.last_denial_ = "a command, shell or terminal was refused";
        }
        return 1;
      default:
        return 1;
    }
  }

  /// libssh tells its server that a channel of an unknown type was asked for, but not which type; the only place where
  /// the name appears is this line of its log. It is matched as a whole, so nothing that a peer sends can look like it,
  /// and if a later libssh words it differently, direct channels are refused.
  static void on_log(int, const char*, const char* text, void* self) {
    if (self == nullptr) return;
    auto& handshake = *static_cast<Handshake*>(self);
    constexpr std::string_view before = "ssh_packet_channel_open: Clients wants to open a ";
    constexpr std::string_view after = " channel";
    const std::string_view line = text;
    if (line.starts_with(before)) {
      const std::string_view rest = line.substr(before.size());
      handshake.direct_channel_announced_ =
          rest.ends_with(after) && rest.substr(0, rest.size() - after.size()) == handshake.options_.subsystem;
    } else if (line == "ssh_packet_userauth_request: Received an invalid signature from peer") {
      // libssh drops the request without an answer, and the peer would wait for one.
      handshake.refuse("authentication refused: the signature does not verify");
    }
  }

  ssh_server_callbacks_struct server{};
  ssh_channel_callbacks_struct channel{};
};

Handshake::Handshake(const ServerOptions& options, Session session, Peer peer)
    : options_(options),
      callbacks_(std::make_unique<Callbacks>(this)),
      session_(std::move(session)),
      peer_(std::move(peer)) {}

Handshake::~Handshake() = default;

Result<std::unique_ptr<Handshake>> Handshake::begin(ssh_bind_struct* bind, UniqueFd connection, Peer peer,
                                                    const ServerOptions& options) {
  Session session = TRY(Session::create());
  if (ssh_bind_accept_fd(bind, session.get(), connection.get()) != SSH_OK) {
    // Past a certain point the session owns the descriptor, also when the call failed.
    if (session.fd() == connection.get()) (void)connection.release();
    return fail(ErrorCode::resource_exhausted, "SSH session: {}", escape_for_terminal(ssh_get_error(bind)));
  }
  (void)connection.release();
  std::unique_ptr<Handshake> handshake(new Handshake(options, std::move(session), std::move(peer)));
  ssh_session raw = handshake->session_.get();
  ssh_set_auth_methods(raw, SSH_AUTH_METHOD_PUBLICKEY);
  ssh_set_server_callbacks(raw, &handshake->callbacks_->server);
  ssh_set_message_callback(raw, Callbacks::on_message, handshake.get());
  return handshake;
}

Handshake::Progress Handshake::step() {
  // The log is the thread's own: other threads keep theirs silent. Before the keys are exchanged it says nothing that
  // we need.
  ssh_set_log_callback(Callbacks::on_log);
  ssh_set_log_userdata(this);
  ssh_set_log_level(keys_exchanged_ ? SSH_LOG_PACKET : SSH_LOG_NOLOG);
  const Progress progress = go_on();
  ssh_set_log_level(SSH_LOG_NOLOG);
  ssh_set_log_userdata(nullptr);
  return progress;
}

Handshake::Progress Handshake::go_on() {
  // One call reads 4 KiB at most, and its answers go out with the next one.
  for (int round = 0; round < 8; ++round) {
    bool idle = false;
    bool dead = false;
    if (!keys_exchanged_) {
      const int result = ssh_handle_key_exchange(session_.get());
      keys_exchanged_ = result == SSH_OK;
      dead = result == SSH_ERROR;
      idle = result == SSH_AGAIN && !session_.has_pending_output();
      if (keys_exchanged_) ssh_set_log_level(SSH_LOG_PACKET);
    } else {
      const Session::Step result = session_.step();
      dead = result == Session::Step::dead;
      idle = result == Session::Step::idle;
    }
    if (!failure_.empty()) {
      // The last answer still goes out. What comes in with it changes nothing any more.
      for (int i = 0; i < 2 && session_.is_alive(); ++i)
        (void)session_.step();
      session_.reset("refused");
      return Progress::failed;
    }
    if (dead || !session_.is_alive()) {
      failure_ =
          fmt::format("{}{}: {}", last_denial_.empty() ? "" : last_denial_ + "; then ", stage(), session_.error_text());
      return Progress::failed;
    }
    if (finished_) {
      const auto packet = peer_max_packet(channel_);
      if (!packet || *packet >= min_peer_packet) return Progress::finished;
      failure_ =
          fmt::format("the peer announces packets of {} bytes, at least {} are needed", *packet, min_peer_packet);
      session_.reset("refused");
      return Progress::failed;
    }
    if (session_.received_packets() > max_handshake_packets || session_.received_bytes() > max_handshake_bytes) {
      failure_ = fmt::format("more than {} packets or {} bytes before the channel was open", max_handshake_packets,
                             max_handshake_bytes);
      session_.reset("refused");
      return Progress::failed;
    }
    if (idle) return Progress::waiting;
  }
  return Progress::waiting;
}

std::string_view Handshake::stage() const {
  if (!keys_exchanged_) return "connection ended in the key exchange";
  return authenticated_ ? "connection ended without an open channel" : "connection ended without authentication";
}

bool Handshake::judge_key(const char* user, ssh_key_struct* key, bool proven, bool probe) {
  if (!failure_.empty() || authenticated_) return false;
  const std::string name = user == nullptr ? "" : user;
  const Result<void> verdict = [&]() -> Result<void> {
    // Longer than this no name is looked at or logged.
    TRY(check_agent_id(std::string_view(name).substr(0, 256)));
    if (ssh_key_type(key) != SSH_KEYTYPE_ED25519) {
      return fail(ErrorCode::permission_denied, "a key of type {} is not accepted, only ssh-ed25519",
                  ssh_key_type_to_char(ssh_key_type(key)));
    }
    if (!proven && !probe) return fail(ErrorCode::permission_denied, "the signature does not verify");
    const crypto::PublicKey public_key = TRY(to_public_key(key));
    TRY(options_.authenticate(name, public_key, peer_.address));
    if (proven) peer_.key_fingerprint = public_key.fingerprint();
    return {};
  }();
  if (!verdict) {
    deny(user, verdict.error().message);
    return false;
  }
  peer_.user = name;
  authenticated_ = proven;
  return true;
}

void Handshake::judge_other_method(const char* user, bool is_none) {
  // Clients begin with the method "none" to learn what is offered.
  if (is_none && !std::exchange(asked_for_methods_, true)) return;
  deny(user, "only public keys are accepted");
}

void Handshake::deny(const char* user, std::string_view reason) {
  if (!failure_.empty()) return;
  // The name that was proven must never give way to another one.
  if (authenticated_) return refuse("asked to authenticate again");
  peer_.user = escape_for_terminal(std::string_view(user == nullptr ? "" : user).substr(0, 64));
  last_denial_ = fmt::format("authentication refused: {}", reason);
  if (++refused_tries_ >= options_.max_authentication_tries) refuse(last_denial_);
}

void Handshake::refuse(std::string reason) {
  if (failure_.empty()) failure_ = std::move(reason);
}

bool Handshake::accept_direct_channel(ssh_message_struct* message) {
  const bool wanted = std::exchange(direct_channel_announced_, false) &&
                      ssh_message_subtype(message) == static_cast<int>(SSH_CHANNEL_UNKNOWN);
  if (!wanted || !authenticated_ || channel_ != nullptr || !failure_.empty()) return false;
  channel_ = ssh_message_channel_request_open_reply_accept(message);
  if (channel_ == nullptr) return false;
  ssh_set_channel_callbacks(channel_, &callbacks_->channel);
  peer_.kind = ChannelKind::direct;
  finished_ = true;
  return true;
}

Handshake::Outcome Handshake::take() {
  static ssh_server_callbacks_struct refusing = refuse_everything();
  ssh_session raw = session_.get();
  ssh_set_server_callbacks(raw, &refusing);
  ssh_set_message_callback(raw, refuse_message, nullptr);
  ssh_remove_channel_callbacks(channel_, &callbacks_->channel);
  const char* software = ssh_get_clientbanner(raw);
  peer_.software = escape_for_terminal(software == nullptr ? "" : software);
  return Outcome{std::move(session_), std::exchange(channel_, nullptr), std::move(peer_)};
}

}  // namespace hive::net::ssh
