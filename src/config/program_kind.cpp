#include "config/program_kind.h"

#include <algorithm>
#include <span>

namespace hive::config {

namespace {

constexpr std::string_view shells[] = {"ash", "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "mksh",
                                       "nu",  "pwsh", "rbash",   "sh",  "tcsh", "toybox", "yash", "zsh"};

constexpr std::string_view interpreters[] = {"awk",    "deno",      "ed",     "expect", "gawk", "guile",  "irb",
                                             "java",   "lua",       "luajit", "m4",     "mawk", "nawk",   "node",
                                             "nodejs", "osascript", "perl",   "php",    "pypy", "python", "Rscript",
                                             "ruby",   "sed",       "sqlite", "tclsh"};

// By an option, a pager, an editor or a hook: "find -exec", "tar --to-command", "tcpdump -z", "git -c core.pager".
constexpr std::string_view runners[] = {
    "ansible",     "apt",
    "apt-get",     "at",
    "batch",       "bpftrace",
    "cargo",       "chroot",
    "chrt",        "crontab",
    "docker",      "doas",
    "dpkg",        "emacs",
    "env",         "ex",
    "find",        "flatpak",
    "flock",       "gdb",
    "git",         "helm",
    "ionice",      "ip",
    "kubectl",     "less",
    "lftp",        "logrotate",
    "ltrace",      "machinectl",
    "make",        "man",
    "more",        "mysql",
    "nano",        "nerdctl",
    "nice",        "nmap",
    "nohup",       "npm",
    "npx",         "nsenter",
    "numactl",     "parallel",
    "pip",         "pkexec",
    "podman",      "psql",
    "rpm",         "rsync",
    "run-parts",   "runuser",
    "scp",         "screen",
    "script",      "setarch",
    "setpriv",     "setsid",
    "sftp",        "socat",
    "ssh",         "start-stop-daemon",
    "stdbuf",      "strace",
    "su",          "sudo",
    "systemd-run", "tar",
    "taskset",     "tcpdump",
    "time",        "timeout",
    "tmux",        "unshare",
    "vi",          "view",
    "vim",         "watch",
    "xargs",       "zip",
};

bool has(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::string_view program_name(std::string_view name_or_path) {
  return name_or_path.substr(name_or_path.rfind('/') + 1);
}

ProgramKind kind_of_program(std::string_view name_or_path) {
  std::string_view name = program_name(name_or_path);
  std::string_view plain = name;
  while (!plain.empty() &&
         ((plain.back() >= '0' && plain.back() <= '9') || plain.back() == '.' || plain.back() == '-')) {
    plain.remove_suffix(1);
  }
  for (std::string_view candidate : {name, plain}) {
    if (has(shells, candidate)) return ProgramKind::shell;
    if (has(interpreters, candidate)) return ProgramKind::interpreter;
    if (has(runners, candidate)) return ProgramKind::runs_programs;
  }
  return ProgramKind::ordinary;
}

}  // namespace hive::config
