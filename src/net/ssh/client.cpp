#include "net/ssh/client.h"

#include <optional>
#include <utility>

#include <fcntl.h>
#include <libssh/libssh.h>

#include "base/strings.h"
#include "net/ssh/dialer.h"
#include "net/ssh/keys.h"
#include "net/ssh/readiness.h"
#include "net/ssh/session.h"
#include "net/ssh/session_channel.h"
#include "net/ssh/sockets.h"

namespace hive::net::ssh {

namespace {

/// What blocks, done on the pool before anything else.
struct Prepared {
  std::optional<crypto::PrivateKey> key;
  Route route;
};

Result<Prepared> prepare(const ClientOptions& options) {
  Prepared prepared;
  prepared.key = TRY_CONTEXT("SSH private key", options.private_key.empty()
                                                    ? crypto::PrivateKey::load(options.private_key_path)
                                                    : crypto::PrivateKey::from_openssh(options.private_key));
  prepared.route = TRY(find_route(options.host, options.port, options.proxy));
  prepared.route.max_segment_bytes = options.max_segment_bytes;
  return prepared;
}

class Attempt final : public Readiness::Listener, public std::enable_shared_from_this<Attempt> {
 public:
  using Done = std::move_only_function<void(Result<std::shared_ptr<LineChannel>>)>;

  Attempt(Worker& worker, ClientOptions options, Done done)
      : worker_(worker), options_(std::move(options)), done_(std::move(done)) {}

  void start(Runtime& runtime) {
    limit_stage(options_.connect_timeout, "looking up the host");
    runtime.run_blocking([self = shared_from_this()]() mutable {
      auto prepared = prepare(self->options_);
      Worker& worker = self->worker_;
      worker.post(
          [self = std::move(self), prepared = std::move(prepared)]() mutable { self->prepared(std::move(prepared)); });
    });
  }

  void abandon() {
    done_ = nullptr;
    clean_up();
  }

  void on_ready() override {
    for (int round = 0; done_ && round < 16; ++round) {
      const Step step = stage_step();
      if (!done_) return;
      // What the call has queued goes out with the next one.
      if (step == Step::wait && !session_.has_pending_output()) break;
    }
    if (!done_) return;
    if (!session_.is_alive()) return give_up(ErrorCode::unavailable, session_.error_text());
    readiness_->wait_readable(shared_from_this());
    if (session_.has_pending_output()) readiness_->wait_writable(shared_from_this());
  }

 private:
  enum class Stage { connect, exchange_keys, authenticate, open_channel, request_subsystem };
  enum class Step { wait, advanced };

  [[nodiscard]] std::string target() const {
    const bool v6 = options_.host.find(':') != std::string::npos;
    return fmt::format("{}{}{}:{}", v6 ? "[" : "", options_.host, v6 ? "]" : "", options_.port);
  }

  void limit_stage(std::chrono::milliseconds limit, std::string_view what) {
    timer_ = worker_.schedule(limit, [self = weak_from_this(), limit, what = std::string(what)] {
      if (const auto attempt = self.lock()) {
        attempt->give_up(ErrorCode::timed_out, fmt::format("{} took longer than {} ms", what, limit.count()));
      }
    });
  }

  void prepared(Result<Prepared> prepared) {
    if (!done_) return;
    if (!prepared) return finish(std::unexpected(std::move(prepared).error()));
    timer_ = Timer();
    key_ = std::move(prepared->key);
    tell(ConnectStep::looked_up, join(addresses_of(prepared->route), ", "));
    dialer_ = std::make_shared<Dialer>(
        worker_, std::move(prepared->route), options_.connect_timeout,
        [self = weak_from_this()](const SocketAddress& proxy) {
          if (const auto attempt = self.lock()) attempt->tell(ConnectStep::at_proxy, proxy.address);
        },
        [self = weak_from_this()](Result<Dialed> result) {
          if (const auto attempt = self.lock()) attempt->dialed(std::move(result));
        });
    dialer_->start();
  }

  void dialed(Result<Dialed> result) {
    if (!done_) return;
    if (!result) return give_up(result.error().code, result.error().message);
    socket_ = std::move(result->fd);
    address_ = std::move(result->address);
    tell(ConnectStep::connected, address_.address);
    auto readiness = Readiness::watch(worker_, socket_.get());
    if (!readiness) return finish(std::unexpected(readiness.error()));
    readiness_ = std::move(*readiness);
    limit_stage(options_.handshake_timeout, "the SSH handshake");
    if (const Result<void> begun = begin_handshake(); !begun) return finish(std::unexpected(begun.error()));
    on_ready();
  }

  void tell(ConnectStep step, const std::string& detail) const {
    if (options_.on_step) options_.on_step(step, detail);
  }

  Result<void> begin_handshake() {
    session_ = TRY(Session::create());
    private_key_ = TRY(to_libssh_key(*key_));
    const int fd = socket_.get();
    // libssh cuts the number to 16 bits.
    if (fd > 0xffff) return fail(ErrorCode::resource_exhausted, "too many open files for an SSH client");
    if (ssh_options_set(session_.get(), SSH_OPTIONS_HOST, options_.host.c_str()) != SSH_OK ||
        ssh_options_set(session_.get(), SSH_OPTIONS_USER, options_.user.c_str()) != SSH_OK ||
        ssh_options_set(session_.get(), SSH_OPTIONS_FD, &fd) != SSH_OK) {
      return fail(ErrorCode::invalid_argument, "SSH client for {}: {}", quote(options_.host), session_.error_text());
    }
    stage_ = Stage::exchange_keys;
    // The first call takes the descriptor. Without the option libssh treats it as its own from then on and closes it.
    (void)socket_.release();
    first_result_ = connect_step();
    ssh_options_set(session_.get(), SSH_OPTIONS_FD, nullptr);
    return {};
  }

  int connect_step() {
    const int result = ssh_connect(session_.get());
    // libssh makes the socket blocking again; a peer that does not read would stop the whole worker.
    if (const int fd = session_.fd(); fd >= 0) ::fcntl(fd, F_SETFL, O_NONBLOCK);
    return result;
  }

  Step stage_step() {
    switch (stage_) {
      case Stage::connect:
        return Step::wait;
      case Stage::exchange_keys: {
        const int result = first_result_ ? *std::exchange(first_result_, std::nullopt) : connect_step();
        if (result == SSH_AGAIN) return Step::wait;
        if (result != SSH_OK) return failed(ErrorCode::unavailable, session_.error_text());
        return keys_exchanged();
      }
      case Stage::authenticate: {
        const int result = ssh_userauth_publickey(session_.get(), nullptr, private_key_.get());
        if (result == SSH_AUTH_AGAIN) return Step::wait;
        if (result == SSH_AUTH_DENIED || result == SSH_AUTH_PARTIAL) {
          std::string_view origin =
              options_.private_key.empty() ? std::string_view(options_.private_key_path) : "of the configuration";
          return failed(ErrorCode::permission_denied,
                        fmt::format("authentication refused: the server does not accept the key {} ({}) for user {}; "
                                    "add its public line, with the user as comment, to the server's authorized_keys",
                                    key_->public_key().fingerprint(), origin, quote(options_.user)));
        }
        if (result != SSH_AUTH_SUCCESS) {
          return failed(ErrorCode::unavailable, fmt::format("authentication failed: {}", session_.error_text()));
        }
        tell(ConnectStep::authenticated, key_->public_key().fingerprint());
        private_key_.reset();
        key_.reset();
        channel_ = ssh_channel_new(session_.get());
        if (channel_ == nullptr) return failed(ErrorCode::resource_exhausted, session_.error_text());
        stage_ = Stage::open_channel;
        return Step::advanced;
      }
      case Stage::open_channel: {
        const int result = ssh_channel_open_session(channel_);
        if (result == SSH_AGAIN) return Step::wait;
        if (result != SSH_OK) {
          return failed(ErrorCode::unavailable, fmt::format("channel refused: {}", session_.error_text()));
        }
        stage_ = Stage::request_subsystem;
        return Step::advanced;
      }
      case Stage::request_subsystem: {
        const int result = ssh_channel_request_subsystem(channel_, options_.subsystem.c_str());
        if (result == SSH_AGAIN) return Step::wait;
        if (result != SSH_OK) {
          return failed(ErrorCode::permission_denied,
                        fmt::format("subsystem {} refused: {}", quote(options_.subsystem), session_.error_text()));
        }
        succeed();
        return Step::advanced;
      }
    }
    return Step::wait;
  }

  /// The server has proved that it owns its host key; whether it is the right one is decided before we say who we are.
  Step keys_exchanged() {
    ssh_key raw = nullptr;
    const int result = ssh_get_server_publickey(session_.get(), &raw);
    const KeyHandle key(raw);
    if (result != SSH_OK) return failed(ErrorCode::unavailable, session_.error_text());
    const auto host_key = to_public_key(key.get());
    if (!host_key) return failed(host_key.error().code, host_key.error().message);
    tell(ConnectStep::keys_exchanged, peer_software());
    const Result<void> verdict = options_.verify_host_key ? options_.verify_host_key(*host_key)
                                                          : fail(ErrorCode::internal, "nothing verifies the host key");
    if (!verdict) return failed(verdict.error().code, verdict.error().message);
    peer_fingerprint_ = host_key->fingerprint();
    stage_ = Stage::authenticate;
    return Step::advanced;
  }

  void succeed() {
    Peer peer;
    peer.address = address_.address;
    peer.port = options_.port;
    peer.user = options_.user;
    peer.key_fingerprint = peer_fingerprint_;
    peer.software = peer_software();
    readiness_->release();
    finish(make_session_channel(worker_, std::move(session_), std::exchange(channel_, nullptr), std::move(peer),
                                ChannelLimits{options_.max_line_bytes, options_.max_queued_bytes}));
  }

  [[nodiscard]] std::string peer_software() const {
    const char* software = ssh_get_serverbanner(session_.get());
    return escape_for_terminal(software == nullptr ? "" : software);
  }

  Step failed(ErrorCode code, const std::string& why) {
    give_up(code, why);
    return Step::wait;
  }

  void give_up(ErrorCode code, const std::string& why) {
    finish(
        fail(code, "{} {}: {}", stage_ == Stage::connect ? "cannot connect to" : "SSH connection to", target(), why));
  }

  void finish(Result<std::shared_ptr<LineChannel>> result) {
    if (!done_) return;
    Done done = std::exchange(done_, nullptr);
    clean_up();
    done(std::move(result));
  }

  void clean_up() {
    timer_ = Timer();
    if (dialer_) dialer_->abandon();
    if (readiness_) readiness_->release();
    session_.reset();
    socket_.reset();
    key_.reset();
    private_key_.reset();
  }

  Worker& worker_;
  ClientOptions options_;
  Done done_;
  Timer timer_;
  std::optional<crypto::PrivateKey> key_;
  std::shared_ptr<Dialer> dialer_;
  SocketAddress address_;
  UniqueFd socket_;
  Session session_;
  std::unique_ptr<Readiness> readiness_;
  KeyHandle private_key_;
  std::optional<int> first_result_;
  std::string peer_fingerprint_;
  ssh_channel channel_ = nullptr;
  Stage stage_ = Stage::connect;
};

class Handle final : public ConnectAttempt {
 public:
  explicit Handle(std::shared_ptr<Attempt> attempt) : attempt_(std::move(attempt)) {}
  ~Handle() override { attempt_->abandon(); }

 private:
  std::shared_ptr<Attempt> attempt_;
};

}  // namespace

std::unique_ptr<ConnectAttempt> connect(Runtime& runtime, Worker& worker, ClientOptions options,
                                        std::move_only_function<void(Result<std::shared_ptr<LineChannel>>)> done) {
  auto attempt = std::make_shared<Attempt>(worker, std::move(options), std::move(done));
  attempt->start(runtime);
  return std::make_unique<Handle>(std::move(attempt));
}

}  // namespace hive::net::ssh
