#include "exec/runner.h"

#include <atomic>
#include <csignal>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "runner_fixture.h"

namespace hive::exec {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

size_t zombies() {
  return static_cast<size_t>(
      std::ranges::count_if(own_children(), [](const auto& child) { return child.is_zombie(); }));
}

pid_t pid_from(const std::string& path) {
  eventually([&] { return read_text(path).ends_with('\n'); });
  return static_cast<pid_t>(parse_int64(trim(read_text(path))).value_or(-1));
}

TEST_F(RunnerTest, ReturnsOutputAndExitCode) {
  CommandResult result = run(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(result.ending, Ending::exited);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.signal, std::nullopt);
  EXPECT_EQ(result.output.head, "out\nerr\n");
  EXPECT_EQ(result.force, Force::none);
  EXPECT_EQ(result.leftovers_killed, 0U);
}

TEST_F(RunnerTest, PassesArgumentsLiterally) {
  CommandResult result = run(program({"echo", "$(whoami)", ";", "a  b", "*"}));
  EXPECT_EQ(result.output.head, "$(whoami) ; a  b *\n");
}

TEST_F(RunnerTest, PassesEveryExitCodeOnUnchanged) {
  for (int code : {0, 1, 127, 137, 194, 255}) {
    CommandResult result = run(shell("exit " + std::to_string(code)));
    EXPECT_EQ(result.ending, Ending::exited);
    EXPECT_EQ(result.exit_code, code);
  }
}

TEST_F(RunnerTest, TellsASignalFromAnExitCode) {
  CommandResult result = run(shell("kill -9 $$"));
  EXPECT_EQ(result.ending, Ending::signalled);
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_EQ(result.exit_code, std::nullopt);
}

TEST_F(RunnerTest, GivesACleanSetting) {
  CommandResult result =
      run(shell("pwd; readlink /proc/self/fd/0; umask; env | sort; ls /proc/self/fd | wc -l; "
                "grep -E '^Sig(Blk|Ign)' /proc/self/status; tty"));
  // ls has its own descriptor for the folder beside the three standard ones; what the shell ignores is its own matter.
  EXPECT_THAT(result.output.head, testing::StartsWith("/\n/dev/null\n0022\nPATH=" + std::string(fixed_path)));
  EXPECT_THAT(result.output.head, testing::HasSubstr("\n4\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"));
  EXPECT_THAT(result.output.head, testing::HasSubstr("not a tty"));
}

TEST_F(RunnerTest, IgnoredSignalsOfTheAgentAreNotInherited) {
  auto old = std::signal(SIGPIPE, SIG_IGN);
  CommandResult result = run(shell("grep SigIgn /proc/self/status"));
  std::signal(SIGPIPE, old);
  EXPECT_EQ(result.output.head, "SigIgn:\t0000000000000000\n");
}

TEST_F(RunnerTest, ReadsBothStreamsAtOnce) {
  CommandResult result =
      run(shell("head -c 1048576 /dev/zero | tr '\\0' e >&2; head -c 1048576 /dev/zero | tr '\\0' o"));
  EXPECT_EQ(result.ending, Ending::exited);
  EXPECT_EQ(result.output.total_bytes, 2U << 20);
}

TEST_F(RunnerTest, KeepsMemoryBoundedWhateverIsPrinted) {
  Command command = program({"head", "-c", "1000000000", "/dev/zero"});
  command.max_output_bytes = 10'000;
  CommandResult result = run(std::move(command));
  EXPECT_EQ(result.ending, Ending::exited);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output.total_bytes, 1'000'000'000U);
  EXPECT_EQ(result.output.head.size() + result.output.tail.size(), 10'000U);
  EXPECT_EQ(result.output.omitted_bytes, 999'990'000U);
}

TEST_F(RunnerTest, AFloodDoesNotHoldUpOtherCommands) {
  auto flood = start(shell("exec cat /dev/zero", seconds(3)));
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(run(program({"echo", "hello"})).output.head, "hello\n");
  EXPECT_EQ(flood.wait_for(seconds(0)), std::future_status::timeout);
  EXPECT_EQ(flood.get().ending, Ending::timed_out);
}

// With SIGCHLD ignored, as a careless parent may hand it down, the kernel throws exit statuses away.
TEST_F(RunnerTest, ACommandWhoseStatusIsLostHasEndedAllTheSame) {
  make_runner();
  auto before = ::signal(SIGCHLD, SIG_IGN);
  CommandResult result = run(shell("echo said", std::chrono::seconds(20)));
  ::signal(SIGCHLD, before);
  EXPECT_EQ(result.ending, Ending::unknown);
  EXPECT_FALSE(result.exit_code);
  EXPECT_FALSE(result.signal);
  EXPECT_THAT(result.problem, testing::StartsWith("exit status unknown"));
  EXPECT_EQ(result.output.head, "said\n");
  EXPECT_LT(result.duration, std::chrono::seconds(15));
  EXPECT_EQ(run(shell("exit 3")).exit_code, 3);
}

TEST_F(RunnerTest, EndsACommandAtItsDeadline) {
  CommandResult result = run(shell("echo before; sleep 600; echo after", milliseconds(200)));
  EXPECT_EQ(result.ending, Ending::timed_out);
  EXPECT_EQ(result.force, Force::terminate);
  EXPECT_EQ(result.output.head, "before\n");
  EXPECT_LT(result.duration, seconds(60));
}

TEST_F(RunnerTest, ATrapRunsBeforeTheEnd) {
  CommandResult result = run(shell("trap 'echo undone; exit 0' TERM; echo ready; sleep 600 & wait", milliseconds(300)));
  EXPECT_EQ(result.ending, Ending::timed_out);
  EXPECT_EQ(result.force, Force::terminate);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output.head, testing::HasSubstr("undone"));
}

TEST_F(RunnerTest, KillsWhatIgnoresSigterm) {
  std::string pids = folder_ / "pids";
  CommandResult result = run(shell("trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > " + pids +
                                       "; while :; do sleep 1; done' & while :; do sleep 1; done",
                                   milliseconds(400)));
  EXPECT_EQ(result.ending, Ending::timed_out);
  EXPECT_EQ(result.force, Force::kill);
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_FALSE(lives(pid_from(pids)));
}

TEST_F(RunnerTest, KillsGrandchildrenInOtherProcessGroupsOfTheSession) {
  std::string pids = folder_ / "pid";
  // dash has no job control without a terminal.
  Command command =
      program({"bash", "-c", "set -m; (trap '' TERM; while :; do sleep 1; done) & echo $! > " + pids + "; wait"});
  command.timeout = milliseconds(400);
  CommandResult result = run(std::move(command));
  EXPECT_EQ(result.ending, Ending::timed_out);
  EXPECT_FALSE(lives(pid_from(pids)));
}

TEST_F(RunnerTest, WakesAStoppedCommandToEndIt) {
  CommandResult result = run(shell("kill -STOP $$; echo woken", milliseconds(200)));
  EXPECT_EQ(result.ending, Ending::timed_out);
  EXPECT_EQ(result.force, Force::terminate);
}

TEST_F(RunnerTest, ABackgroundChildThatHoldsTheOutputDoesNotHoldTheCall) {
  CommandResult result = run(shell("sleep 600 & echo $!"));
  EXPECT_EQ(result.ending, Ending::exited);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_LT(result.duration, seconds(60));
  EXPECT_EQ(result.leftovers_killed, 1U);
  EXPECT_FALSE(lives(static_cast<pid_t>(parse_int64(trim(result.output.head)).value())));
}

TEST_F(RunnerTest, ABackgroundChildThatLetGoOfTheOutputIsKilledToo) {
  CommandResult result = run(shell("sleep 600 >/dev/null 2>&1 & echo $!"));
  EXPECT_EQ(result.leftovers_killed, 1U);
  EXPECT_FALSE(lives(static_cast<pid_t>(parse_int64(trim(result.output.head)).value())));
}

TEST_F(RunnerTest, ABackgroundJobWithItsOwnGroupIsKilledToo) {
  CommandResult result = run(program({"bash", "-c", "set -m; sleep 600 >/dev/null 2>&1 & echo $!"}));
  EXPECT_EQ(result.leftovers_killed, 1U);
  EXPECT_FALSE(lives(static_cast<pid_t>(parse_int64(trim(result.output.head)).value())));
}

TEST_F(RunnerTest, ASessionOfItsOwnThatStillHoldsTheOutputIsNotDetached) {
  std::string pids = folder_ / "pid";
  CommandResult result =
      run(shell("setsid sh -c 'echo $$ > " + pids + "; exec sleep 600' & while [ ! -s " + pids + " ]; do :; done"));
  EXPECT_EQ(result.ending, Ending::exited);
  EXPECT_LT(result.duration, seconds(60));
  EXPECT_EQ(result.leftovers_killed, 1U);
  EXPECT_FALSE(lives(pid_from(pids)));
}

TEST_F(RunnerTest, ADetachedProcessOutlivesTheCallOnPurpose) {
  std::string pids = folder_ / "pid";
  CommandResult result =
      run(shell("setsid nohup sh -c 'echo $$ > " + pids +
                "; exec sleep 600' >/dev/null 2>&1 </dev/null & while [ ! -s " + pids + " ]; do :; done"));
  EXPECT_EQ(result.ending, Ending::exited);
  EXPECT_EQ(result.leftovers_killed, 0U);
  pid_t detached = pid_from(pids);
  ASSERT_TRUE(lives(detached));
  ::kill(detached, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !read_process(detached); })) << "the adopted process is not reaped";
}

TEST_F(RunnerTest, ADetachedProcessOutlivesTheEndOfItsCallByForce) {
  std::string pids = folder_ / "pid";
  CommandResult result = run(
      shell("setsid sh -c 'echo $$ > " + pids + "; exec sleep 600' >/dev/null 2>&1 & sleep 600", milliseconds(500)));
  EXPECT_EQ(result.ending, Ending::timed_out);
  pid_t detached = pid_from(pids);
  EXPECT_TRUE(lives(detached));
  ::kill(detached, SIGKILL);
  EXPECT_TRUE(eventually([&] { return !read_process(detached); }));
}

TEST_F(RunnerTest, CancelEndsTheWholeTree) {
  std::string pids = folder_ / "pid";
  auto future = start(shell("sleep 600 & echo $! > " + pids + "; wait"));
  pid_t child = pid_from(pids);
  ASSERT_TRUE(lives(child));
  auto begin = std::chrono::steady_clock::now();
  cancel_last();
  CommandResult result = future.get();
  EXPECT_EQ(result.ending, Ending::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(60));
  EXPECT_FALSE(lives(child));
}

TEST_F(RunnerTest, CancelBeforeTheStartIsNotLost) {
  make_runner();
  std::promise<CommandResult> promise;
  on_worker([&] {
    auto running =
        runner_->run(shell("sleep 600"), {}, [&](CommandResult result) { promise.set_value(std::move(result)); });
    running->cancel();
    running->cancel();
  });
  EXPECT_EQ(promise.get_future().get().ending, Ending::cancelled);
}

TEST_F(RunnerTest, SaysWhyAProgramCannotBeStarted) {
  folder_.write("no-interpreter", "#!/no/such/interpreter\n", 0755);
  folder_.write("not-a-program", std::string("\x01\x02\x03\x04", 4), 0755);
  folder_.write("not-executable", "#!/bin/sh\n", 0644);
  std::string busy = folder_.write("busy", "", 0755);
  std::filesystem::copy_file("/bin/true", busy, std::filesystem::copy_options::overwrite_existing);
  auto problem = [&](const std::string& path, std::vector<std::string> args = {}) {
    Command command;
    command.path = path;
    command.argv = {path};
    command.argv.insert(command.argv.end(), args.begin(), args.end());
    CommandResult result = run(std::move(command));
    EXPECT_EQ(result.ending, Ending::not_started);
    return result.problem;
  };
  EXPECT_THAT(problem(folder_ / "missing"), testing::HasSubstr("does not exist any more"));
  EXPECT_THAT(problem(folder_ / "no-interpreter"), testing::HasSubstr("interpreter or loader that is not installed"));
  EXPECT_THAT(problem(folder_ / "not-a-program"), testing::HasSubstr("is not a program of this machine"));
  EXPECT_THAT(problem(folder_ / "not-executable"), testing::HasSubstr("permission denied"));
  EXPECT_THAT(problem(folder_.path()), testing::HasSubstr("is a folder"));
  EXPECT_THAT(problem("/bin/true", std::vector<std::string>(40, std::string(120'000, 'x'))),
              testing::HasSubstr("ARG_MAX"));
  EXPECT_THAT(problem("/bin/true", {std::string("a\0b", 3)}), testing::HasSubstr("NUL"));
  UniqueFd writer(::open(busy.c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_THAT(problem(busy), testing::HasSubstr("open for writing"));
}

TEST_F(RunnerTest, RunsAsAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can run commands as somebody else";
  Command command = shell("id -u; id -g; id -G");
  command.run_as = Credentials{.uid = 65534, .gid = 65534, .groups = {65534}};
  EXPECT_EQ(run(std::move(command)).output.head, "65534\n65534\n65534\n");
}

TEST_F(RunnerTest, SendsOutputWhileTheCommandRuns) {
  std::promise<std::string> first;
  std::atomic<bool> told = false;
  auto future = start(shell("printf 'a\\342\\202'; sleep 0.3; printf '\\254b'; sleep 600"),
                      [&, text = std::string()](std::string_view piece, std::uint64_t) mutable {
                        text += piece;
                        if (text.ends_with('b') && !told.exchange(true)) first.set_value(text);
                      });
  EXPECT_EQ(first.get_future().get(),
            "a\xe2\x82\xac"
            "b");
  cancel_last();
  EXPECT_EQ(future.get().ending, Ending::cancelled);
}

TEST_F(RunnerTest, ProgressOfAFloodIsBounded) {
  std::atomic<size_t> bytes = 0;
  std::atomic<size_t> pieces = 0;
  auto future = start(shell("exec yes", milliseconds(1000)), [&](std::string_view piece, std::uint64_t) {
    bytes += piece.size();
    ++pieces;
  });
  CommandResult result = future.get();
  EXPECT_GT(pieces, 0U);
  EXPECT_LE(pieces, 16U);
  EXPECT_LT(bytes, pieces * 20'000);
  EXPECT_GT(result.output.total_bytes, bytes.load());
}

TEST_F(RunnerTest, AHundredCommandsRunAtOnce) {
  std::vector<std::future<CommandResult>> futures;
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i)
    futures.push_back(start(shell("sleep 0.5; echo " + std::to_string(i))));
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(futures[static_cast<size_t>(i)].get().output.head, std::to_string(i) + "\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
}

TEST_F(RunnerTest, AThousandRunsLeaveNothingBehind) {
  run(program({"true"}));
  size_t before = open_descriptors();
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(run(program({"true"})).exit_code, 0);
  on_worker([] {});
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(zombies(), 0U);
  on_worker([this] { EXPECT_EQ(runner_->running(), 0U); });
}

TEST_F(RunnerTest, OrphansThatEndAreReaped) {
  CommandResult result = run(shell("for i in 1 2 3 4 5; do setsid sleep 0.05 >/dev/null 2>&1 & done"));
  EXPECT_EQ(result.ending, Ending::exited);
  EXPECT_TRUE(eventually([] { return own_children().empty(); }));
}

TEST_F(RunnerTest, TheEndOfTheRunnerKillsWhatRuns) {
  std::string pids = folder_ / "pid";
  auto future = start(shell("trap '' TERM; echo $$ > " + pids + "; while :; do sleep 1; done"));
  pid_t pid = pid_from(pids);
  last_.reset();
  on_worker([this] { runner_.reset(); });
  // At once, or as soon as the pool has reported the start.
  EXPECT_TRUE(eventually([&] { return !lives(pid); }));
  EXPECT_THROW(future.get(), std::future_error) << "no result may come any more";
}

}  // namespace
}  // namespace hive::exec
