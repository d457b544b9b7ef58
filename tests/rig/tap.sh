# shellcheck shell=bash
# A scenario's statements, one line each in the manner of TAP, with the time that each took. Sourced.
# RIG_EXEC runs a shell command on the rig host.

tap_count=0 tap_failed=0 tap_skipped=0
tap_started=${EPOCHREALTIME/./}

# H COMMAND: on the rig host, as root.
H() { "$RIG_EXEC" "$1"; }

# remark TEXT: a line with the time since the start.
remark() { printf '# %5d ms  %s\n' $(((${EPOCHREALTIME/./} - tap_started) / 1000)) "$*"; }

# part TEXT: the next part. Parts build on each other: when one has failed, the rest would only wait and fail as well.
part() {
  if [ $tap_failed != 0 ]; then
    remark "not run, because what it builds on failed: $*"
    H 'journalctl -q --no-pager -n 60 --output=short-precise -p notice; journalctl -q --no-pager -n 30 -u hive-priv -u "container@*"' 2>&1 | sed 's/^/#   | /'
    finish
    exit 1
  fi
  remark "$*"
}

tap_result() { # OK|FAILED TEXT SINCE OUTPUT
  tap_count=$((tap_count + 1))
  if [ "$1" = ok ]; then
    printf 'ok %d - %s (%d ms)\n' "$tap_count" "$2" $(((${EPOCHREALTIME/./} - $3) / 1000))
  else
    tap_failed=$((tap_failed + 1))
    printf 'not ok %d - %s (%d ms)\n' "$tap_count" "$2" $(((${EPOCHREALTIME/./} - $3) / 1000))
    printf '%s\n' "$4" | tail -n 40 | sed 's/^/#   | /'
  fi
}

# yes TEXT COMMAND: holds when the command succeeds on the rig host.
yes() {
  local since=${EPOCHREALTIME/./} output
  if output=$(H "$2" 2>&1); then tap_result ok "$1" "$since"; else tap_result failed "$1" "$since" "\$ $2"$'\n'"$output"; fi
}

# no TEXT COMMAND: holds when it fails by itself; a time-out is no answer.
no() {
  local since=${EPOCHREALTIME/./} output status=0
  output=$(H "$2" 2>&1) || status=$?
  if [ $status != 0 ] && [ $status != 124 ]; then tap_result ok "$1" "$since"; else tap_result failed "$1" "$since" "\$ $2 (exit code $status)"$'\n'"$output"; fi
}

# same TEXT EXPECTED COMMAND: holds when the command prints exactly that.
same() {
  local since=${EPOCHREALTIME/./} output
  output=$(H "$3" 2>&1)
  if [ "$output" = "$2" ]; then tap_result ok "$1" "$since"; else tap_result failed "$1" "$since" "\$ $3"$'\n'"expected: $2"$'\n'"got:      $output"; fi
}

# eventually TEXT COMMAND: holds when the command succeeds within two minutes; the machine may be slow.
eventually() {
  local since=${EPOCHREALTIME/./} output end=$((EPOCHSECONDS + ${RIG_PATIENCE:-120}))
  until output=$(H "$2" 2>&1); do
    if [ $EPOCHSECONDS -ge $end ]; then
      tap_result failed "$1" "$since" "\$ $2"$'\n'"$output"
      return 0
    fi
    sleep 0.1
  done
  tap_result ok "$1" "$since"
}

# without TEXT REASON: a statement that this rig cannot hold; said aloud, and a failure where everything is required.
without() {
  if [ "${HIVE_REQUIRE_ALL-}" = 1 ]; then
    tap_result failed "$1" "${EPOCHREALTIME/./}" "$2, and HIVE_REQUIRE_ALL=1 allows no skipping"
  else
    tap_count=$((tap_count + 1)) tap_skipped=$((tap_skipped + 1))
    printf 'ok %d - %s # SKIP %s\n' "$tap_count" "$1" "$2"
  fi
}

# finish: the plan and the sum; the exit code of the scenario.
finish() {
  printf '1..%d\n' "$tap_count"
  remark "$((tap_count - tap_failed - tap_skipped)) hold, $tap_failed fail, $tap_skipped skipped"
  [ $tap_failed = 0 ]
}
