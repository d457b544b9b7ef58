#include "net/ssh/handshake_thread.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <libssh/libssh.h>
#include <libssh/server.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/strings.h"
#include "net/ssh/keys.h"
#include "net/ssh/session_channel.h"
#include "net/ssh/sockets.h"

namespace hive::net::ssh {

namespace {

/// What epoll calls the descriptors that are no connections.
constexpr std::uint64_t wake_id = 0;
constexpr std::uint64_t listener_id = 1;
constexpr std::uint64_t first_connection_id = 2;
/// New connections in one turn of the loop; the handshakes in progress have their turn in between.
constexpr int accepts_per_turn = 64;
/// Handshakes that begin in one turn; each costs some work at once.
constexpr int begins_per_turn = 16;
/// A turn that comes this much later than it was asked for says that the process did not run.
constexpr std::chrono::milliseconds own_pause{1000};
/// Refusals that are logged one by one in a window of time; a flood must not fill the disk.
constexpr size_t logged_refusals = 20;
constexpr std::chrono::seconds log_window_length{10};
/// How long to leave the listener alone when the process has no descriptor or memory left.
constexpr std::chrono::milliseconds accept_pause{200};

}  // namespace

namespace {

/// Agents that are connected need descriptors too.
size_t waiting_limit(size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  return std::clamp<size_t>(static_cast<size_t>(limit.rlim_cur) / 4, 1, wanted);
}

/// Whether the peer has gone while it waited; its handshake would be for nothing.
bool is_gone(int fd) {
  char byte = 0;
  const ssize_t count = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace

void HandshakeThread::BindDeleter::operator()(ssh_bind_struct* bind) const {
  ssh_bind_free(bind);
}

HandshakeThread::HandshakeThread(Runtime& runtime, UniqueFd listener, std::shared_ptr<const ServerOptions> options)
    : runtime_(runtime),
      options_(std::move(options)),
      listener_(std::move(listener)),
      next_id_(first_connection_id),
      queue_(waiting_limit(options_->max_waiting)) {}

Result<std::unique_ptr<HandshakeThread>> HandshakeThread::start(Runtime& runtime, UniqueFd listener,
                                                                const crypto::PrivateKey& host_key,
                                                                std::shared_ptr<const ServerOptions> options) {
  std::unique_ptr<HandshakeThread> thread(new HandshakeThread(runtime, std::move(listener), std::move(options)));
  TRY(thread->prepare(host_key));
  try {
    thread->thread_ = std::thread([self = thread.get()] { self->run(); });
  } catch (const std::system_error& error) {
    return fail(ErrorCode::resource_exhausted, "SSH listener: cannot start its thread: {}", error.what());
  }
  return thread;
}

HandshakeThread::~HandshakeThread() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void HandshakeThread::stop() {
  stopping_.store(true);
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the thread is awake anyway.
  (void)!::write(wake_.get(), &one, sizeof(one));
}

Result<void> HandshakeThread::prepare(const crypto::PrivateKey& host_key) {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !wake_) return std::unexpected(system_error(errno, "SSH listener"));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = wake_id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) {
    return std::unexpected(system_error(errno, "SSH listener"));
  }

  bind_.reset(ssh_bind_new());
  if (!bind_) return fail(ErrorCode::resource_exhausted, "SSH listener: out of memory");
  const bool process_config = false;
  KeyHandle key = TRY(to_libssh_key(host_key));
  const bool done = ssh_bind_options_set(bind_.get(), SSH_BIND_OPTIONS_PROCESS_CONFIG, &process_config) == SSH_OK &&
                    // No version for scanners to match against lists of old faults.
                    ssh_bind_options_set(bind_.get(), SSH_BIND_OPTIONS_BANNER, "MyrmexHive") == SSH_OK &&
                    ssh_bind_options_set(bind_.get(), SSH_BIND_OPTIONS_IMPORT_KEY, key.get()) == SSH_OK;
  if (!done) return fail(ErrorCode::internal, "SSH host key: {}", escape_for_terminal(ssh_get_error(bind_.get())));
  // The bind has taken the key.
  (void)key.release();
  return {};
}

void HandshakeThread::run() {
  std::array<epoll_event, 64> events{};
  while (!stopping_.load()) {
    update_listening();
    const int wait = wait_milliseconds();
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait);
    if (stopping_.load()) break;
    forgive_pause(wait);
    bool can_accept = false;
    for (int i = 0; i < std::max(count, 0); ++i) {
      const std::uint64_t id = events[static_cast<size_t>(i)].data.u64;
      if (id == listener_id) can_accept = true;
      const auto found = by_id_.find(id);
      if (found != by_id_.end()) go_on(*found->second);
    }
    if (can_accept) accept_some();
    expire();
    begin_waiting();
  }
  by_id_.clear();
  entries_.clear();
  listener_.reset();
}

int HandshakeThread::wait_milliseconds() const {
  SteadyTime next = SteadyTime::max();
  if (!entries_.empty()) next = entries_.front().deadline;
  if (!listening_) next = std::min(next, accept_again_);
  if (!queue_.empty()) {
    // begin_waiting() stopped for others to have their turn; otherwise it waits for a place.
    if (may_begin_more_) return 0;
    for (const Entry& entry : entries_) {
      if (is_in_the_way(entry)) next = std::min(next, gives_way_at(entry));
    }
  }
  if (next == SteadyTime::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - system_clock().steady_now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

// A process that was stopped has not looked at what came meanwhile: nobody's time runs while ours stands still.
void HandshakeThread::forgive_pause(int asked_wait) {
  const SteadyTime now = system_clock().steady_now();
  const auto late = now - std::exchange(turn_, now) - std::chrono::milliseconds(std::max(asked_wait, 0));
  if (late < own_pause) return;
  for (Entry& entry : entries_) {
    entry.deadline += late;
    entry.moved += late;
  }
}

void HandshakeThread::update_listening() {
  const bool wanted = system_clock().steady_now() >= accept_again_;
  if (wanted == listening_) return;
  epoll_event event{.events = EPOLLIN, .data = {.u64 = listener_id}};
  if (::epoll_ctl(epoll_.get(), wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener_.get(), &event) == 0) {
    listening_ = wanted;
  } else {
    accept_again_ = system_clock().steady_now() + accept_pause;
  }
}

void HandshakeThread::accept_some() {
  for (int i = 0; i < accepts_per_turn; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof(from);
    UniqueFd connection(
        ::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!connection) {
      // A connection that broke while it waited is no reason to stop.
      if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO) continue;
      if (errno == EAGAIN) return;
      const int error = errno;
      const SteadyTime now = system_clock().steady_now();
      if (now - accept_error_told_ >= log_window_length) {
        log::error("cannot accept SSH connections now", {{"error", system_error(error, "accept").message}});
        accept_error_told_ = now;
      }
      accept_again_ = now + accept_pause;
      return;
    }
    SocketAddress address = describe_address(from);
    Peer peer;
    peer.address = std::move(address.address);
    peer.port = address.port;
    if (auto lost = queue_.push({std::move(connection), std::move(peer), std::move(address.source)})) {
      tell_refused(lost->peer, fmt::format("{} connections wait for their handshake already, {} of them from {}",
                                           queue_.size(), queue_.waiting_of(lost->source), lost->source));
    }
  }
}

bool HandshakeThread::may_begin(const std::string& source) const {
  const auto found = in_progress_.find(source);
  return found == in_progress_.end() || found->second < options_->max_handshakes_per_source;
}

void HandshakeThread::begin_waiting() {
  may_begin_more_ = true;
  for (int i = 0; i < begins_per_turn && !queue_.empty();) {
    std::optional<AcceptQueue::Waiting> next;
    if (entries_.size() < options_->max_handshakes) {
      next = queue_.pop([this](const std::string& source) { return may_begin(source); });
    }
    if (!next) {
      if (make_room()) continue;
      may_begin_more_ = false;
      return;
    }
    if (is_gone(next->connection.get())) {
      tell_refused(next->peer, "the peer left while it waited for its handshake");
      continue;
    }
    begin(*std::move(next));
    ++i;
  }
}

SteadyTime HandshakeThread::gives_way_at(const Entry& entry) const {
  return entry.moved + (entry.received == 0 ? options_->silent_limit : options_->idle_limit);
}

// Where there is room as a whole, only a source that has its share and waits for more can win by an end.
bool HandshakeThread::is_in_the_way(const Entry& entry) const {
  if (entries_.size() >= options_->max_handshakes) return true;
  return !may_begin(entry.source) && queue_.waiting_of(entry.source) > 0;
}

bool HandshakeThread::make_room() {
  const SteadyTime now = system_clock().steady_now();
  Entry* victim = nullptr;
  size_t victims = 0;
  for (Entry& entry : entries_) {
    if (gives_way_at(entry) > now || !is_in_the_way(entry)) continue;
    const size_t count = in_progress_.at(entry.source);
    if (victim == nullptr || count > victims || (count == victims && entry.moved < victim->moved)) {
      victim = &entry;
      victims = count;
    }
  }
  if (victim == nullptr) return false;
  tell_refused(victim->handshake->peer(), "stood still in its handshake while others waited");
  remove(*victim);
  return true;
}

void HandshakeThread::begin(AcceptQueue::Waiting waiting) {
  configure_connection(waiting.connection.get());
  const Peer copy = waiting.peer;
  auto handshake = Handshake::begin(bind_.get(), std::move(waiting.connection), std::move(waiting.peer), *options_);
  if (!handshake) return tell_refused(copy, handshake.error().message);
  const SteadyTime now = system_clock().steady_now();
  Entry& entry = entries_.emplace_back();
  entry.id = next_id_++;
  entry.handshake = std::move(*handshake);
  entry.source = std::move(waiting.source);
  entry.deadline = now + options_->handshake_timeout;
  entry.moved = now;
  entry.self = std::prev(entries_.end());
  ++in_progress_[entry.source];
  by_id_.emplace(entry.id, &entry);
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = entry.id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, entry.handshake->fd(), &event) != 0) {
    tell_refused(copy, system_error(errno, "watch the connection").message);
    remove(entry);
    return;
  }
  // Sends our version without waiting for the peer's.
  go_on(entry);
}

void HandshakeThread::go_on(Entry& entry) {
  switch (entry.handshake->step()) {
    case Handshake::Progress::finished:
      hand_over(entry);
      return;
    case Handshake::Progress::failed:
      tell_refused(entry.handshake->peer(), entry.handshake->failure());
      remove(entry);
      return;
    case Handshake::Progress::waiting:
      break;
  }
  if (entry.handshake->received_bytes() > entry.received) {
    entry.received = entry.handshake->received_bytes();
    entry.moved = system_clock().steady_now();
  }
  const bool write = entry.handshake->wants_to_write();
  if (write == entry.waits_to_write) return;
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = entry.id}};
  if (write) event.events |= EPOLLOUT;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, entry.handshake->fd(), &event) == 0) entry.waits_to_write = write;
}

void HandshakeThread::hand_over(Entry& entry) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, entry.handshake->fd(), nullptr);
  Worker& worker = runtime_.next_worker();
  // From here on this thread does not touch the session; the post is the border between the two.
  worker.post([&worker, options = options_, outcome = entry.handshake->take()]() mutable {
    const std::string address = outcome.peer.address;
    const std::string user = outcome.peer.user;
    auto channel = make_session_channel(worker, std::move(outcome.session), outcome.channel, std::move(outcome.peer),
                                        ChannelLimits{options->max_line_bytes, options->max_queued_bytes});
    if (!channel) {
      if (options->refused) options->refused(address, user, channel.error().message);
      return;
    }
    options->accept(std::move(*channel));
  });
  remove(entry);
}

void HandshakeThread::expire() {
  const SteadyTime now = system_clock().steady_now();
  while (!entries_.empty() && entries_.front().deadline <= now) {
    Entry& entry = entries_.front();
    tell_refused(entry.handshake->peer(),
                 fmt::format("no open channel within {} ms", options_->handshake_timeout.count()));
    remove(entry);
  }
}

void HandshakeThread::remove(Entry& entry) {
  const auto source = in_progress_.find(entry.source);
  if (--source->second == 0) in_progress_.erase(source);
  by_id_.erase(entry.id);
  entries_.erase(entry.self);
}

void HandshakeThread::tell_refused(const Peer& peer, const std::string& reason) {
  if (options_->refused) options_->refused(peer.address, peer.user, reason);
  const SteadyTime now = system_clock().steady_now();
  if (now - log_window_ >= log_window_length) {
    if (not_logged_ > 0) log::warning("more SSH connections were refused", {{"count", not_logged_}});
    log_window_ = now;
    logged_ = not_logged_ = 0;
  }
  if (logged_ >= logged_refusals) {
    ++not_logged_;
    return;
  }
  ++logged_;
  log::warning("SSH connection refused",
               {{"address", peer.address}, {"port", peer.port}, {"user", peer.user}, {"reason", reason}});
}

}  // namespace hive::net::ssh
