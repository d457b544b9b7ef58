#include "priv/setid_filter.h"

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hive::priv {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t native_arch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t native_arch = AUDIT_ARCH_AARCH64;
#else
#error "name the audit architecture of this machine"
#endif

// Newer than the headers of Debian 12; the number is the same on all architectures.
constexpr std::uint32_t call_fchmodat2 = 452;

// A system call, which of its arguments is a mode, and which are flags that make the mode count (-1: it always does).
struct ModeArgument {
  std::uint32_t call;
  int mode;
  int flags = -1;
};

const std::vector<ModeArgument>& calls_with_modes() {
  static const std::vector<ModeArgument> calls = {
#ifdef SYS_chmod
      {SYS_chmod, 1},  {SYS_mkdir, 1},    {SYS_mknod, 1},      {SYS_creat, 1},   {SYS_open, 2, 1},
#endif
      {SYS_fchmod, 1}, {SYS_fchmodat, 2}, {call_fchmodat2, 2}, {SYS_mkdirat, 2}, {SYS_mknodat, 2}, {SYS_openat, 3, 2}};
  return calls;
}

sock_filter statement(std::uint16_t code, std::uint32_t value) {
  return {.code = code, .jt = 0, .jf = 0, .k = value};
}

sock_filter jump(std::uint16_t test, std::uint32_t value, std::uint8_t if_true, std::uint8_t if_false) {
  return {.code = static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), .jt = if_true, .jf = if_false, .k = value};
}

sock_filter load(size_t offset) {
  return statement(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}

// The low half of an argument; modes and flags have no other.
size_t argument(int index) {
  size_t low_half = std::endian::native == std::endian::little ? 0 : sizeof(std::uint32_t);
  return offsetof(seccomp_data, args) + static_cast<size_t>(index) * sizeof(std::uint64_t) + low_half;
}

std::vector<sock_filter> make_program() {
  constexpr std::uint32_t refuse = SECCOMP_RET_ERRNO | EPERM;
  std::vector<sock_filter> program = {load(offsetof(seccomp_data, arch)), jump(BPF_JEQ, native_arch, 1, 0),
                                      statement(BPF_RET, refuse), load(offsetof(seccomp_data, nr))};
  for (const ModeArgument& entry : calls_with_modes()) {
    std::vector<sock_filter> body;
    if (entry.flags >= 0) {
      body.push_back(load(argument(entry.flags)));
      body.push_back(jump(BPF_JSET, O_CREAT, 1, 0));
      body.push_back(statement(BPF_RET, SECCOMP_RET_ALLOW));
    }
    body.push_back(load(argument(entry.mode)));
    body.push_back(jump(BPF_JSET, S_ISUID | S_ISGID, 1, 0));
    body.push_back(statement(BPF_RET, SECCOMP_RET_ALLOW));
    body.push_back(statement(BPF_RET, refuse));
    program.push_back(jump(BPF_JEQ, entry.call, 0, static_cast<std::uint8_t>(body.size())));
    program.insert(program.end(), body.begin(), body.end());
  }
  program.push_back(statement(BPF_RET, SECCOMP_RET_ALLOW));
  return program;
}

}  // namespace

Result<void> forbid_setid_bits() {
  std::vector<sock_filter> filters = make_program();
  sock_fprog program{.len = static_cast<unsigned short>(filters.size()), .filter = filters.data()};
  // By prctl, because the system call seccomp is not in systemd's @system-service.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    return std::unexpected(system_error(errno, "forbid setuid and setgid bits"));
  }
  return {};
}

}  // namespace hive::priv
