# shellcheck shell=sh disable=SC2034,SC2154 # shares variables with chaos.sh and its other parts
# The kill verb: a signal to the process that a pid file names, after making sure that the file can be believed and that
# the process is the one it was written for.

# Never signalled, whatever the settings say: without them nobody could look at this host any more.
PROTECTED_PROGRAMS='sshd myrmex-agent myrmex-gateway mcp-agent hive-priv systemd init'

# verb_kill SIGNAL PIDFILE
verb_kill() {
  case $1 in
    TERM | KILL | HUP | USR1 | USR2) ;;
    *) die "$EX_USAGE" "signal '$1' is not one of TERM KILL HUP USR1 USR2" ;;
  esac
  case $2 in
    *[!A-Za-z0-9/_.@+-]* | */../* | */..) die "$EX_USAGE" "the pid file's path may have letters, digits and /_.@+- and no '..'" ;;
    /*) ;;
    *) die "$EX_USAGE" "the pid file '$2' is not an absolute path" ;;
  esac
  read_pidfile "$2"
  identify "$KILL_PID"
  check_target "$2"
  # Looked at again at the last moment: a shell cannot hold on to a process, so the gap is kept as small as can be.
  same_process "$KILL_PID" "$KILL_START" || die "$EX_PRECONDITION" "pid $KILL_PID ($KILL_NAME) ended before it could be signalled"
  kill_error=$(kill -s "$1" "$KILL_PID" 2>&1) ||
    die "$EX_FAILED" "SIG$1 to pid $KILL_PID ($KILL_NAME) was not accepted: ${kill_error##*: }"
  case $1 in
    TERM | KILL) kill_outcome "$2" ;;
    *) KILL_NOTE= ;;
  esac
  echo "sent SIG$1 to pid $KILL_PID ($KILL_NAME)$KILL_NOTE"
}

# pidfile_number FILE: sets PIDFILE_NUMBER when the file holds one plain number and nothing else.
pidfile_number() {
  pidfile_text=
  { pidfile_text=$(head -c 64 -- "$1"); } 2>/dev/null
  is_uint "$pidfile_text" 0 4194304 || return 1
  PIDFILE_NUMBER=$pidfile_text
}

read_pidfile() {
  file_facts "$1" || die "$EX_PRECONDITION" "the pid file $1 does not exist: is the service running?"
  [ "$FILE_TYPE" = - ] || die "$EX_PRECONDITION" "the pid file $1 is not a regular file"
  writable_by_others && die "$EX_PRECONDITION" "the pid file $1 may be written by others (mode $FILE_MODE); it could name any process"
  PIDFILE_UID=$FILE_UID
  pidfile_dir=${1%/*}
  file_facts "${pidfile_dir:-/}/." || die "$EX_PRECONDITION" "the directory of $1 cannot be looked at"
  case $FILE_MODE in
    ????????[tT]*) ;;
    *) writable_by_others && die "$EX_PRECONDITION" "the directory of $1 may be written by others (mode $FILE_MODE), who could replace it" ;;
  esac
  pidfile_number "$1" || die "$EX_PRECONDITION" "the pid file $1 does not hold one plain number"
  KILL_PID=$PIDFILE_NUMBER
  [ "$KILL_PID" -gt 1 ] || die "$EX_PRECONDITION" "the pid file $1 holds $KILL_PID, which is not a service: refused"
}

# identify PID: sets KILL_START, KILL_NAME and, through proc_identity, the rest.
identify() {
  proc_stat "$1" || die "$EX_PRECONDITION" "no process $1 runs, though the pid file names it: the service is down already"
  KILL_START=$PROC_START
  proc_identity "$1" || die "$EX_PRECONDITION" "process $1 cannot be looked at"
  KILL_NAME=${PROC_EXE:-$PROC_COMM}
}

check_target() {
  for target_name in $PROTECTED_PROGRAMS; do
    case ${PROC_EXE##*/}:$PROC_COMM in
      "$target_name":* | *:"$target_name" | "$target_name"-session:*)
        die "$EX_PRECONDITION" "pid $KILL_PID is $KILL_NAME, which is never signalled from here" ;;
    esac
  done
  target_ancestor=$$
  target_steps=0
  while [ "$target_ancestor" -gt 1 ] && [ "$target_steps" -lt 64 ]; do
    [ "$target_ancestor" != "$KILL_PID" ] ||
      die "$EX_PRECONDITION" "pid $KILL_PID ($KILL_NAME) is one of the processes that run this call: refused"
    proc_stat "$target_ancestor" || break
    target_ancestor=$PROC_PPID
    target_steps=$((target_steps + 1))
  done
  if [ -z "$PROC_EXE" ] && [ "$MY_UID" = 0 ]; then
    die "$EX_PRECONDITION" "pid $KILL_PID ($KILL_NAME) has no program: it is a thread of the kernel"
  fi
  # Whoever owns the file decides what it says, so it may only point at that owner's own processes.
  if [ "$PIDFILE_UID" != 0 ] && [ "$PIDFILE_UID" != "$PROC_UID" ]; then
    die "$EX_PRECONDITION" "the pid file $1 belongs to uid $PIDFILE_UID, but pid $KILL_PID ($KILL_NAME) runs as uid $PROC_UID"
  fi
  if [ -n "$KILL_EXE" ]; then
    target_ok=0
    for target_exe in $KILL_EXE; do
      [ "$PROC_EXE" = "$(readlink -f -- "$target_exe" 2>/dev/null)" ] && target_ok=1
    done
    [ "$target_ok" = 1 ] || die "$EX_PRECONDITION" \
      "the pid file $1 names pid $KILL_PID, which is $KILL_NAME and not $KILL_EXE (CHAOS_KILL_EXE): a stale pid file? Nothing was signalled"
  fi
  check_age "$1"
}

# check_age FILE: a process that started after its pid file was written is another one that got the same number. Both
# times come from the wall clock, so two seconds are allowed between them.
check_age() {
  age_written=$(stat -c %Y -- "$1" 2>/dev/null || date -r "$1" +%s 2>/dev/null)
  age_boot=
  while read -r age_key age_value _; do
    [ "$age_key" = btime ] && age_boot=$age_value
  done </proc/stat
  { is_uint "$age_written" 0 9999999999 && is_uint "$age_boot" 0 9999999999; } ||
    die "$EX_PRECONDITION" "the age of $1 cannot be compared with that of pid $KILL_PID. Nothing was signalled"
  # The kernel counts in hundredths here on every architecture that Linux servers use.
  age_started=$((age_boot + KILL_START / 100))
  [ "$age_started" -le $((age_written + 2)) ] || die "$EX_PRECONDITION" \
    "the pid file $1 is older than the process: pid $KILL_PID is now $KILL_NAME, started $((age_started - age_written)) s after the file was written for another. Nothing was signalled"
}

# kill_outcome FILE: sets KILL_NOTE: did it end, and did something start it again.
kill_outcome() {
  now
  outcome_from=$NOW
  while same_process "$KILL_PID" "$KILL_START"; do
    now
    if [ $((NOW - outcome_from)) -ge 300 ]; then
      KILL_NOTE='; still running after 3 s'
      return 0
    fi
    pause
  done
  now
  KILL_NOTE="; it ended after $(tenths $((NOW - outcome_from))) s"
  # A supervisor's default is to wait a tenth of a second before it starts a service again.
  outcome_gone=$NOW
  while [ $((NOW - outcome_gone)) -lt 100 ]; do
    if pidfile_number "$1" && [ "$PIDFILE_NUMBER" != "$KILL_PID" ] && proc_stat "$PIDFILE_NUMBER"; then
      KILL_NOTE="$KILL_NOTE and was started again as pid $PIDFILE_NUMBER $(tenths $((NOW - outcome_gone))) s later"
      return 0
    fi
    pause
    now
  done
}

# tenths HUNDREDTHS: as seconds with one decimal.
tenths() {
  echo "$(($1 / 100)).$(($1 % 100 / 10))"
}
