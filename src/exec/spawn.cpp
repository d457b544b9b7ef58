#include "exec/spawn.h"

#include <array>
#include <cerrno>
#include <memory>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strings.h"

// The child shares our memory until it has loaded its program (as with vfork), so sanitizers must not instrument it.
#define HIVE_CHILD_CODE __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

// ThreadSanitizer takes every clone() for a fork and marks its state, which we share with the child, as that of a
// forked process. The same function has a second name in glibc that it does not watch.
#if defined(__SANITIZE_THREAD__)
#define HIVE_UNWATCHED_CLONE
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HIVE_UNWATCHED_CLONE
#endif
#endif

#ifdef HIVE_UNWATCHED_CLONE
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);
constexpr auto& start_child = __clone;
#else
constexpr auto& start_child = clone;
#endif

namespace hive::exec {

namespace {

enum class Step { none, session, streams, credentials, folder, program };

struct ChildPlan {
  const char* path = nullptr;
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  int output_fd = -1;
  int error_fd = -1;
  int null_fd = -1;
  const Credentials* run_as = nullptr;
  const gid_t* groups = nullptr;
  size_t group_count = 0;
  int max_fds = 0;
  // Written by the child, read by us after it has gone its own way.
  volatile int error = 0;
  volatile Step step = Step::none;
};

// The layout the kernel expects, which differs from glibc's struct sigaction.
struct KernelSigaction {
  void (*handler)(int) = nullptr;
  unsigned long flags = 0;
  void (*restorer)() = nullptr;
  unsigned long mask = 0;
};

// Only raw system calls here: library functions may take locks or change state that the child shares with us.
HIVE_CHILD_CODE long call(long number, long a = 0, long b = 0, long c = 0, long d = 0) {
  return ::syscall(number, a, b, c, d);
}

HIVE_CHILD_CODE int child_fails(ChildPlan* plan, Step step) {
  plan->error = errno;
  plan->step = step;
  call(SYS_exit, 127);
  return 127;
}

HIVE_CHILD_CODE int child_main(void* argument) {
  auto* plan = static_cast<ChildPlan*>(argument);
  KernelSigaction default_action;
  for (int signal = 1; signal <= 64; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    call(SYS_rt_sigaction, signal, reinterpret_cast<long>(&default_action), 0, sizeof(default_action.mask));
  }
  if (call(SYS_setsid) < 0) return child_fails(plan, Step::session);
  call(SYS_prctl, PR_SET_PDEATHSIG, SIGTERM);
  if (call(SYS_dup3, plan->null_fd, 0, 0) < 0 || call(SYS_dup3, plan->output_fd, 1, 0) < 0 ||
      call(SYS_dup3, plan->error_fd, 2, 0) < 0) {
    return child_fails(plan, Step::streams);
  }
  if (call(SYS_close_range, 3, ~0U, 0) < 0) {
    for (int fd = 3; fd < plan->max_fds; ++fd)
      call(SYS_close, fd);
  }
  call(SYS_umask, 022);
  if (plan->run_as != nullptr) {
    // Raw calls change this thread alone, which is what we want: the thread is the child.
    if (call(SYS_setgroups, static_cast<long>(plan->group_count), reinterpret_cast<long>(plan->groups)) < 0 ||
        call(SYS_setresgid, plan->run_as->gid, plan->run_as->gid, plan->run_as->gid) < 0 ||
        call(SYS_setresuid, plan->run_as->uid, plan->run_as->uid, plan->run_as->uid) < 0) {
      return child_fails(plan, Step::credentials);
    }
    // A change of user clears it.
    call(SYS_prctl, PR_SET_PDEATHSIG, SIGTERM);
  }
  if (call(SYS_chdir, reinterpret_cast<long>("/")) < 0) return child_fails(plan, Step::folder);
  unsigned long no_signals = 0;
  call(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&no_signals), 0, sizeof(no_signals));
  call(SYS_execve, reinterpret_cast<long>(plan->path), reinterpret_cast<long>(plan->argv),
       reinterpret_cast<long>(plan->environment));
  return child_fails(plan, Step::program);
}

// The memory the child runs on until it has loaded its program: one piece a thread, kept, with a guard page below.
class ChildStack {
 public:
  static constexpr size_t guard_bytes = 4096;
  static constexpr size_t total_bytes = size_t{64} << 10;

  ChildStack() {
    void* memory = ::mmap(nullptr, total_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) return;
    ::mprotect(memory, guard_bytes, PROT_NONE);
    memory_ = memory;
  }
  ~ChildStack() {
    if (memory_ != nullptr) ::munmap(memory_, total_bytes);
  }
  ChildStack(const ChildStack&) = delete;
  ChildStack& operator=(const ChildStack&) = delete;

  [[nodiscard]] void* top() const { return memory_ == nullptr ? nullptr : static_cast<char*>(memory_) + total_bytes; }

 private:
  void* memory_ = nullptr;
};

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts)
    pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string explain_program_failure(int error, const std::string& path) {
  std::string name = quote(path);
  struct stat status{};
  bool exists = ::stat(path.c_str(), &status) == 0;
  switch (error) {
    case E2BIG:
      return "the arguments are longer than this system allows (ARG_MAX)";
    case ETXTBSY:
      return name + " is open for writing, so it cannot be started; wait until its installation has finished";
    case ENOEXEC:
      return name + " is not a program of this machine; a script needs a first line that starts with #!";
    case ENOENT:
    case ELIBBAD:
      if (exists) return name + " needs an interpreter or loader that is not installed";
      return name + " does not exist any more";
    case EACCES:
      if (exists && S_ISDIR(status.st_mode)) return name + " is a folder, not a program";
      if (exists && !S_ISREG(status.st_mode)) return name + " is not a regular file";
      return name + " may not be executed: permission denied, or its file system is mounted noexec";
    case EISDIR:
      return "the interpreter of " + name + " is a folder";
    default:
      return system_error(error, "start " + name).message;
  }
}

Error explain_failure(const ChildPlan& plan, const SpawnRequest& request) {
  int error = plan.error;
  switch (plan.step) {
    case Step::session:
      return system_error(error, "create a session");
    case Step::streams:
      return system_error(error, "connect the standard streams");
    case Step::credentials:
      return system_error(error, fmt::format("run as user id {}", request.run_as->uid));
    case Step::folder:
      return system_error(error, "change to the root folder");
    case Step::none:
    case Step::program:
      break;
  }
  return {ErrorCode::unavailable, explain_program_failure(error, request.path)};
}

}  // namespace

Result<Spawned> spawn(const SpawnRequest& request) {
  for (const std::string& argument : request.argv) {
    if (argument.find('\0') != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "an argument holds a NUL character");
    }
  }
  static thread_local const ChildStack stack;
  if (stack.top() == nullptr) return fail(ErrorCode::resource_exhausted, "no memory to start a process");
  std::vector<char*> argv = pointers_to(request.argv);
  std::vector<char*> environment = pointers_to(request.environment);
  ChildPlan plan;
  plan.path = request.path.c_str();
  plan.argv = argv.data();
  plan.environment = environment.data();
  plan.output_fd = request.output_fd;
  plan.error_fd = request.error_fd >= 0 ? request.error_fd : request.output_fd;
  plan.null_fd = request.null_fd;
  plan.max_fds = static_cast<int>(std::min<long>(::sysconf(_SC_OPEN_MAX), 1 << 20));
  if (request.run_as) {
    plan.run_as = &*request.run_as;
    plan.groups = request.run_as->groups.data();
    plan.group_count = request.run_as->groups.size();
  }

  // A handler of ours must not run in the child while it still shares our memory.
  sigset_t all_signals;
  sigset_t old_signals;
  ::sigfillset(&all_signals);
  ::pthread_sigmask(SIG_BLOCK, &all_signals, &old_signals);
  int pidfd = -1;
  pid_t pid = start_child(child_main, stack.top(), CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &plan, &pidfd);
  int clone_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &old_signals, nullptr);

  if (pid < 0) {
    if (clone_error == EAGAIN || clone_error == ENOMEM) {
      return fail(ErrorCode::resource_exhausted, "no more processes can be started now: {}",
                  system_error(clone_error, "clone").message);
    }
    return std::unexpected(system_error(clone_error, "clone"));
  }
  Spawned child{.pid = pid, .pidfd = UniqueFd(pidfd)};
  if (plan.step != Step::none) {
    siginfo_t ignored{};
    while (::waitid(P_PID, static_cast<id_t>(pid), &ignored, WEXITED) < 0 && errno == EINTR) {
    }
    return std::unexpected(explain_failure(plan, request));
  }
  return child;
}

Result<void> become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0) return std::unexpected(system_error(errno, "become subreaper"));
  return {};
}

Result<UniqueFd> above_standard_streams(UniqueFd fd) {
  if (fd.get() > 2) return fd;
  int moved = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3);
  if (moved < 0) return std::unexpected(system_error(errno, "duplicate a descriptor"));
  return UniqueFd(moved);
}

}  // namespace hive::exec
