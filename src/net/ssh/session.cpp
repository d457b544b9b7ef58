#include "net/ssh/session.h"

#include <algorithm>
#include <utility>

#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <libssh/server.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "base/strings.h"

namespace hive::net::ssh {

namespace {

/// libssh answers with the default reply, a refusal, when a message callback returns 1.
int refuse_message(ssh_session, ssh_message, void*) {
  return 1;
}

bool set_text(ssh_session session, ssh_options_e option, const char* value) {
  return ssh_options_set(session, option, value) == SSH_OK;
}

}  // namespace

void KeyDeleter::operator()(ssh_key_struct* key) const {
  ssh_key_free(key);
}

void Session::SessionDeleter::operator()(ssh_session_struct* session) const {
  ssh_free(session);
}

void Session::EventDeleter::operator()(ssh_event_struct* event) const {
  ssh_event_free(event);
}

struct Session::Counters {
  ssh_counter_struct bytes{};
  ssh_counter_struct packets{};
};

Session::Session() = default;
Session::Session(Session&&) noexcept = default;

Session& Session::operator=(Session&& other) noexcept {
  // What is freed still counts.
  if (this != &other) {
    reset();
    session_ = std::move(other.session_);
    event_ = std::move(other.event_);
    counters_ = std::move(other.counters_);
    attached_ = other.attached_;
    failed_ = other.failed_;
  }
  return *this;
}

Session::~Session() {
  reset();
}

Result<Session> Session::create() {
  Session created;
  created.counters_ = std::make_unique<Counters>();
  created.session_.reset(ssh_new());
  created.event_.reset(ssh_event_new());
  ssh_session session = created.session_.get();
  if (session == nullptr || !created.event_) return fail(ErrorCode::resource_exhausted, "SSH session: out of memory");
  const bool process_config = false;
  const int no_delay = 1;
  // The paths keep libssh from looking into the home folder of whoever runs us: our own callback judges host keys.
  const bool done = ssh_options_set(session, SSH_OPTIONS_PROCESS_CONFIG, &process_config) == SSH_OK &&
                    ssh_options_set(session, SSH_OPTIONS_NODELAY, &no_delay) == SSH_OK &&
                    set_text(session, SSH_OPTIONS_SSH_DIR, "/nonexistent") &&
                    set_text(session, SSH_OPTIONS_KNOWNHOSTS, "/dev/null") &&
                    set_text(session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null") &&
                    set_text(session, SSH_OPTIONS_KEY_EXCHANGE, key_exchanges) &&
                    set_text(session, SSH_OPTIONS_HOSTKEYS, host_key_types) &&
                    set_text(session, SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES, host_key_types) &&
                    set_text(session, SSH_OPTIONS_CIPHERS_C_S, ciphers) &&
                    set_text(session, SSH_OPTIONS_CIPHERS_S_C, ciphers) &&
                    set_text(session, SSH_OPTIONS_HMAC_C_S, macs) && set_text(session, SSH_OPTIONS_HMAC_S_C, macs) &&
                    set_text(session, SSH_OPTIONS_COMPRESSION_C_S, compressions) &&
                    set_text(session, SSH_OPTIONS_COMPRESSION_S_C, compressions);
  if (!done) return fail(ErrorCode::internal, "SSH session options: {}", created.error_text());
  ssh_set_blocking(session, 0);
  ssh_set_counters(session, &created.counters_->bytes, &created.counters_->packets);
  ssh_set_message_callback(session, refuse_message, nullptr);
  return created;
}

Session::Step Session::step() {
  if (!is_alive()) return Step::dead;
  // libssh has nothing to hand over before the first call that waited for a packet.
  if (!attached_) attached_ = ssh_event_add_session(event_.get(), session_.get()) == SSH_OK;
  if (!attached_) return Step::idle;
  const int result = ssh_event_dopoll(event_.get(), 0);
  if (result == SSH_ERROR) failed_ = true;
  if (!is_alive()) return Step::dead;
  return result == SSH_AGAIN ? Step::idle : Step::worked;
}

bool Session::is_alive() const {
  // A packet that fails its checks leaves the socket open and the session deaf; only the status tells.
  return session_ && !failed_ && ssh_is_connected(session_.get()) != 0 && ssh_get_fd(session_.get()) >= 0 &&
         (ssh_get_status(session_.get()) & (SSH_CLOSED | SSH_CLOSED_ERROR)) == 0;
}

int Session::fd() const {
  return session_ ? ssh_get_fd(session_.get()) : -1;
}

bool Session::has_pending_output() const {
  return session_ && (ssh_get_status(session_.get()) & SSH_WRITE_PENDING) != 0;
}

void Session::ask_for_answer() {
  // The call that follows an answer only takes note of it; the next one asks again.
  for (int i = 0; i < 2 && is_alive(); ++i) {
    const std::uint64_t sent = counters_->packets.out_packets;
    (void)ssh_send_keepalive(session_.get());
    if (counters_->packets.out_packets != sent) return;
  }
}

Traffic Session::traffic() const {
  Traffic traffic;
  if (!counters_) return traffic;
  traffic.received = received_bytes();
  traffic.acked = counters_->bytes.out_bytes;
  int unacked = 0;
  // What the kernel has of it, sent or not, that the peer's machine does not.
  if (is_alive() && ::ioctl(fd(), SIOCOUTQ, &unacked) == 0 && unacked > 0) {
    traffic.acked -= std::min(traffic.acked, static_cast<std::uint64_t>(unacked));
    traffic.is_sending = true;
  }
  traffic.is_sending = traffic.is_sending || has_pending_output();
  return traffic;
}

std::uint64_t Session::received_bytes() const {
  return counters_ ? counters_->bytes.in_bytes : 0;
}

std::uint64_t Session::received_packets() const {
  return counters_ ? counters_->packets.in_packets : 0;
}

std::string Session::error_text() const {
  if (!session_) return "no session";
  const char* text = ssh_get_error(session_.get());
  return text == nullptr || *text == '\0' ? "connection ended" : escape_for_terminal(text);
}

void Session::reset(const std::string& reason) {
  event_.reset();
  if (session_ && !reason.empty() && is_alive()) {
    ssh_session_set_disconnect_message(session_.get(), reason.c_str());
    // Otherwise libssh would wait for the socket to become writable, and close it before that.
    ssh_set_fd_towrite(session_.get());
    ssh_disconnect(session_.get());
  }
  session_.reset();
}

}  // namespace hive::net::ssh
