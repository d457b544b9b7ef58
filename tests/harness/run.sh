#!/bin/sh
# run.sh SHELL SUITE: runs one suite of tests, and the harness scripts in it, with SHELL (dash, bash or ash) and with
# nothing but busybox's programs on PATH: what works here works on the smallest image.
set -eu

shell=$1
suite=$2
here=$(cd "$(dirname "$0")" && pwd)

skip() {
  if [ "${HIVE_REQUIRE_ALL:-}" = 1 ]; then
    echo "FAILED: $1, and HIVE_REQUIRE_ALL=1 allows no skipping"
    exit 1
  fi
  echo "SKIPPED: $1"
  exit 77
}

busybox=$(command -v busybox) || skip 'busybox is not installed (apt-get install busybox)'
case $shell in
  ash) shell_path=$busybox ;;
  # Called by the name sh, bash behaves as POSIX says.
  dash | bash) shell_path=$(command -v "$shell") || skip "$shell is not installed" ;;
  *)
    echo "unknown shell '$shell'" >&2
    exit 2
    ;;
esac

WORK=$(mktemp -d "${TMPDIR:-/tmp}/harness-test.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
mkdir "$WORK/bin"
for applet in $("$busybox" --list); do
  ln -s "$busybox" "$WORK/bin/$applet"
done
rm -f "$WORK/bin/sh" "$WORK/bin/busybox"
ln -s "$shell_path" "$WORK/bin/sh"
REAL_TC=$(command -v tc || true)
REAL_IP=$(command -v ip || true)
HARNESS=$(cd "$here/../../harness" && pwd)
export WORK HARNESS REAL_TC REAL_IP

set -- sh "$here/$suite"
if [ "$suite" = chaos_net_test.sh ]; then
  # A network of its own, so that real interfaces are neither needed nor touched.
  [ "$(id -u)" = 0 ] || skip 'network faults need root'
  { [ -n "$REAL_TC" ] && [ -n "$REAL_IP" ]; } || skip 'tc and ip are not installed (apt-get install iproute2)'
  unshare -n -m true 2>/dev/null || skip 'this machine allows no private network (unshare -n)'
  set -- "$(command -v unshare)" -n -m "$@"
fi
status=0
env -i PATH="$WORK/bin" HOME="$WORK" WORK="$WORK" HARNESS="$HARNESS" TESTS="$here" REAL_TC="$REAL_TC" REAL_IP="$REAL_IP" SLEEP_PROGRAM="$(command -v sleep)" \
  HIVE_REQUIRE_ALL="${HIVE_REQUIRE_ALL:-}" CHAOS_STATE_DIR="$WORK/state" "$@" || status=$?

# Whatever a suite says, nothing that it started may be left: every process of the harness has the folder's name in its
# environment. What has just been told to end gets a moment.
left_processes() {
  for process in /proc/[0-9]*; do
    if { tr '\0' '\n' <"$process/environ" | grep -qx "WORK=$WORK"; } 2>/dev/null; then
      echo "${process#/proc/}"
    fi
  done
}
tries=0
while left=$(left_processes) && [ -n "$left" ] && [ "$tries" -lt 30 ]; do
  tries=$((tries + 1))
  sleep 0.1
done
for process in $left; do
  status=1
  echo "FAILED: process $process is left: $({ tr '\0' ' ' <"/proc/$process/cmdline"; } 2>/dev/null)"
  kill -KILL "$process" 2>/dev/null || true
done
exit "$status"
