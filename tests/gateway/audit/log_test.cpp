#include "gateway/audit/log.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <latch>
#include <set>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/audit/entry.h"
#include "gateway/audit/support.h"
#include "gateway/audit/verifier.h"

namespace hive::audit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

class AuditLog : public LogTest {
 protected:
  VerifyReport verify() {
    VerifyOptions options;
    options.key = key_.public_key();
    options.every_signature = true;
    options.patience = 5s;
    auto report = verify_log(options_.path, std::move(options));
    EXPECT_TRUE(report) << report.error().message;
    return report.value_or(VerifyReport{});
  }

  void expect_good(std::uint64_t entries) {
    VerifyReport report = verify();
    EXPECT_TRUE(report.good()) << report.failure->reason;
    EXPECT_EQ(report.entries, entries);
  }

  // Appends until one works, as callers of a log that recovers do.
  bool append_when_possible(Log& log) {
    auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!append_and_wait(log, record("step"))) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  // Waits until the file has the given number of checkpoints.
  bool await_checkpoints(std::uint64_t count) {
    auto deadline = std::chrono::steady_clock::now() + 10s;
    while (verify().checkpoints < count) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
};

TEST_F(AuditLog, ANewLogBeginsWithASignedCheckpointOfNothing) {
  auto log = open_good();
  ASSERT_TRUE(log);
  EXPECT_EQ(log->size(), 0u);
  struct stat status{};
  ASSERT_EQ(::stat(options_.path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  expect_good(0);
}

TEST_F(AuditLog, AnAcknowledgedEntryIsOnDiskUnderASignature) {
  auto log = open_good();
  ASSERT_TRUE(log);
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(append_and_wait(*log, record("step")), i);
    expect_good(i + 1);
    EXPECT_EQ(log->size(), i + 1);
  }
}

TEST_F(AuditLog, AnEntryThatNobodyWaitsForIsWrittenSoon) {
  auto log = open_good();
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->append(record("step")));
  EXPECT_TRUE(await_checkpoints(2));
  expect_good(1);
}

TEST_F(AuditLog, FlushWaitsForEverythingQueued) {
  options_.max_delay = 1h;
  auto log = open_good();
  ASSERT_TRUE(log);
  EXPECT_TRUE(log->flush());
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(log->append(record("step")));
  EXPECT_TRUE(log->flush());
  EXPECT_EQ(log->size(), 100u);
  expect_good(100);
}

TEST_F(AuditLog, ClosingWritesWhatIsQueuedAndEndsInAnSshSignature) {
  options_.max_delay = 1h;
  {
    auto log = open_good();
    ASSERT_TRUE(log);
    ASSERT_TRUE(append_and_wait(*log, record("step")));
    ASSERT_TRUE(log->append(record("last")));
  }
  expect_good(2);
  EXPECT_THAT(lines().back(), HasSubstr("\"sshsig\""));
}

TEST_F(AuditLog, AQuietLogSoonEndsInAnSshSignature) {
  options_.ssh_signature_interval = 20ms;
  auto log = open_good();
  ASSERT_TRUE(log);
  ASSERT_TRUE(append_and_wait(*log, record("step")));
  auto deadline = std::chrono::steady_clock::now() + 10s;
  while (lines().back().find("\"sshsig\"") == std::string::npos && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_THAT(lines().back(), HasSubstr("\"sshsig\""));
  expect_good(1);
}

// Row 158.
TEST_F(AuditLog, AnIdleLogStillIssuesCheckpoints) {
  options_.idle_checkpoint = 5ms;
  auto log = open_good();
  ASSERT_TRUE(log);
  EXPECT_TRUE(await_checkpoints(4));
  expect_good(0);
}

TEST_F(AuditLog, GoesOnWhereItEnded) {
  write_batches(3);
  {
    auto log = open_good();
    ASSERT_TRUE(log);
    EXPECT_EQ(log->size(), 3u);
    EXPECT_EQ(log->recovery().entries, 3u);
    EXPECT_EQ(log->recovery().repaired_bytes, 0u);
    EXPECT_EQ(append_and_wait(*log, record("step")), 3u);
  }
  expect_good(4);
}

// Row 151, and group commit: many share one checkpoint.
TEST_F(AuditLog, SixtyFourThreadsMakeOneLinearLog) {
  constexpr int threads = 64;
  constexpr int each = 50;
  std::atomic<int> durable = 0;
  {
    auto log = open_good();
    ASSERT_TRUE(log);
    std::latch start(threads);
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        start.arrive_and_wait();
        for (int i = 0; i < each; ++i) {
          if (i % 2 == 0) {
            EXPECT_TRUE(append_and_wait(*log, record("step", fmt::format("{}-{}", t, i))));
            ++durable;
          } else {
            EXPECT_TRUE(log->append(record("step", fmt::format("{}-{}", t, i))));
          }
        }
      });
    }
    workers.clear();
    EXPECT_TRUE(log->flush());
  }
  EXPECT_EQ(durable, threads * each / 2);
  expect_good(threads * each);
  std::set<std::string> seen;
  for (const std::string& line : lines()) {
    auto entry = EntryView::parse(line);
    if (entry) seen.insert(entry->text(Field::call_id));
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(threads * each));
  EXPECT_LT(verify().checkpoints, static_cast<std::uint64_t>(threads * each / 2));
}

TEST_F(AuditLog, EntriesOfOneThreadKeepTheirOrder) {
  auto log = open_good();
  ASSERT_TRUE(log);
  std::vector<std::uint64_t> seqs;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(log->append(record("step", std::to_string(i)),
                            [&seqs](Result<std::uint64_t> seq) { seqs.push_back(seq.value()); }));
  }
  ASSERT_TRUE(log->flush());
  ASSERT_EQ(seqs.size(), 1000u);
  for (std::uint64_t i = 0; i < 1000; ++i)
    EXPECT_EQ(seqs[i], i);
}

TEST_F(AuditLog, ACallbackMayAppend) {
  auto log = open_good();
  ASSERT_TRUE(log);
  std::promise<Result<std::uint64_t>> second;
  ASSERT_TRUE(log->append(record("first"), [&](Result<std::uint64_t>) {
    EXPECT_TRUE(log->append(record("second"), [&](Result<std::uint64_t> seq) { second.set_value(std::move(seq)); }));
  }));
  EXPECT_EQ(second.get_future().get(), 1u);
}

TEST_F(AuditLog, ASecondOpenInTheSameProcessIsRefused) {
  auto log = open_good();
  ASSERT_TRUE(log);
  auto second = open();
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr(options_.path));
  EXPECT_THAT(second.error().message, HasSubstr(fmt::format("pid {}", ::getpid())));
}

// Row 151: another process, here the system's own flock(1).
TEST_F(AuditLog, ALogThatAnotherProcessHoldsIsRefusedByItsName) {
  write_batches(1);
  std::string fifo = folder_.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::string command =
      fmt::format("exec flock --no-fork -x '{}' sh -c 'echo ready; exec cat \"{}\"'", options_.path, fifo);
  std::FILE* holder = ::popen(command.c_str(), "r");
  ASSERT_NE(holder, nullptr);
  char line[16] = {};
  ASSERT_NE(std::fgets(line, sizeof line, holder), nullptr);

  auto refused = open();
  EXPECT_FALSE(refused);
  if (!refused) {
    EXPECT_EQ(refused.error().code, ErrorCode::already_exists);
    EXPECT_THAT(refused.error().message, HasSubstr("pid "));
  }
  int fd = ::open(fifo.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  ::close(fd);
  EXPECT_EQ(::pclose(holder), 0);
  EXPECT_TRUE(open());
}

TEST_F(AuditLog, AFullQueueRefusesAndKeepsWhatItHas) {
  options_.max_queued_entries = 4;
  options_.max_delay = 1h;
  auto log = open_good();
  ASSERT_TRUE(log);
  // The writer may take a batch at any time, so fill until it says no.
  std::uint64_t accepted = 0;
  Result<void> last;
  while (accepted < 1'000'000) {
    last = log->append(record("step"));
    if (!last) break;
    ++accepted;
  }
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, ErrorCode::resource_exhausted);
  ASSERT_TRUE(log->flush());
  EXPECT_EQ(log->size(), accepted);
  EXPECT_TRUE(append_and_wait(*log, record("after")));
}

TEST_F(AuditLog, TheQueueIsBoundedInBytes) {
  options_.max_queued_bytes = 100;
  auto log = open_good();
  ASSERT_TRUE(log);
  Record large = record("step");
  large.arguments = std::string(200, 'x');
  auto refused = log->append(large);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
}

TEST_F(AuditLog, OptionsThatCannotWorkAreRefused) {
  options_.origin = "two words";
  EXPECT_THAT(open().error().message, HasSubstr("origin"));
  options_.origin = test_origin;
  options_.path = "";
  EXPECT_FALSE(open());
  options_.path = folder_.path("missing/audit.log");
  EXPECT_THAT(open().error().message, HasSubstr("missing/audit.log"));
}

TEST_F(AuditLog, LooseModesLinksAndOtherKindsOfFilesAreRefused) {
  write_batches(1);
  ASSERT_EQ(::chmod(options_.path.c_str(), 0644), 0);
  EXPECT_THAT(open().error().message, HasSubstr("chmod 600"));
  ASSERT_EQ(::chmod(options_.path.c_str(), 0660), 0);
  EXPECT_FALSE(open());
  ASSERT_EQ(::chmod(options_.path.c_str(), 0640), 0);
  EXPECT_TRUE(open());
  std::string real = options_.path;
  options_.path = folder_.path("link");
  ASSERT_EQ(::symlink(real.c_str(), options_.path.c_str()), 0);
  EXPECT_THAT(open().error().message, HasSubstr("symbolic link"));
  options_.path = folder_.path("fifo");
  ASSERT_EQ(::mkfifo(options_.path.c_str(), 0600), 0);
  EXPECT_THAT(open().error().message, HasSubstr("not a regular file"));
}

TEST_F(AuditLog, MovedOrChangedUnderItsHandsItStopsInsteadOfWritingIntoNothing) {
  auto log = open_good();
  ASSERT_TRUE(log);
  ASSERT_TRUE(append_and_wait(*log, record("step")));
  std::string away = folder_.path("away");
  ASSERT_EQ(::rename(options_.path.c_str(), away.c_str()), 0);
  auto moved = append_and_wait(*log, record("step"));
  ASSERT_FALSE(moved);
  EXPECT_THAT(moved.error().message, HasSubstr("moved"));
  EXPECT_FALSE(log->health());
  ASSERT_EQ(::rename(away.c_str(), options_.path.c_str()), 0);
  EXPECT_TRUE(append_when_possible(*log));
  EXPECT_TRUE(log->health());

  ASSERT_EQ(::truncate(options_.path.c_str(), 10), 0);
  auto cut = append_and_wait(*log, record("step"));
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, HasSubstr("somebody else changed"));
}

// A file size limit stands in for a full disk: the kernel refuses a write in the middle in the same way.
class FullDisk : public AuditLog {
 protected:
  void SetUp() override {
    std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
  }
  void TearDown() override { ::setrlimit(RLIMIT_FSIZE, &before_); }
  void limit_to(size_t more_bytes) {
    rlimit limit = before_;
    limit.rlim_cur = content().size() + more_bytes;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  void unlimit() { ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0); }

  rlimit before_{};
};

// Row 155.
TEST_F(FullDisk, WaitersAreToldNothingHalfWrittenStaysAndItRecoversAlone) {
  options_.retry_interval = 20ms;
  auto log = open_good();
  ASSERT_TRUE(log);
  ASSERT_TRUE(append_and_wait(*log, record("before")));
  limit_to(100);
  auto failed = append_and_wait(*log, intent("lost"));
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr(options_.path));
  auto health = log->health();
  ASSERT_FALSE(health);
  EXPECT_THAT(health.error().message, HasSubstr(options_.path));
  EXPECT_EQ(log->size(), 1u);
  // What has happened is kept, whether somebody waits or not.
  ASSERT_TRUE(log->append(record("kept")));
  EXPECT_FALSE(append_and_wait(*log, outcome("told", protocol::Outcome::success)));
  EXPECT_FALSE(log->flush());
  expect_good(1);

  unlimit();
  auto deadline = std::chrono::steady_clock::now() + 10s;
  while (!log->health() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  ASSERT_TRUE(log->health());
  ASSERT_TRUE(log->flush());
  VerifyReport report = verify();
  EXPECT_TRUE(report.good());
  EXPECT_EQ(report.entries, 4u);
  EXPECT_EQ(report.intents_without_outcome, 0u);
  ASSERT_EQ(report.recoveries.size(), 1u);
  EXPECT_EQ(report.recoveries[0].action, "log_write_resumed");
  EXPECT_THAT(content(), AllOf(HasSubstr("\"kept\""), HasSubstr("\"told\""), Not(HasSubstr("\"lost\""))));
}

TEST_F(FullDisk, APileThatFindsNoRoomMeanwhileIsCountedInTheLog) {
  options_.retry_interval = 20ms;
  options_.max_queued_entries = 10;
  auto log = open_good();
  ASSERT_TRUE(log);
  limit_to(100);
  ASSERT_FALSE(append_and_wait(*log, record("first")));
  int refused = 0;
  for (int i = 0; i < 50; ++i)
    refused += log->append(record("pile")) ? 0 : 1;
  EXPECT_GE(refused, 40);
  unlimit();
  auto deadline = std::chrono::steady_clock::now() + 10s;
  while (!log->health() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  ASSERT_TRUE(log->flush());
  VerifyReport report = verify();
  ASSERT_EQ(report.recoveries.size(), 1u);
  EXPECT_THAT(report.recoveries[0].detail, HasSubstr(fmt::format("{} entries found no room", refused)));
}

TEST_F(FullDisk, EveryLengthOfAHalfWriteIsTakenBack) {
  options_.retry_interval = 5ms;
  auto log = open_good();
  ASSERT_TRUE(log);
  for (size_t room = 0; room < 300; room += 7) {
    limit_to(room);
    std::uint64_t good = log->size();
    EXPECT_FALSE(append_and_wait(*log, intent("half")));
    expect_good(good);
    unlimit();
    ASSERT_TRUE(append_when_possible(*log));
    ASSERT_TRUE(log->flush());
    expect_good(log->size());
  }
}

}  // namespace
}  // namespace hive::audit
