#include "gateway/audit/log.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/strings.h"
#include "crypto/signed_note.h"
#include "gateway/audit/batch.h"
#include "gateway/audit/entry.h"
#include "gateway/audit/recovery.h"

namespace hive::audit {

namespace {

class FileLog final : public Log {
 public:
  FileLog(LogOptions options, BatchWriter writer) : options_(std::move(options)), writer_(std::move(writer)) {}

  ~FileLog() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  // Writes the first checkpoint of a new log or tells of a repair, then starts the writer.
  Result<void> start(const RecoveredLog& recovered, bool is_new) {
    recovery_.repaired_bytes = recovered.torn_bytes;
    recovery_.torn_path = recovered.torn_path;
    if (recovered.torn_bytes > 0) {
      queue_event(
          "log_recovered", "torn_tail",
          fmt::format("{} bytes with {} complete entries behind the last checkpoint, which nobody had been told "
                      "of, were moved to {}",
                      recovered.torn_bytes, recovered.torn_entries, recovered.torn_path));
    }
    if (is_new || !queue_.empty()) {
      TRY(writer_.write(queue_, options_.clock->wall_now(), true));
      queue_.clear();
      written_total_ = queued_total_;
    }
    last_checkpoint_ = last_ssh_signature_ = std::chrono::steady_clock::now();
    size_ = recovery_.entries = writer_.size();
    thread_ = std::thread([this] { run(); });
    return {};
  }

  Result<void> append(Record record, OnDurable on_durable) override {
    thread_local std::string body;
    body.clear();
    append_entry_body(body, record, options_.clock->wall_now(), options_.max_arguments_bytes);
    bool notify = false;
    {
      std::lock_guard lock(mutex_);
      // What has run must be recordable: the last of the room is kept for the outcomes of calls whose intent is on
      // disk.
      bool ends_an_intent = record.kind == RecordKind::outcome && record.tier != "read";
      TRY(check_room(body.size(), ends_an_intent));
      bool is_intent = record.kind == RecordKind::intent;
      if (is_intent && on_durable) TRY(check_worth_a_try());
      bool crowded =
          queue_.entries() >= options_.max_queued_entries / 2 || queue_.bytes() >= options_.max_queued_bytes / 2;
      bool urgent = on_durable || (crowded && !failure_);
      if (queue_.empty()) first_queued_ = std::chrono::steady_clock::now();
      queue_.push(body, is_intent, std::move(on_durable));
      ++queued_total_;
      urgent_ |= urgent;
      notify = asleep_ && (urgent || first_queued_ + options_.max_delay < sleeps_until_);
      if (notify) asleep_ = false;  // one wake-up is enough for everybody who comes before the writer runs
    }
    if (notify) wake_.notify_one();
    constexpr size_t kept_bytes = size_t{256} << 10;
    if (body.capacity() > kept_bytes) body = std::string();
    return {};
  }

  Result<void> flush() override {
    std::unique_lock lock(mutex_);
    std::uint64_t target = queued_total_;
    std::uint64_t failures = failed_writes_;
    if (written_total_ >= target) return {};
    urgent_ = true;
    asleep_ = false;
    wake_.notify_one();
    written_.wait(lock, [&] { return written_total_ >= target || failed_writes_ != failures; });
    if (written_total_ >= target || !failure_) return {};
    return std::unexpected(*failure_);
  }

  Result<void> health() const override {
    std::lock_guard lock(mutex_);
    if (failure_) return std::unexpected(*failure_);
    return {};
  }

  const RecoveryReport& recovery() const override { return recovery_; }
  std::uint64_t size() const override { return size_.load(); }

 private:
  using Time = std::chrono::steady_clock::time_point;

  void queue_event(std::string action, std::string reason, std::string detail) {
    Record record;
    record.kind = RecordKind::event;
    record.surface = "system";
    record.action = std::move(action);
    record.reason = std::move(reason);
    record.detail = std::move(detail);
    std::string body;
    append_entry_body(body, record, options_.clock->wall_now(), options_.max_arguments_bytes);
    queue_.push(body, false, nullptr);
    ++queued_total_;
  }

  // Needs the lock.
  Result<void> check_room(size_t body_bytes, bool may_use_reserve) {
    size_t max_entries = options_.max_queued_entries;
    size_t max_bytes = options_.max_queued_bytes;
    if (!may_use_reserve) {
      max_entries -= max_entries / 8;
      max_bytes -= max_bytes / 8;
    }
    if (queue_.entries() + writing_entries_ < max_entries &&
        queue_.bytes() + writing_bytes_ + body_bytes <= max_bytes) {
      return {};
    }
    ++refused_since_failure_;
    if (!failure_) return fail(ErrorCode::resource_exhausted, "the queue of the audit log is full");
    return fail(ErrorCode::resource_exhausted, "the audit log cannot be written and its queue is full: {}",
                failure_->message);
  }

  // While writing fails, a queue of many megabytes would be hashed and written in vain for each caller. Needs the lock.
  Result<void> check_worth_a_try() const {
    if (!failure_ || std::chrono::steady_clock::now() >= earliest_retry()) return {};
    return std::unexpected(*failure_);
  }

  // However many callers ask. Needs the lock.
  Time earliest_retry() const { return last_attempt_ + options_.retry_interval / 10; }

  // When the writer has something to do if nothing new comes. Needs the lock.
  Time next_deadline() const {
    if (failure_) return urgent_ ? earliest_retry() : last_attempt_ + options_.retry_interval;
    if (urgent_) return Time::min();
    Time deadline = last_checkpoint_ + options_.idle_checkpoint;
    if (last_ssh_signature_ < last_checkpoint_) {
      deadline = std::min(deadline, last_checkpoint_ + options_.ssh_signature_interval);
    }
    if (!queue_.empty()) deadline = std::min(deadline, first_queued_ + options_.max_delay);
    return deadline;
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      while (!stopping_ && std::chrono::steady_clock::now() < next_deadline()) {
        asleep_ = true;
        sleeps_until_ = next_deadline();
        wake_.wait_until(lock, sleeps_until_);
        asleep_ = false;
      }
      urgent_ = false;
      if (stopping_) {
        write_last_batches(lock);
        return;
      }
      write_batch(lock);
    }
  }

  void write_last_batches(std::unique_lock<std::mutex>& lock) {
    // The batch that ends a failure adds an entry about it, which makes one more.
    while (!queue_.empty() || last_ssh_signature_ < last_checkpoint_ || failure_) {
      std::uint64_t failures = failed_writes_;
      write_batch(lock);
      if (failed_writes_ == failures) continue;
      log::error("audit entries are lost at shutdown", {{"entries", queue_.entries()}});
      return;
    }
  }

  void write_batch(std::unique_lock<std::mutex>& lock) {
    std::swap(queue_, writing_);
    writing_entries_ = writing_.entries();
    writing_bytes_ = writing_.bytes();
    bool ssh_signature_wanted = writing_.empty() || stopping_;
    lock.unlock();
    Time now = std::chrono::steady_clock::now();
    // Signing twice costs as much as half a sync, so a busy log does it once in a while; a quiet one always.
    bool ssh_signature = ssh_signature_wanted || now - last_ssh_signature_ >= options_.ssh_signature_interval;
    Result<void> written = writer_.write(writing_, options_.clock->wall_now(), ssh_signature);
    if (written) {
      last_checkpoint_ = now;
      if (ssh_signature) last_ssh_signature_ = now;
    }
    lock.lock();
    last_attempt_ = std::chrono::steady_clock::now();
    // Whoever is called back may ask for the health or the size: both must already say what the callback says.
    std::uint64_t settled = written ? finish_batch(lock) : give_up_batch(lock, written.error());
    written_total_ += settled;
    written_.notify_all();
  }

  // Returns how many entries are settled now. Needs the lock, and lets it go for the callbacks.
  std::uint64_t finish_batch(std::unique_lock<std::mutex>& lock) {
    std::uint64_t seq = size_;
    size_ = writer_.size();
    note_success();
    writing_entries_ = 0;
    writing_bytes_ = 0;
    lock.unlock();
    for (WriterQueue::Item& item : writing_.items()) {
      if (item.on_durable) item.on_durable(seq);
      ++seq;
    }
    std::uint64_t settled = writing_.entries();
    writing_.clear();
    lock.lock();
    return settled;
  }

  // Everybody who waits is told; intents are withdrawn, the rest goes back in front of what came meanwhile.
  std::uint64_t give_up_batch(std::unique_lock<std::mutex>& lock, const Error& error) {
    std::vector<OnDurable> waiting = writing_.give_up_waiting();
    std::uint64_t withdrawn = writing_entries_ - writing_.entries();
    note_failure(error, withdrawn);
    writing_.append(std::move(queue_));
    queue_ = std::exchange(writing_, WriterQueue());
    writing_entries_ = 0;
    writing_bytes_ = 0;
    lock.unlock();
    for (OnDurable& on_durable : waiting)
      on_durable(std::unexpected(error));
    lock.lock();
    return withdrawn;
  }

  // Needs the lock.
  void note_success() {
    if (!failure_) return;
    log::info("the audit log can be written again");
    if (queue_.empty()) first_queued_ = std::chrono::steady_clock::now();
    queue_event("log_write_resumed", "write_failed",
                fmt::format("writing failed {} times: {}; {} calls were not begun because of it, {} entries found no "
                            "room in the queue",
                            failed_writes_ - failures_before_, failure_->message, withdrawn_, refused_since_failure_));
    failure_.reset();
  }

  // Needs the lock.
  void note_failure(const Error& error, std::uint64_t withdrawn) {
    if (failure_ != error) log::error("the audit log cannot be written", {{"reason", error.message}});
    if (!failure_) {
      failures_before_ = failed_writes_;
      withdrawn_ = 0;
      refused_since_failure_ = 0;
    }
    failure_ = error;
    ++failed_writes_;
    withdrawn_ += withdrawn;
  }

  const LogOptions options_;
  RecoveryReport recovery_;

  // The writer's own, used without the lock.
  BatchWriter writer_;
  WriterQueue writing_;
  Time last_checkpoint_;
  Time last_ssh_signature_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;     // for the writer
  std::condition_variable written_;  // for flush()
  WriterQueue queue_;
  size_t writing_entries_ = 0;  // of the batch being written; they count against the limits
  size_t writing_bytes_ = 0;
  std::uint64_t queued_total_ = 0;
  std::uint64_t written_total_ = 0;  // also those given up
  std::uint64_t failed_writes_ = 0;
  std::uint64_t failures_before_ = 0;
  std::uint64_t withdrawn_ = 0;
  std::uint64_t refused_since_failure_ = 0;
  std::optional<Error> failure_;
  bool urgent_ = false;
  bool stopping_ = false;
  bool asleep_ = false;
  Time sleeps_until_;
  Time first_queued_;
  Time last_attempt_;

  std::atomic<std::uint64_t> size_ = 0;
  std::thread thread_;
};

Result<void> check_options(const LogOptions& options) {
  if (options.path.empty()) return fail(ErrorCode::invalid_argument, "the path of the audit log is empty");
  if (!crypto::is_note_key_name(options.origin)) {
    return fail(ErrorCode::invalid_argument,
                "origin {} of the audit log must be 1 to 200 visible ASCII characters without space and \"+\"",
                quote(options.origin));
  }
  if (options.max_queued_entries == 0) {
    return fail(ErrorCode::invalid_argument, "the queue of the audit log must hold at least one entry");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Log>> Log::open(LogOptions options, crypto::PrivateKey key) {
  TRY(check_options(options));
  LogFile file = TRY(LogFile::open(options.path));
  bool is_new = file.size() == 0;
  RecoveredLog recovered = TRY(recover_log(file, options.path, options.origin, key.public_key()));
  BatchWriter writer(std::move(file), recovered.tree, options.origin, std::move(key));
  auto log = std::make_unique<FileLog>(std::move(options), std::move(writer));
  TRY(log->start(recovered, is_new));
  return log;
}

}  // namespace hive::audit
