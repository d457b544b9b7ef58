# shellcheck shell=sh disable=SC2034,SC2154 # shared by the suites
# A little language for the suites: each 'it' is one statement about behaviour, and the checks that follow belong to it.
set -u

PASSED=0
FAILED=0
STATEMENT=
STATEMENT_OK=1

it() {
  end_statement
  STATEMENT=$1
  STATEMENT_OK=1
}
end_statement() {
  [ -n "$STATEMENT" ] || return 0
  if [ "$STATEMENT_OK" = 1 ]; then
    PASSED=$((PASSED + 1))
    echo "ok      $STATEMENT"
  else
    FAILED=$((FAILED + 1))
    echo "FAILED  $STATEMENT"
  fi
  STATEMENT=
}
problem() {
  STATEMENT_OK=0
  printf '        %s\n' "$*"
}

# run COMMAND...: sets RC and OUT (both outputs).
run() {
  OUT=$("$@" 2>&1 </dev/null) && RC=0 || RC=$?
}
chaos() { run sh "$HARNESS/chaos.sh" "$@"; }

exits() {
  [ "$RC" = "$1" ] || problem "exit status is $RC, not $1; output: $OUT"
}
# says TEXT...: each text stands in the output.
says() {
  for says_text; do
    case $OUT in
      *"$says_text"*) ;;
      *) problem "'$says_text' is not in the output: $OUT" ;;
    esac
  done
}
says_not() {
  case $OUT in
    *"$1"*) problem "'$1' is in the output: $OUT" ;;
  esac
}
# one_line: an answer to a person or a model is one line.
one_line() {
  case $OUT in
    *"
"*) problem "more than one line: $OUT" ;;
  esac
}
# holds COMMAND... / fails COMMAND...
holds() { "$@" >/dev/null 2>&1 || problem "does not hold: $*"; }
fails() { ! "$@" >/dev/null 2>&1 || problem "holds, but must not: $*"; }
equal() { [ "$1" = "$2" ] || problem "expected '$2', got '$1'"; }

# eventually COMMAND...: waits until it holds. The ceiling ends a suite that hangs and says nothing about how fast anything
# is: the machine may be slow and busy. What must end by something else than its own time is therefore started for longer.
eventually() {
  eventually_left=1200
  until "$@" >/dev/null 2>&1; do
    eventually_left=$((eventually_left - 1))
    if [ "$eventually_left" -le 0 ]; then
      problem "never came true: $*"
      return 1
    fi
    sleep 0.05
  done
}

# alive PID: runs and is not a zombie.
alive() {
  case $({ cat "/proc/$1/stat"; } 2>/dev/null) in
    '' | *') Z '*) return 1 ;;
  esac
  return 0
}
gone() { ! alive "$1"; }

# record ID: where the record of a fault is.
record() { echo "$CHAOS_STATE_DIR/${1#*-}"; }
# recorded ID ROLE: the process number in it.
recorded() {
  cut -d ' ' -f 1 "$(record "$1")/$2"
}
# id_of: the id of the fault that the last output announces.
id_of() { echo "${OUT%%:*}"; }
state_is() { [ "$(cat "$(record "$1")/state")" = "$2" ]; }

finish() {
  end_statement
  echo "$PASSED passed, $FAILED failed"
  [ "$FAILED" = 0 ]
}
