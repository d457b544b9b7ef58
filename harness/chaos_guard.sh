# shellcheck shell=sh disable=SC2034,SC2154 # shares variables with chaos.sh and its other parts
# Records of faults, and the two processes that stand behind each timed one.
#
# The keeper makes the fault, reports, waits and undoes it. The watcher is there before the keeper makes anything and
# undoes the fault if the keeper dies or misses its time. Both are leaders of their own sessions, so that killing the
# caller, its process group or the agent touches neither. If both die, the load ends by itself (a busy loop looks for its
# keeper, held memory hangs on a pipe to it), and the next call of chaos.sh undoes what is left (sweep).
#
# A record is a directory STATE/NUMBER of small files, each written whole or not at all; its id is KIND-NUMBER:
#   kind what how state (starting, active, stuck, ended) boot end (hundredths of a second after boot) secs amount iface handle
#   owner keeper watcher (a process: number and start time) workers (one process a line) stop (present: end now)

# open_state: chooses and checks STATE. A directory that anyone else can write or replace is never used.
open_state() {
  if [ -z "$STATE" ]; then
    if [ "$MY_UID" = 0 ] && [ -d /run ] && [ -w /run ]; then
      STATE=/run/myrmex-chaos
    elif [ -n "${XDG_RUNTIME_DIR:-}" ] && [ -w "$XDG_RUNTIME_DIR" ]; then
      STATE=$XDG_RUNTIME_DIR/myrmex-chaos
    else
      STATE=/tmp/myrmex-chaos-$MY_UID
    fi
  fi
  case $STATE in
    *[!A-Za-z0-9/_.+-]*) die "$EX_PRECONDITION" "the state directory '$STATE' has characters other than letters, digits and /_.+-" ;;
    /*) ;;
    *) die "$EX_PRECONDITION" "the state directory '$STATE' is not an absolute path" ;;
  esac
  mkdir -m 700 "$STATE" 2>/dev/null
  file_facts "$STATE" || die "$EX_PRECONDITION" "the state directory $STATE cannot be made; set CHAOS_STATE_DIR"
  if [ "$FILE_TYPE" != d ] || [ "$FILE_UID" != "$MY_UID" ]; then
    die "$EX_PRECONDITION" "$STATE is not a directory of uid $MY_UID; someone else may have made it: remove it or set CHAOS_STATE_DIR"
  fi
  case $FILE_MODE in
    rwx------*) ;;
    *) die "$EX_PRECONDITION" "the state directory $STATE is open to others (mode $FILE_MODE): chmod 700 it" ;;
  esac
}

is_id() {
  case $1 in
    cpu-* | mem-* | latency-* | loss-*) is_uint "${1#*-}" 1 999999999 ;;
    *) return 1 ;;
  esac
}

# records: the ids of all records, oldest first.
records() {
  set +f
  for records_path in "$STATE"/[1-9]*; do
    records_kind=
    { read -r records_kind <"$records_path/kind"; } 2>/dev/null
    is_id "$records_kind-${records_path##*/}" && echo "${records_path##*/} $records_kind"
  done | sort -n | while read -r records_number records_kind; do echo "$records_kind-$records_number"; done
  set -f
}

# open_record ID: makes ID the current record and sets STATE_NOW.
open_record() {
  ID=$1
  REC=$STATE/${ID#*-}
  [ "$(get kind)" = "${ID%-*}" ] || return 1
  STATE_NOW=$(get state)
  return 0
}

# put NAME TEXT and get NAME: one value of the current record.
put() {
  printf '%s\n' "$2" >"$REC/.$1.$$" && mv "$REC/.$1.$$" "$REC/$1"
}
get() {
  [ -f "$REC/$1" ] && cat "$REC/$1" 2>/dev/null
}

# put_self ROLE: the current process, so that it can be told from a later one with the same number.
put_self() {
  proc_stat $$ && put "$1" "$$ $PROC_START"
}

# runs ROLE: the process recorded as ROLE is running; sets RUNS_PID.
runs() {
  runs_text=$(get "$1")
  RUNS_PID=${runs_text%% *}
  [ -n "$runs_text" ] && same_process "$RUNS_PID" "${runs_text#* }"
}

boot_id() {
  cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo unknown
}

# begin KIND SECONDS WHAT: a new record, of state 'starting'.
begin() {
  command -v setsid >/dev/null 2>&1 ||
    die "$EX_PRECONDITION" "setsid is missing (util-linux or busybox): the fault could not outlive this call. Nothing changed"
  begin_active=0
  for begin_id in $(records); do
    open_record "$begin_id" || continue
    [ "$STATE_NOW" = ended ] || begin_active=$((begin_active + 1))
  done
  [ "$begin_active" -lt "$MAX_FAULTS" ] ||
    die "$EX_PRECONDITION" "$begin_active faults are active, at most $MAX_FAULTS may be; see: chaos.sh status"
  begin_number=0
  [ -f "$STATE/last" ] && read -r begin_number <"$STATE/last"
  is_uint "$begin_number" 0 999999998 || begin_number=0
  # mkdir decides who owns a number when two calls meet. Numbers are shared by all kinds, for the handle of a network
  # rule is made from them.
  begin_tries=0
  while :; do
    begin_number=$((begin_number + 1))
    begin_tries=$((begin_tries + 1))
    ID=$1-$begin_number
    REC=$STATE/$begin_number
    mkdir "$REC" 2>/dev/null && break
    [ "$begin_tries" -lt 1000 ] || die "$EX_PRECONDITION" "no record can be made in $STATE: is the disk full?"
  done
  if ! { put_self owner && put kind "$1" && put boot "$(boot_id)" && put secs "$2" && put what "$3 for $2 s" && put state starting; }; then
    rm -rf "$REC"
    die "$EX_PRECONDITION" "the record $REC cannot be written: is the disk full? Nothing changed"
  fi
  printf '%s\n' "$begin_number" >"$STATE/.last.$$" && mv "$STATE/.last.$$" "$STATE/last"
}

# launch: starts the keeper of the current record and says how it went. The answer comes through a pipe that the keeper
# closes, so nothing of the fault holds the caller's output.
launch() {
  launch_answer=$(CHAOS_STATE_DIR=$STATE setsid sh "$SELF" __keep "$ID" </dev/null 2>/dev/null &)
  case $launch_answer in
    ok) echo "$ID: $(get what), detached; reverts by itself, or now with: chaos.sh stop $ID" ;;
    'refused '*) die "$EX_PRECONDITION" "${launch_answer#refused }" ;;
    *)
      # The keeper is gone without a word; its watcher, or this call, reverts.
      open_record "$ID" && [ "$STATE_NOW" != ended ] && undo && finish "the keeper died at the start; reverted"
      die "$EX_FAILED" "$ID did not start: its keeper ended unexpectedly; see: chaos.sh status"
      ;;
  esac
}

# finish HOW: the current record is over. The first word counts.
finish() {
  [ "$(get state)" = ended ] && return 0
  put how "$1"
  put state ended
}

# undo: makes the current record's fault end, and looks that it did. Safe to do twice, and by two processes at once.
undo() {
  UNDO_NOTE=
  case $ID in
    latency-* | loss-*) undo_net || return 1 ;;
  esac
  end_workers
}

# end_workers: TERM, a second to obey, then KILL. Only processes that are still the recorded ones.
end_workers() {
  workers_text=$(get workers)
  [ -n "$workers_text" ] || return 0
  signal_workers TERM
  workers_tries=0
  while signal_workers 0 && [ "$workers_tries" -lt 10 ]; do
    workers_tries=$((workers_tries + 1))
    pause
  done
  signal_workers KILL
  workers_tries=0
  while signal_workers 0; do
    workers_tries=$((workers_tries + 1))
    [ "$workers_tries" -lt 30 ] || return 1
    pause
  done
  return 0
}

# signal_workers SIGNAL: to all workers that still run; false when none does.
signal_workers() {
  signal_any=1
  while read -r signal_pid signal_start; do
    if [ -n "$signal_pid" ] && same_process "$signal_pid" "$signal_start"; then
      signal_any=0
      kill -s "$1" "$signal_pid" 2>/dev/null
    fi
  done <<TEXT
$workers_text
TEXT
  return $signal_any
}

# add_worker PID
add_worker() {
  proc_stat "$1" || return 1
  WORKERS="$WORKERS$1 $PROC_START
"
  put workers "${WORKERS%?}"
}

# refuse REASON: the keeper could not make the fault; what it made of it is taken back.
refuse() {
  undo
  finish "not started: $1"
  runs watcher && kill -s TERM "$RUNS_PID" 2>/dev/null
  echo "refused $1"
  exit 0
}

# keep ID: the keeper. Its standard output is the answer to the caller.
keep() {
  trap '' PIPE HUP
  KEEP_STOP=
  trap 'KEEP_STOP=1' TERM INT
  cd / || exit 1
  open_record "$1" || exit 1
  put_self keeper
  keep_watcher=$(setsid sh "$SELF" __watch "$ID" </dev/null 2>/dev/null &)
  [ "$keep_watcher" = ready ] || refuse 'the watcher could not be started. Nothing changed'
  now
  KEEP_END=$((NOW + $(get secs) * 100))
  put end "$KEEP_END" || refuse "the record $REC cannot be written: is the disk full? Nothing changed"
  WORKERS=
  case $ID in
    cpu-*) inflict_cpu ;;
    mem-*) inflict_mem ;;
    *) inflict_net ;;
  esac
  put state active
  echo ok
  exec >/dev/null
  keep_how='ran its time'
  while :; do
    now
    [ "$NOW" -lt "$KEEP_END" ] || break
    if [ -n "$KEEP_STOP" ] || [ -e "$REC/stop" ]; then
      keep_how='stopped early'
      break
    fi
    workers_text=$WORKERS
    if [ -n "$WORKERS" ] && ! signal_workers 0; then
      keep_how='its load was killed early, by the kernel for want of memory or by someone'
      break
    fi
    # A wait ends at a signal; a sleep in the foreground would not.
    sleep_slice $((KEEP_END - NOW)) 3>&- &
    keep_sleep=$!
    wait "$keep_sleep"
    kill "$keep_sleep" 2>/dev/null
  done
  exec 3>&-
  end_record "$keep_how"
  runs watcher && kill -s TERM "$RUNS_PID" 2>/dev/null
  exit 0
}

# sleep_slice HUNDREDTHS: at most a second.
sleep_slice() {
  if [ "$1" -ge 100 ]; then
    exec sleep 1
  fi
  slice=0$1
  sleep "0.${slice#"${slice%??}"}" 2>/dev/null || exec sleep 1
}

# end_record HOW: undo, tried again for a while; a fault that cannot be undone is shown as stuck, never as over.
end_record() {
  end_tries=0
  until undo; do
    end_tries=$((end_tries + 1))
    if [ "$end_tries" -ge 5 ]; then
      put how "$UNDO_NOTE"
      put state stuck
      return 1
    fi
    sleep 1
  done
  finish "$1${UNDO_NOTE:+; $UNDO_NOTE}"
}

# watch ID: the watcher.
watch() {
  trap '' PIPE HUP
  WATCH_STOP=
  trap 'WATCH_STOP=1' TERM INT
  cd / || exit 1
  open_record "$1" || exit 1
  put_self watcher || exit 1
  echo ready
  exec >/dev/null
  now
  # Five minutes longer than the fault: what could not be undone by then is left to the next call.
  watch_limit=$((NOW + ($(get secs) + 300) * 100))
  while [ "$NOW" -lt "$watch_limit" ]; do
    watch_state=$(get state)
    if [ "$watch_state" = ended ] || [ ! -d "$REC" ]; then
      exit 0
    fi
    watch_end=$(get end)
    if [ "$watch_state" = stuck ]; then
      end_record 'reverted at last by the watcher' && exit 0
    elif ! runs keeper; then
      end_record 'its keeper was killed; reverted by the watcher' && exit 0
    elif [ -n "$watch_end" ] && [ "$NOW" -ge $((watch_end + 200)) ]; then
      # It still runs and has not ended the fault: stopped, or hanging in a call.
      end_record 'its keeper missed the time; reverted by the watcher' && kill -s KILL "$RUNS_PID" 2>/dev/null && exit 0
    elif [ -n "$WATCH_STOP" ]; then
      # The host wants both of us gone: revert now rather than leave it to chance.
      end_record 'told to end; reverted by the watcher' && exit 0
    fi
    sleep_slice 100 &
    watch_sleep=$!
    wait "$watch_sleep"
    kill "$watch_sleep" 2>/dev/null
    now
  done
  exit 1
}

# stop_record: ends the current record now and says how it went; false if it could not.
stop_record() {
  put stop 1
  runs keeper && kill -s TERM "$RUNS_PID" 2>/dev/null
  stop_tries=0
  while [ "$(get state)" != ended ] && [ "$stop_tries" -lt 30 ]; do
    runs keeper || break
    stop_tries=$((stop_tries + 1))
    pause
  done
  if [ "$(get state)" != ended ]; then
    end_record 'stopped early; its keeper did not answer' || {
      echo "chaos.sh: $ID could not be reverted: $(get how)" >&2
      return 1
    }
    runs keeper && kill -s KILL "$RUNS_PID" 2>/dev/null
  fi
  echo "$ID: $(get how)"
}

# sweep: records whose processes are all gone are reverted; old ended ones are forgotten.
sweep() {
  sweep_ended=0
  sweep_boot=$(boot_id)
  for sweep_id in $(records); do
    open_record "$sweep_id" || continue
    if [ -z "$STATE_NOW" ]; then
      continue # another call is making it, or died doing so before it made anything else
    elif [ "$STATE_NOW" = ended ]; then
      sweep_ended=$((sweep_ended + 1))
    elif [ "$(get boot)" != "$sweep_boot" ]; then
      finish 'the host was restarted, which ended it'
    elif ! runs owner && ! runs keeper && ! runs watcher; then
      end_record 'its keeper and its watcher were killed; reverted by the next call'
    fi
  done
  sweep_extra=$((sweep_ended - 20))
  for sweep_id in $(records); do
    [ "$sweep_extra" -gt 0 ] || break
    open_record "$sweep_id"
    [ "$STATE_NOW" = ended ] || continue
    rm -rf "$REC"
    sweep_extra=$((sweep_extra - 1))
  done
}
