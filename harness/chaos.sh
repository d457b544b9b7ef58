#!/bin/sh
# Breaks this host on purpose, within limits, and puts it back. Meant to stand in an agent's allowlist; see
# docs/service-testing.md. What it promises:
#   - a timed fault is held by a keeper and a watcher, each in a session of its own: either alone reverts it, also when
#     the agent and the caller are dead, and no fault exists before both of them do (chaos_guard.sh);
#   - only what it made is undone: a netem rule is removed by its own handle, a process by number and start time;
#   - what this host cannot do, or must not do to itself, is refused before anything changes.
# Settings come from the environment or from $CHAOS_CONF (default /etc/myrmex/chaos.conf):
#   CHAOS_PROTECT         addresses of the gateways; their path is never touched. 'none' where there is no gateway
#   CHAOS_KILL_EXE        programs that 'kill' may signal, as absolute paths; empty: any but the protected ones
#   CHAOS_ALLOW_LOOPBACK  yes: network faults may be put on lo
#   CHAOS_STATE_DIR       where running faults are recorded

PROGRAM=chaos.sh
# Where the script is; without a slash it was found on PATH, or given to a shell in its own folder.
case $0 in
  /*) SELF=$0 ;;
  */*) SELF=$PWD/$0 ;;
  *) SELF=$(command -v "$0") || SELF=$PWD/$0 ;;
esac
HERE=${SELF%/*}
. "$HERE/lib.sh"
. "$HERE/chaos_guard.sh"
. "$HERE/chaos_load.sh"
. "$HERE/chaos_net.sh"
. "$HERE/chaos_kill.sh"

MAX_SECONDS=300
MAX_WORKERS=64
MAX_MB=4096
MAX_MS=5000
MAX_FAULTS=16

usage() {
  cat <<'TEXT'
chaos.sh cpu SECONDS WORKERS          busy loops
chaos.sh mem SECONDS MB               memory held
chaos.sh latency SECONDS MS IFACE     outgoing packets delayed
chaos.sh loss SECONDS PERCENT IFACE   outgoing packets dropped
chaos.sh kill SIGNAL PIDFILE          TERM, KILL, HUP, USR1 or USR2 to the process named in the file
chaos.sh status                       what is active, and what ended lately
chaos.sh stop [ID|all]                revert now (default: all)
Limits: 300 s, 64 workers, 4096 MB, 5000 ms. Timed faults run detached and revert by themselves.
Exit codes: 0 done, 1 tried and failed, 2 wrong request, 3 refused by this host; nothing changed for 2 and 3.
TEXT
}

load_settings() {
  SETTINGS=${CHAOS_CONF:-/etc/myrmex/chaos.conf}
  CONF_CHAOS_PROTECT='' CONF_CHAOS_KILL_EXE='' CONF_CHAOS_ALLOW_LOOPBACK='' CONF_CHAOS_STATE_DIR=''
  if [ -e "$SETTINGS" ] || [ -n "${CHAOS_CONF:-}" ]; then
    read_conf "$SETTINGS" CHAOS_PROTECT CHAOS_KILL_EXE CHAOS_ALLOW_LOOPBACK CHAOS_STATE_DIR
  fi
  PROTECT=${CHAOS_PROTECT-$CONF_CHAOS_PROTECT}
  KILL_EXE=${CHAOS_KILL_EXE-$CONF_CHAOS_KILL_EXE}
  ALLOW_LOOPBACK=${CHAOS_ALLOW_LOOPBACK-$CONF_CHAOS_ALLOW_LOOPBACK}
  STATE=${CHAOS_STATE_DIR:-$CONF_CHAOS_STATE_DIR}
}

# want COUNT VERB ARGS...: the exact number of arguments, or a usage error that shows the form.
want() {
  want_count=$1 want_verb=$2
  shift 2
  [ $# -eq "$want_count" ] || die "$EX_USAGE" "$want_verb takes $want_count argument(s), got $#; see: chaos.sh help"
}

check_seconds() {
  is_uint "$1" 1 "$MAX_SECONDS" || die "$EX_USAGE" "duration '$1' is not a whole number of seconds from 1 to $MAX_SECONDS"
}

verb_cpu() {
  want 2 cpu "$@"
  check_seconds "$1"
  is_uint "$2" 1 "$MAX_WORKERS" || die "$EX_USAGE" "workers '$2' is not a number from 1 to $MAX_WORKERS"
  cpu_what="$2 busy workers"
  [ "$2" -gt 1 ] || cpu_what='1 busy worker'
  begin cpu "$1" "$cpu_what"
  put amount "$2"
  launch
}

verb_mem() {
  want 2 mem "$@"
  check_seconds "$1"
  is_uint "$2" 1 "$MAX_MB" || die "$EX_USAGE" "megabytes '$2' is not a number from 1 to $MAX_MB"
  free_memory
  mem_limit=$((FREE_MB * 8 / 10))
  [ "$2" -le "$mem_limit" ] || die "$EX_PRECONDITION" \
    "$2 MB is more than 80 % of the $FREE_MB MB available here; at most $mem_limit MB now"
  begin mem "$1" "$2 MB held"
  put amount "$2"
  launch
}

verb_net() {
  want 3 "$@"
  net_verb=$1 net_seconds=$2 net_amount=$3 net_iface=$4
  check_seconds "$net_seconds"
  if [ "$net_verb" = latency ]; then
    is_uint "$net_amount" 1 "$MAX_MS" || die "$EX_USAGE" "delay '$net_amount' is not a number of milliseconds from 1 to $MAX_MS"
    net_what="$net_amount ms delay on $net_iface"
  else
    is_uint "$net_amount" 1 100 || die "$EX_USAGE" "loss '$net_amount' is not a percentage from 1 to 100"
    net_what="$net_amount % loss on $net_iface"
  fi
  is_word "$net_iface" '_.-' 15 || die "$EX_USAGE" "'$net_iface' is not the name of a network interface"
  check_interface "$net_iface"
  begin "$net_verb" "$net_seconds" "$net_what"
  put amount "$net_amount"
  put iface "$net_iface"
  put handle "$(printf '%x' $((19712 + ${ID#*-} % 256)))" # 4d00 to 4dff: below the numbers the kernel gives by itself
  launch
}

verb_status() {
  want 0 status "$@"
  echo '== active faults =='
  status_none=1
  for status_id in $(records); do
    { open_record "$status_id" && [ "$STATE_NOW" != ended ]; } || continue
    status_none=0
    status_line
  done
  [ "$status_none" = 0 ] || echo '(none)'
  echo '== ended lately =='
  status_none=1
  for status_id in $(records | tail -n 5); do
    open_record "$status_id"
    [ "$STATE_NOW" = ended ] || continue
    status_none=0
    printf '%-12s %s: %s\n' "$ID" "$(get what)" "$(get how)"
  done
  [ "$status_none" = 0 ] || echo '(none)'
  echo '== active netem qdiscs =='
  show_netem
  echo '== load =='
  uptime
}

status_line() {
  now
  status_end=$(get end)
  status_left=starting
  if [ -n "$status_end" ]; then
    status_left=$(((status_end - NOW + 99) / 100))
    [ "$status_left" -ge 0 ] || status_left=0
    status_left="$status_left s left"
  fi
  [ "$STATE_NOW" = stuck ] && status_left="STUCK, could not be reverted: $(get how)"
  status_pids=
  for status_role in keeper watcher; do
    status_pid=$(get "$status_role")
    [ -n "$status_pid" ] && status_pids="$status_pids, $status_role ${status_pid%% *}"
  done
  status_load=
  while read -r status_pid _; do
    status_load="$status_load $status_pid"
  done <<TEXT
$(get workers)
TEXT
  status_load=${status_load% }
  [ -n "${status_load# }" ] && status_pids="$status_pids, load$status_load"
  printf '%-12s %s, %s%s\n' "$ID" "$(get what)" "$status_left" "$status_pids"
}

verb_stop() {
  [ $# -le 1 ] || die "$EX_USAGE" "stop takes one id, or 'all'"
  stop_target=${1:-all}
  stop_failed=0
  if [ "$stop_target" = all ]; then
    stop_count=0
    for stop_id in $(records); do
      open_record "$stop_id"
      [ "$STATE_NOW" = ended ] && continue
      stop_count=$((stop_count + 1))
      stop_record || stop_failed=1
    done
    [ "$stop_count" -gt 0 ] || echo 'nothing to stop: no fault is active'
  else
    is_id "$stop_target" || die "$EX_USAGE" "'$stop_target' is not the id of a fault, such as cpu-3"
    open_record "$stop_target" || die "$EX_PRECONDITION" \
      "no fault '$stop_target' is known on this host; 'chaos.sh status' lists them. Nothing changed"
    if [ "$STATE_NOW" = ended ]; then
      echo "$ID had already ended ($(get how)); nothing to do"
    else
      stop_record || stop_failed=1
    fi
  fi
  [ "$stop_failed" = 0 ] || exit "$EX_FAILED"
}

[ -r /proc/uptime ] || die "$EX_PRECONDITION" 'this needs Linux with /proc mounted'
[ $# -gt 0 ] || {
  usage
  exit "$EX_USAGE"
}
verb=$1
shift
load_settings
case $verb in
  help | --help | -h)
    usage
    exit 0
    ;;
  cpu | mem | latency | loss | status | stop)
    open_state
    sweep
    ;;
esac
case $verb in
  cpu) verb_cpu "$@" ;;
  mem) verb_mem "$@" ;;
  latency | loss) verb_net "$verb" "$@" ;;
  kill)
    want 2 kill "$@"
    verb_kill "$1" "$2"
    ;;
  status) verb_status "$@" ;;
  stop) verb_stop "$@" ;;
  __keep) keep "$1" ;;
  __watch) watch "$1" ;;
  *) die "$EX_USAGE" "unknown verb '$verb'; known: cpu mem latency loss kill status stop help" ;;
esac
