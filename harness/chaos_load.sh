# shellcheck shell=sh disable=SC2034,SC2154 # shares variables with chaos.sh and its other parts
# Load faults: busy loops and held memory. By the keeper, for the current record. Both kinds end with their keeper, so a
# keeper killed without warning leaves no load, and both offer themselves first to the kernel's out-of-memory killer.

inflict_cpu() {
  proc_stat $$ || refuse 'the keeper cannot be found in /proc. Nothing changed'
  cpu_keeper=$PROC_START
  cpu_left=$(get amount)
  while [ "$cpu_left" -gt 0 ]; do
    # 'exec' rather than a redirection of the call: a shell keeps what it redirects, here the caller's pipe.
    (
      exec </dev/null >/dev/null 2>&1
      burn "$KEEP_END" "$cpu_keeper"
    ) &
    add_worker $! || refuse 'a worker could not be started: too many processes?'
    cpu_left=$((cpu_left - 1))
  done
}

# burn END KEEPER_START: busy until END, or until the keeper is gone; a dead one that nobody collects, as in a container
# whose first process does not, is gone too. It looks with the shell alone: a loop that starts programs would measure
# process creation, not the processor.
burn() {
  offer_to_oom_killer
  while same_process $$ "$2"; do
    burn_turns=0
    while [ "$burn_turns" -lt 20000 ]; do
      burn_turns=$((burn_turns + 1))
    done
    now
    [ "$NOW" -lt "$1" ] || return 0
  done
}

# inflict_mem: dd reads zeros into one buffer of the wanted size and then hangs writing it to a pipe that nobody empties.
# The buffer is ordinary memory of that process, unlike a file in a tmpfs, so limits and the out-of-memory killer treat it
# as they would treat a leaking service. The keeper holds the pipe's only reading end: when it is gone, dd gets SIGPIPE.
inflict_mem() {
  for mem_tool in dd mkfifo; do
    command -v "$mem_tool" >/dev/null 2>&1 || refuse "'$mem_tool' is missing. Nothing changed"
  done
  mkfifo "$REC/pipe" || refuse "no pipe can be made in $REC. Nothing changed"
  exec 3<>"$REC/pipe"
  mem_left=$(get amount)
  # A single read is limited by the kernel to 2 GiB, so the memory is held in pieces.
  while [ "$mem_left" -gt 0 ]; do
    mem_piece=$mem_left
    [ "$mem_piece" -le 1024 ] || mem_piece=1024
    mem_left=$((mem_left - mem_piece))
    hold "$mem_piece" "$REC/pipe" 3>&- </dev/null 2>"$REC/dd" &
    add_worker $! || refuse "dd could not be started: $(get dd)"
  done
  mem_want=$(($(get amount) * 1024 * 9 / 10))
  mem_tries=0
  while workers_memory && [ "$MEM_KB" -lt "$mem_want" ] && [ -z "$KEEP_STOP" ]; do
    mem_tries=$((mem_tries + 1))
    [ "$mem_tries" -lt 150 ] || refuse 'the memory could not be filled within 15 s. Nothing is held'
    pause
  done
  [ "$MEM_KB" -ge "$mem_want" ] || [ -n "$KEEP_STOP" ] || refuse "dd ended early: $(get dd) (out of memory?). Nothing is held"
  rm -f "$REC/pipe" "$REC/dd"
}

hold() {
  offer_to_oom_killer
  # SIGPIPE is ignored by the keeper, and an ignored signal stays ignored through exec; dd then ends by the write error.
  exec dd if=/dev/zero bs="$1M" count=1 >"$2"
}

# workers_memory: sets MEM_KB, the memory that the workers have; false when one of them is gone.
workers_memory() {
  MEM_KB=0
  while read -r workers_pid workers_start; do
    same_process "$workers_pid" "$workers_start" || return 1
    while IFS=": $TAB" read -r workers_key workers_kb _; do
      case $workers_key in
        VmRSS | VmSwap) MEM_KB=$((MEM_KB + workers_kb)) ;;
      esac
    done <"/proc/$workers_pid/status" 2>/dev/null
  done <<TEXT
${WORKERS%?}
TEXT
  return 0
}

# In a subshell $$ is the keeper, so the process itself is asked for by 'self'.
offer_to_oom_killer() {
  { echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null
  return 0
}

# free_memory: sets FREE_MB, what may still be allocated: the host's MemAvailable, or less where a cgroup above us is limited.
free_memory() {
  FREE_MB=0
  while IFS=": $TAB" read -r mem_key mem_kb _; do
    [ "$mem_key" = MemAvailable ] && FREE_MB=$((mem_kb / 1024))
  done </proc/meminfo
  mem_group=
  while IFS= read -r mem_line; do
    case $mem_line in
      0::*) mem_group=${mem_line#0::} ;;
    esac
  done </proc/self/cgroup 2>/dev/null
  mem_group=${mem_group%/}
  while :; do
    mem_max='' mem_used=''
    { read -r mem_max <"/sys/fs/cgroup$mem_group/memory.max"; } 2>/dev/null
    { read -r mem_used <"/sys/fs/cgroup$mem_group/memory.current"; } 2>/dev/null
    case $mem_max:$mem_used in
      *[!0-9:]* | :* | *:) ;;
      *)
        mem_left=$(((mem_max - mem_used) / 1048576))
        [ "$mem_left" -lt "$FREE_MB" ] && FREE_MB=$mem_left
        ;;
    esac
    [ -n "$mem_group" ] || break
    mem_group=${mem_group%/*}
  done
}
