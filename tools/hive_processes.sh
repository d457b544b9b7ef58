# shellcheck shell=bash
# Starting and stopping the processes of a private hive. Sourced by up.sh and down.sh.
#
# A pid file holds "PID START BOOT": the number, the process's start time in clock ticks (field 22 of /proc/PID/stat,
# proc(5)) and the id of this boot. All three together name one process for ever, so that a number which the kernel gave
# to somebody else in the meantime is never signalled.

# Tells a folder that ./hive up has made from any other.
# shellcheck disable=SC2034 # used by up.sh and down.sh
readonly hive_marker=.myrmex-hive

# start_time PID: prints the start time of a living process; fails when it is gone or only a zombie. While a process with
# thousands of connections dies, its first thread is a zombie already and the others still close what they hold.
start_time() {
  local stat fields
  { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
  # The name in parentheses may hold anything, also parentheses: what counts stands behind the last one.
  read -ra fields <<<"${stat##*) }"
  [[ ${fields[0]-} != [ZX] || ${fields[17]-} -gt 1 ]] || return 1
  printf '%s' "${fields[19]}"
}

# process_of PIDFILE: prints the pid if exactly that process still lives.
process_of() {
  local pid started boot
  { read -r pid started boot <"$1"; } 2>/dev/null || return 1
  [[ $pid =~ ^[1-9][0-9]*$ && -n $started ]] || return 1
  [ "$boot" = "$(</proc/sys/kernel/random/boot_id)" ] || return 1
  [ "$(start_time "$pid")" = "$started" ] || return 1
  printf '%s' "$pid"
}

# start_process PIDFILE LOG COMMAND...: in its own session, so that it survives this shell and its terminal.
start_process() {
  local pid_file=$1 log=$2 pid started
  shift 2
  # This shell has no job control, so the child leads no group, setsid need not fork, and $! is the program itself.
  setsid "$@" </dev/null >>"$log" 2>&1 {hive_lock}>&- &
  pid=$!
  started=$(start_time "$pid") || started=gone
  printf '%s %s %s\n' "$pid" "$started" "$(</proc/sys/kernel/random/boot_id)" >"$pid_file"
}

# stop_processes SECONDS PIDFILE...: TERM to all, KILL to those that still live after SECONDS. Removes the pid files.
stop_processes() {
  local limit=$1 file pid deadline killed=0
  shift
  for file; do
    pid=$(process_of "$file") && kill -TERM "$pid" 2>/dev/null
  done
  deadline=$((EPOCHSECONDS + limit))
  for file; do
    while pid=$(process_of "$file"); do
      if [ "$EPOCHSECONDS" -ge "$deadline" ]; then
        kill -KILL "$pid" 2>/dev/null && killed=$((killed + 1))
        while process_of "$file" >/dev/null; do sleep 0.02; done
        break
      fi
      sleep 0.05
    done
    rm -f -- "$file"
  done
  [ "$killed" -eq 0 ] || say "$killed processes did not end within $limit s and were killed"
}

# lock_hive DIR: one ./hive up or down at a time.
lock_hive() {
  exec {hive_lock}>"$1/.lock"
  flock -w 60 "$hive_lock" || die "another ./hive works on $1 and does not end"
}

# agent_pid_files DIR: sets pid_files to the agents' pid files.
agent_pid_files() {
  pid_files=()
  local file
  for file in "$1"/pids/agent-*.pid; do
    [ ! -e "$file" ] || pid_files+=("$file")
  done
}
