#include "forwarder/forwarder.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <random>
#include <span>

#include <poll.h>

#include "base/log.h"
#include "base/strings.h"

namespace hive::forwarder {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds first_pause = std::chrono::seconds(1);
constexpr milliseconds longest_pause = std::chrono::seconds(60);
constexpr milliseconds farewell_pause(200);

/// Waits until one of two descriptors is readable; whether `stop_fd` is. -1 is never readable.
bool wait_for(int stop_fd, int other_fd, milliseconds at_most) {
  pollfd fds[2] = {{.fd = stop_fd, .events = POLLIN, .revents = 0}, {.fd = other_fd, .events = POLLIN, .revents = 0}};
  if (::poll(fds, 2, static_cast<int>(at_most.count())) <= 0) return false;
  return (fds[0].revents & (POLLIN | POLLHUP)) != 0;
}

double random_share() {
  static std::minstd_rand generator{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

class Run {
 public:
  Run(const Options& options, const Send& send, int stop_fd, JournalReader reader)
      : options_(options), send_(send), stop_fd_(stop_fd), reader_(std::move(reader)) {}

  Result<void> until_stopped() {
    while (!stopping_) {
      TRY(send_all());
      if (!stopping_ && wait_for(stop_fd_, reader_.fd(), reader_.patience())) begin_farewell();
      TRY(reader_.refresh());
    }
    // What the others said while they were stopped.
    return send_all();
  }

 private:
  void begin_farewell() {
    stopping_ = true;
    deadline_ = std::chrono::steady_clock::now() + options_.farewell;
  }

  [[nodiscard]] bool is_over() const { return stopping_ && std::chrono::steady_clock::now() >= deadline_; }

  Result<void> send_all() {
    while (!is_over()) {
      std::vector<JournalEntry> batch = TRY(next_batch());
      if (batch.empty()) return {};
      if (!TRY(deliver(batch))) break;
    }
    if (stopping_) log::warning("stopped with entries that the collector has not taken");
    return {};
  }

  Result<std::vector<JournalEntry>> next_batch() {
    std::vector<JournalEntry> batch;
    size_t bytes = 0;
    while (batch.size() < options_.max_records && bytes < options_.max_bytes) {
      std::optional<JournalEntry> entry = TRY(reader_.next());
      if (!entry) break;
      bytes += entry->size_bytes();
      batch.push_back(*std::move(entry));
    }
    return batch;
  }

  /// Sends until the collector has it all; false when the farewell is over before that.
  Result<bool> deliver(std::span<const JournalEntry> entries) {
    size_t at_once = entries.size();
    while (!entries.empty()) {
      const std::span<const JournalEntry> part = entries.first(std::min(at_once, entries.size()));
      const Answer answer = send_(export_request(options_.resource, part, system_clock().wall_now()));
      if (answer.sent == Sent::later) {
        if (!pause(answer)) return false;
        continue;
      }
      if (answer.sent != Sent::accepted && part.size() > 1) {
        // Smaller, until it fits or the one record is found that is not taken.
        at_once = part.size() / 2;
        continue;
      }
      if (answer.sent != Sent::accepted) {
        log::error("the collector will never take this entry; it is left out",
                   {{"reason", answer.problem}, {"uid", record_uid(part.front())}});
      } else if (!answer.problem.empty()) {
        log::warning("the collector has not taken every entry", {{"reason", answer.problem}});
      }
      TRY(acknowledge(part.back()));
      entries = entries.subspan(part.size());
    }
    return true;
  }

  Result<void> acknowledge(const JournalEntry& last) {
    if (std::exchange(away_, false)) log::info("the collector takes entries again");
    backoff_.reset();
    return save_position(options_.position_path,
                         {.cursor = last.cursor, .boot_id = last.boot_id, .monotonic_us = last.monotonic_us});
  }

  /// Before the same is sent again; false when there is no time for that.
  bool pause(const Answer& answer) {
    // Once, not at every try: our own lines are entries as well.
    if (!std::exchange(away_, true)) log::warning("the collector takes no entries", {{"reason", answer.problem}});
    if (!stopping_) {
      milliseconds delay =
          std::max<milliseconds>(backoff_.next(), std::min<milliseconds>(answer.retry_after, longest_pause));
      if (wait_for(stop_fd_, -1, delay)) begin_farewell();
      return true;
    }
    wait_for(-1, -1, farewell_pause);
    return !is_over();
  }

  const Options& options_;
  const Send& send_;
  int stop_fd_;
  JournalReader reader_;
  Backoff backoff_{first_pause, longest_pause, random_share};
  bool stopping_ = false;
  bool away_ = false;
  SteadyTime deadline_;
};

}  // namespace

Result<void> forward(const Options& options, const Send& send, int stop_fd) {
  const std::optional<Position> position = TRY(load_position(options.position_path));
  return Run(options, send, stop_fd, TRY(JournalReader::open(options.journal, position))).until_stopped();
}

}  // namespace hive::forwarder
