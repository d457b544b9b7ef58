#include "net/ssh/session_channel.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include "base/log.h"
#include "base/strings.h"
#include "net/ssh/line_buffer.h"
#include "net/ssh/output_queue.h"
#include "net/ssh/readiness.h"

namespace hive::net::ssh {

namespace {

/// Pieces of this size keep the peer's libssh buffers small: they grow to what arrives at once and never shrink.
constexpr size_t write_piece_bytes = 4000;
/// While no more than this waits, smaller pieces do: the usual answer fits into one, and the peer's buffers stay half
/// as large.
constexpr size_t small_backlog_bytes = size_t{8} << 10;
constexpr size_t small_piece_bytes = 1500;
/// How much one channel may send in one turn of the loop before the others have theirs.
constexpr size_t flush_turn_bytes = size_t{256} << 10;
/// libssh opens the window to 1.25 MiB. A peer that sends more than that while we do not read ignores the window.
constexpr size_t max_unread_bytes = size_t{2} << 20;
/// A path of 100 ms and 100 Mbit/s holds 1.25 MB, and only half of a window is sure to be open: libssh's own would fill
/// a quarter of such a path. A peer that has sent this much gets the wide window; the many that never do cost nothing.
constexpr size_t wide_window_bytes = size_t{4} << 20;
constexpr size_t widen_after_bytes = size_t{256} << 10;
constexpr size_t max_unread_wide_bytes = wide_window_bytes + (size_t{1} << 20);

class SessionChannel final : public LineChannel, public Readiness::Listener {
 public:
  SessionChannel(Worker& worker, Session session, ssh_channel channel, Peer peer, ChannelLimits limits)
      : worker_(worker),
        session_(std::move(session)),
        channel_(channel),
        peer_(std::move(peer)),
        incoming_(limits.max_line_bytes),
        outgoing_(limits.max_queued_bytes),
        limits_(limits) {}

  ~SessionChannel() override {
    // Only when the loop ended before the channel: nobody is left to be told.
    if (readiness_) readiness_->release();
  }

  Result<void> start() {
    callbacks_.userdata = this;
    callbacks_.channel_data_function = on_data;
    callbacks_.channel_eof_function = on_eof;
    callbacks_.channel_close_function = on_close;
    ssh_callbacks_init(&callbacks_);
    if (ssh_set_channel_callbacks(channel_, &callbacks_) != SSH_OK) {
      return fail(ErrorCode::internal, "SSH channel callbacks: {}", session_.error_text());
    }
    readiness_ = TRY(Readiness::watch(worker_, session_.fd()));
    // What came with the last packets of the handshake makes no descriptor ready again.
    post(&SessionChannel::on_ready);
    return {};
  }

  Worker& worker() override { return worker_; }
  const Peer& peer() const override { return peer_; }

  void set_handler(std::shared_ptr<Handler> handler) override {
    handler_ = std::move(handler);
    if (state_ == State::closed) {
      if (!finish_posted_) post_finish();
      return;
    }
    post(&SessionChannel::resume);
  }

  Result<void> send(std::string_view line) override {
    if (state_ != State::open) return fail(ErrorCode::unavailable, "channel to {} is closed", describe());
    if (!outgoing_.push_line(line)) {
      return fail(ErrorCode::resource_exhausted, "channel to {}: {} bytes wait already, no room for {} more (limit {})",
                  describe(), outgoing_.size(), line.size() + 1, limits_.max_queued_bytes);
    }
    post_flush();
    return {};
  }

  size_t queued_bytes() const override { return outgoing_.size(); }

  Traffic traffic() const override {
    Traffic traffic = session_.traffic();
    traffic.taken = taken_;
    traffic.queued = outgoing_.size();
    traffic.is_sending = traffic.is_sending || traffic.queued > 0;
    return traffic;
  }

  void probe() override { post(&SessionChannel::ask_for_answer); }

  void set_reading(bool enabled) override {
    if (std::exchange(reading_, enabled) == enabled || !enabled) return;
    post(&SessionChannel::resume);
  }

  void close(std::string_view reason) override { close_with(Error{ErrorCode::cancelled, std::string(reason)}); }

  bool is_open() const override { return state_ == State::open; }

  void on_ready() override {
    if (state_ == State::closed) return;
    // A second step sends what the first one queued, such as a window adjustment or the answer to a keepalive.
    if (session_.step() == Session::Step::worked && session_.has_pending_output()) (void)session_.step();
    if (state_ == State::open && flush()) post_flush();
    after_libssh();
  }

 private:
  enum class State {
    open,
    closing,  // close() was called; the farewell is posted
    closed,   // the session is dead or about to be freed; nothing may touch it
  };

  // Callbacks of libssh: they only take notes, since a write can bring us here as well, and freeing anything now would
  // pull the ground from under libssh.

  static int on_data(ssh_session, ssh_channel, void* data, std::uint32_t size, int is_stderr, void* self) {
    auto& channel = *static_cast<SessionChannel*>(self);
    // Nothing is spoken on the second stream: swallowed, so that it cannot fill memory.
    if (is_stderr != 0) return static_cast<int>(size);
    if (!channel.reads()) {
      // Left with libssh: the window closes and the peer has to wait. `size` counts all that is left so far.
      if (size > (channel.window_is_wide_ ? max_unread_wide_bytes : max_unread_bytes)) channel.window_ignored_ = true;
      channel.left_with_libssh_ = true;
      return 0;
    }
    channel.left_with_libssh_ = false;
    channel.incoming_.append(std::string_view(static_cast<const char*>(data), size));
    channel.received_ += size;
    return static_cast<int>(size);
  }
  static void on_eof(ssh_session, ssh_channel, void* self) { static_cast<SessionChannel*>(self)->peer_ended_ = true; }
  static void on_close(ssh_session, ssh_channel, void* self) { static_cast<SessionChannel*>(self)->peer_ended_ = true; }

  [[nodiscard]] bool reads() const { return reading_ && handler_ && state_ == State::open; }

  std::shared_ptr<SessionChannel> self() { return std::static_pointer_cast<SessionChannel>(shared_from_this()); }

  void post(void (SessionChannel::*action)()) {
    worker_.post([self = self(), action] { (self.get()->*action)(); });
  }

  [[nodiscard]] std::string describe() const {
    return peer_.user.empty() ? peer_.address : fmt::format("{} at {}", peer_.user, peer_.address);
  }

  /// Whatever a call into libssh has left to do. Every such call ends here, in the same frame.
  void after_libssh() {
    if (state_ == State::closed) return;
    if (received_ >= widen_at_) widen_window();
    const bool alive = session_.is_alive();
    // The descriptor is closed already when the session died: its number must leave the loop before anything else runs.
    if (!alive) readiness_->release();
    deliver();
    if (state_ != State::open && alive) return;
    if (!alive) {
      if (state_ == State::closing) return end(std::move(reason_));
      return end(Error{ErrorCode::unavailable, fmt::format("connection lost: {}", session_.error_text())});
    }
    if (write_failed_) {
      return close_with(Error{ErrorCode::unavailable, fmt::format("cannot send: {}", session_.error_text())});
    }
    if (window_ignored_) {
      return close_with(Error{ErrorCode::resource_exhausted, "the peer sends without regard to the channel's window"});
    }
    if (incoming_.line_too_long()) {
      return close_with(Error{ErrorCode::resource_exhausted,
                              fmt::format("line longer than the limit of {} bytes", limits_.max_line_bytes)});
    }
    // Lines that wait for a paused reader come before the end.
    if (peer_ended_ && reads() && !left_with_libssh_)
      return close_with(Error{ErrorCode::unavailable, "the peer closed the channel"});
    readiness_->wait_readable(self());
    if (session_.has_pending_output()) readiness_->wait_writable(self());
  }

  void deliver() {
    while (reads()) {
      const std::optional<std::string_view> line = incoming_.next_line();
      if (!line) break;
      // A copy: the handler may be replaced by its own call.
      const std::shared_ptr<Handler> handler = handler_;
      handler->on_line(*line);
    }
    incoming_.compact();
  }

  /// Takes what libssh kept while nobody read, which opens the window again; no callback comes for it.
  void resume() {
    if (state_ == State::closed) return;
    deliver();
    while (reads() && session_.is_alive()) {
      char chunk[16384];
      const int size = ssh_channel_read_nonblocking(channel_, chunk, sizeof(chunk), 0);
      left_with_libssh_ = size > 0;
      if (size <= 0) break;
      incoming_.append(std::string_view(chunk, static_cast<size_t>(size)));
    }
    // An end that came with the last packets of the handshake came before our callbacks.
    if (ssh_channel_is_eof(channel_) != 0 || ssh_channel_is_closed(channel_) != 0) peer_ended_ = true;
    after_libssh();
  }

  /// Opens the window to its wide size again. libssh does so for whoever asks for more bytes than the window has.
  void widen_window() {
    if (!reads() || left_with_libssh_ || !session_.is_alive()) return;
    window_is_wide_ = true;
    // Room for as much as is asked for, though hardly a page of it is ever touched: on_data has all that comes.
    const auto room = std::make_unique_for_overwrite<char[]>(wide_window_bytes);
    const int size = ssh_channel_read_timeout(channel_, room.get(), wide_window_bytes, 0, 0);
    if (size > 0) incoming_.append(std::string_view(room.get(), static_cast<size_t>(size)));
    widen_at_ = received_ + wide_window_bytes / 2;
  }

  void ask_for_answer() {
    if (state_ != State::open) return;
    session_.ask_for_answer();
    after_libssh();
  }

  void post_flush() {
    if (!std::exchange(flush_posted_, true)) post(&SessionChannel::flush_turn);
  }

  void flush_turn() {
    flush_posted_ = false;
    if (state_ != State::open) return;
    if (flush()) post_flush();
    after_libssh();
  }

  /// Hands queued bytes to libssh as long as the socket and the peer's window take them. True when it stopped only to
  /// let others have their turn.
  [[nodiscard]] bool flush() {
    size_t written = 0;
    bool more = true;
    while (more && !outgoing_.empty() && session_.is_alive()) {
      if (written >= flush_turn_bytes) break;
      // What libssh takes beyond the socket's capacity it keeps in memory of its own.
      if (session_.has_pending_output()) break;
      const std::string_view piece =
          outgoing_.front(outgoing_.size() <= small_backlog_bytes ? small_piece_bytes : write_piece_bytes);
      const int count = ssh_channel_write(channel_, piece.data(), static_cast<std::uint32_t>(piece.size()));
      // Zero: the window is closed, or keys are being exchanged; input will bring us back.
      more = count > 0;
      if (count > 0) {
        outgoing_.pop(static_cast<size_t>(count));
        written += static_cast<size_t>(count);
        taken_ += static_cast<size_t>(count);
      }
      // After the peer's own end that is no news.
      if (count < 0 && !peer_ended_) write_failed_ = true;
    }
    if (state_ == State::open && outgoing_.take_writable_again() && handler_) {
      const std::shared_ptr<Handler> handler = handler_;
      handler->on_writable();
    }
    return written >= flush_turn_bytes && !outgoing_.empty();
  }

  void close_with(Error reason) {
    if (state_ != State::open) return;
    state_ = State::closing;
    reason_ = std::move(reason);
    post(&SessionChannel::farewell);
  }

  void farewell() {
    if (state_ != State::closing) return;
    while (flush() && session_.is_alive()) {
    }
    // No channel close: the disconnect message that follows says it all, and a peer that got both would often act on
    // the first, which has no reason in it.
    end(std::move(reason_));
  }

  /// The session is not touched any more; a later handler frees it and tells.
  void end(Error reason) {
    if (state_ == State::closed) return;
    state_ = State::closed;
    reason_ = std::move(reason);
    readiness_->release();
    post_finish();
  }

  void post_finish() {
    finish_posted_ = true;
    post(&SessionChannel::finish);
  }

  void finish() {
    finish_posted_ = false;
    channel_ = nullptr;
    session_.reset(reason_.message.empty() ? "closed" : reason_.message);
    if (!handler_) return;
    const std::shared_ptr<Handler> handler = std::move(handler_);
    handler_ = nullptr;
    handler->on_closed(reason_);
  }

  Worker& worker_;
  Session session_;
  ssh_channel channel_;
  Peer peer_;
  std::unique_ptr<Readiness> readiness_;
  ssh_channel_callbacks_struct callbacks_{};
  std::shared_ptr<Handler> handler_;
  LineBuffer incoming_;
  OutputQueue outgoing_;
  ChannelLimits limits_;
  std::uint64_t taken_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t widen_at_ = widen_after_bytes;
  Error reason_;
  State state_ = State::open;
  bool reading_ = true;
  bool flush_posted_ = false;
  bool finish_posted_ = false;
  bool peer_ended_ = false;
  bool left_with_libssh_ = true;  // what came during the handshake
  bool window_ignored_ = false;
  bool window_is_wide_ = false;
  bool write_failed_ = false;
};

}  // namespace

Result<std::shared_ptr<LineChannel>> make_session_channel(Worker& worker, Session session, ssh_channel_struct* channel,
                                                          Peer peer, ChannelLimits limits) {
  auto made = std::make_shared<SessionChannel>(worker, std::move(session), channel, std::move(peer), limits);
  TRY(made->start());
  return made;
}

}  // namespace hive::net::ssh
