#!/usr/bin/env bash
# ./hive demo from outside: it holds, it leaves nothing, and that is so too when it is interrupted.
# HIVE_BIN names the programs.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export HIVE_READY=1 NO_COLOR=1

skip() {
  if [ "${HIVE_REQUIRE_ALL:-}" = 1 ]; then
    echo "FAILED: $1, and HIVE_REQUIRE_ALL=1 allows no skipping"
    exit 1
  fi
  echo "SKIPPED: $1"
  exit 77
}
for tool in jq curl ssh-keygen; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done
PATH=$PATH:/usr/sbin:/sbin command -v nginx >/dev/null || skip 'nginx is not installed (apt-get install nginx-light)'
for program in myrmex myrmex-agent myrmex-gateway; do
  [ -x "$HIVE_BIN/$program" ] || skip "$HIVE_BIN/$program is not built"
done

work=$(mktemp -d /tmp/demo-test.XXXXXX)
trap 'rm -rf "$work"' EXIT
failed=0
problem() {
  failed=1
  echo "        $*"
}
finish() { if [ "$failed" = 0 ]; then echo "ok      $1"; else echo "FAILED  $1"; sed 's/^/        | /' "$work/output"; fi; }

# nothing_left DIR: no process has the folder in its command line or environment, and the folder is gone.
nothing_left() {
  local path tries left
  for ((tries = 0; tries < 30; tries++)); do
    left=''
    for path in /proc/[0-9]*; do
      if { tr '\0' '\n' <"$path/cmdline" && tr '\0' '\n' <"$path/environ"; } 2>/dev/null | grep -qF -e "$1/"; then
        left="$left ${path#/proc/}"
      fi
    done
    [ -n "$left" ] || break
    sleep 0.1
  done
  [ -z "$left" ] || problem "processes are left:$left"
  [ ! -e "$1" ] || problem "$1 is left"
}

qdiscs() { PATH=$PATH:/usr/sbin:/sbin tc qdisc show 2>/dev/null; }
rules=$(qdiscs)

"$root/hive" demo --dir "$work/demo" >"$work/output" 2>&1 || problem "exit status $?"
grep -q 'all 19 steps held' "$work/output" || problem 'it does not say that all steps held'
grep -q 'no process, file or rule is left' "$work/output" || problem 'it does not say that nothing is left'
! grep -q $'\e' "$work/output" || problem 'colours go where no terminal is'
nothing_left "$work/demo"
finish 'the demo holds from beginning to end and leaves nothing'

# Each job in its own process group, with signals as a terminal would send them.
set -m
# interrupt SIGNAL TARGET EXIT_STATUS STEP: at STEP, to the whole group (as Ctrl-C does) or to the script alone.
interrupt() {
  local job status tries
  "$root/hive" demo --dir "$work/demo" >"$work/output" 2>&1 &
  job=$!
  for ((tries = 0; tries < 600; tries++)); do
    ! grep -qF -- "$4" "$work/output" || break
    kill -s 0 "$job" 2>/dev/null || break
    sleep 0.05
  done
  grep -qF -- "$4" "$work/output" || problem "it never came to '$4'"
  if [ "$2" = group ]; then kill -s "$1" -- "-$job"; else kill -s "$1" "$job"; fi
  # Once more, as people do: the tidying up goes on.
  if [ "$2" = group ]; then
    sleep 0.2
    kill -s "$1" -- "-$job" 2>/dev/null
  fi
  wait "$job"
  status=$?
  [ "$status" = "$3" ] || problem "exit status $status, not $3"
  nothing_left "$work/demo"
}

failed_before=0
statement() {
  [ "$failed" = 0 ] || failed_before=1
  failed=0
}
statement
interrupt INT group 130 'Bring it back'
finish 'Ctrl-C, twice, leaves nothing'
statement
interrupt TERM script 143 'The fault is seen, with the time it has left'
finish 'SIGTERM leaves nothing, also while a fault is active'
statement
interrupt INT group 130 'A hive and an nginx'
finish 'Ctrl-C while the hive comes up leaves nothing'
statement
[ "$(qdiscs)" = "$rules" ] || problem 'the network rules are not what they were'
finish 'no network rule was touched'
statement
[ "$failed_before" = 0 ]
