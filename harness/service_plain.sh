# shellcheck shell=sh disable=SC2034,SC2154 # shares variables with service.sh
# Services without systemd: a program, its pid file, and the identity of the process that the file names.

# plain_load: reads and checks the descriptor.
plain_load() {
  read_conf "$DESCRIPTOR" START PIDFILE TEST EXE STOP_SIGNAL RELOAD_SIGNAL START_SECONDS STOP_SECONDS FOREGROUND LOG
  START=$CONF_START PIDFILE=$CONF_PIDFILE TEST=$CONF_TEST LOG=${CONF_LOG:-/dev/null}
  EXE=${CONF_EXE:-${START%% *}}
  STOP_SIGNAL=${CONF_STOP_SIGNAL:-TERM}
  RELOAD_SIGNAL=${CONF_RELOAD_SIGNAL:-HUP}
  START_SECONDS=${CONF_START_SECONDS:-10}
  STOP_SECONDS=${CONF_STOP_SECONDS:-10}
  FOREGROUND=${CONF_FOREGROUND:-no}
  [ -n "$START" ] || die "$EX_PRECONDITION" "$DESCRIPTOR: START is missing: the absolute path of the program and its arguments"
  [ -n "$PIDFILE" ] || die "$EX_PRECONDITION" "$DESCRIPTOR: PIDFILE is missing"
  plain_absolute START "$START"
  plain_absolute PIDFILE "$PIDFILE"
  plain_absolute EXE "$EXE"
  plain_absolute LOG "$LOG"
  [ -z "$TEST" ] || plain_absolute TEST "$TEST"
  for plain_signal in "$STOP_SIGNAL" "$RELOAD_SIGNAL"; do
    case $plain_signal in
      TERM | QUIT | INT | HUP | USR1 | USR2 | KILL) ;;
      *) die "$EX_PRECONDITION" "$DESCRIPTOR: '$plain_signal' is not one of TERM QUIT INT HUP USR1 USR2 KILL" ;;
    esac
  done
  for plain_seconds in "$START_SECONDS" "$STOP_SECONDS"; do
    is_uint "$plain_seconds" 1 300 || die "$EX_PRECONDITION" "$DESCRIPTOR: '$plain_seconds' is not a number of seconds from 1 to 300"
  done
  case $FOREGROUND in
    yes | no) ;;
    *) die "$EX_PRECONDITION" "$DESCRIPTOR: FOREGROUND is yes or no" ;;
  esac
}

plain_absolute() {
  case $2 in
    /*) ;;
    *) die "$EX_PRECONDITION" "$DESCRIPTOR: $1 does not begin with an absolute path" ;;
  esac
}

# find_process: the service's own process. Sets PID and PID_START, or WHY there is none. A number that now belongs to
# another program counts as none.
find_process() {
  PID=
  find_text=
  { find_text=$(head -c 64 -- "$PIDFILE"); } 2>/dev/null
  if [ ! -e "$PIDFILE" ]; then
    WHY="there is no $PIDFILE"
  elif ! is_uint "$find_text" 2 4194304; then
    WHY="$PIDFILE does not hold one plain process number above 1"
  elif ! proc_stat "$find_text"; then
    WHY="$PIDFILE names process $find_text, which does not run"
  else
    find_start=$PROC_START
    proc_identity "$find_text"
    # An executable that was replaced by an update still counts: its old path is what the link says.
    if [ "$PROC_EXE" = "$(readlink -f -- "$EXE" 2>/dev/null)" ]; then
      PID=$find_text PID_START=$find_start
      return 0
    fi
    WHY="$PIDFILE names process $find_text, which is ${PROC_EXE:-$PROC_COMM} and not $EXE"
  fi
  return 1
}

# run_test: the configuration test, if there is one. Sets TEST_OUTPUT.
run_test() {
  [ -n "$TEST" ] || return 0
  TEST_OUTPUT=$(words "$TEST" command 2>&1 </dev/null)
}

require_test() {
  run_test || die "$EX_FAILED" "the configuration test failed, nothing was changed: $TEST: $(printf '%s' "$TEST_OUTPUT" | tail -n 3 | tr '\n' ' ')"
}

plain_status() {
  if find_process; then
    echo "$NAME: running, pid $PID"
  else
    echo "$NAME: stopped ($WHY)"
  fi
}

plain_start() {
  if find_process; then
    echo "$NAME: already running, pid $PID"
    return 0
  fi
  require_test
  plain_launch
  echo "$NAME: started, pid $PID"
}

# plain_launch: starts the program in a session of its own and waits until its process is there. It keeps running when
# the caller, or the agent above it, is gone.
plain_launch() {
  command -v setsid >/dev/null 2>&1 || die "$EX_PRECONDITION" 'setsid is missing (util-linux or busybox)'
  [ -x "${START%% *}" ] || die "$EX_PRECONDITION" "${START%% *} is not an executable program"
  # A file left by a process that was killed would make some programs refuse to start.
  rm -f -- "$PIDFILE"
  if [ "$FOREGROUND" = yes ]; then
    # The new process writes its number and then becomes the program, so the number is right.
    # shellcheck disable=SC2016,SC2086 # for the inner shell; splitting is the point
    (cd / && exec setsid sh -c 'umask 022; echo $$ >"$1"; shift; exec "$@"' service "$PIDFILE" $START </dev/null >>"$LOG" 2>&1) &
  else
    # shellcheck disable=SC2086 # splitting is the point
    (umask 022 && cd / && exec setsid $START </dev/null >>"$LOG" 2>&1) &
  fi
  launch_child=$!
  now
  launch_end=$((NOW + START_SECONDS * 100))
  until find_process; do
    now
    if [ "$NOW" -ge "$launch_end" ]; then
      die "$EX_FAILED" "$NAME did not come up within $START_SECONDS s: $WHY"
    fi
    if [ -n "$launch_child" ] && ! proc_stat "$launch_child"; then
      wait "$launch_child"
      launch_status=$?
      launch_child=
      [ "$launch_status" = 0 ] || die "$EX_FAILED" "$NAME did not start: ${START%% *} ended with exit status $launch_status (output: LOG=$LOG)"
    fi
    pause
  done
}

plain_stop() {
  if ! find_process; then
    echo "$NAME: already stopped ($WHY)"
    return 0
  fi
  plain_end
  echo "$NAME: stopped, pid $PID${STOP_NOTE}"
}

# plain_end: the stop signal, then KILL when it is not obeyed in time.
plain_end() {
  STOP_NOTE=
  same_process "$PID" "$PID_START" && kill -s "$STOP_SIGNAL" "$PID" 2>/dev/null
  now
  end_at=$((NOW + STOP_SECONDS * 100))
  while same_process "$PID" "$PID_START"; do
    now
    if [ "$NOW" -ge "$end_at" ]; then
      [ -z "$STOP_NOTE" ] || die "$EX_FAILED" "$NAME, pid $PID, could not be ended, not even by KILL"
      kill -s KILL "$PID" 2>/dev/null || die "$EX_FAILED" "$NAME, pid $PID, may not be signalled by uid $MY_UID"
      STOP_NOTE=", by KILL since it did not obey $STOP_SIGNAL within $STOP_SECONDS s"
      end_at=$((NOW + 300))
    fi
    pause
  done
}

plain_restart() {
  require_test
  restart_old='it was down'
  if find_process; then
    restart_old="before: pid $PID"
    plain_end
  fi
  plain_launch
  echo "$NAME: restarted, pid $PID ($restart_old)"
}

plain_reload() {
  find_process || die "$EX_PRECONDITION" "$NAME is not running ($WHY); nothing to reload"
  require_test
  kill -s "$RELOAD_SIGNAL" "$PID" || die "$EX_FAILED" "$NAME, pid $PID, may not be signalled by uid $MY_UID"
  # A program that dies of the signal does so at once.
  pause
  same_process "$PID" "$PID_START" || die "$EX_FAILED" "$NAME, pid $PID, ended on $RELOAD_SIGNAL instead of reloading"
  echo "$NAME: reloaded, pid $PID"
}

plain_check() {
  echo "$NAME (described by $DESCRIPTOR)"
  say_check ok "the description is complete"
  if ! [ -f "${START%% *}" ] || ! [ -x "${START%% *}" ]; then
    say_check fail "${START%% *} is not an executable program"
  elif is_trusted - "$(readlink -f -- "${START%% *}")"; then
    say_check ok "${START%% *} can be executed, and only its owner can change it"
  else
    say_check fail "$WHY"
  fi
  if command -v setsid >/dev/null 2>&1; then
    say_check ok "a started service is detached from this call (setsid)"
  else
    say_check fail 'setsid is missing (util-linux or busybox)'
  fi
  if [ -z "$TEST" ]; then
    say_check ok 'no configuration test is described (TEST)'
  elif run_test; then
    say_check ok "the configuration test passes: $TEST"
  else
    say_check fail "the configuration test fails: $TEST: $(printf '%s' "$TEST_OUTPUT" | tail -n 3 | tr '\n' ' ')"
  fi
  if find_process; then
    say_check ok "it runs: $PIDFILE names pid $PID, which is $EXE"
    if kill -s 0 "$PID" 2>/dev/null; then
      say_check ok "uid $MY_UID may signal it"
    else
      say_check fail "uid $MY_UID may not signal pid $PID"
    fi
  else
    say_check fail "it does not run: $WHY"
  fi
  check_dir=${PIDFILE%/*}
  if [ -w "${check_dir:-/}" ]; then
    say_check ok "a new pid file can be written in ${check_dir:-/}"
  else
    say_check fail "no new pid file can be written in ${check_dir:-/}"
  fi
  check_verdict
}
