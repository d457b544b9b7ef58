#!/bin/sh
# run_all.sh SUITE: runs a suite under every shell, side by side, for the suites mostly wait.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
outputs=$(mktemp -d "${TMPDIR:-/tmp}/harness-run.XXXXXX")
trap 'rm -rf "$outputs"' EXIT

shells='dash bash ash'
for shell in $shells; do
  {
    status=0
    sh "$here/run.sh" "$shell" "$1" >"$outputs/$shell" 2>&1 || status=$?
    echo "$status" >"$outputs/$shell.status"
  } &
done
wait
failed=0 ran=0
for shell in $shells; do
  status=$(cat "$outputs/$shell.status")
  echo "== $shell"
  cat "$outputs/$shell"
  case $status in
    0) ran=1 ;;
    77) ;;
    *) failed=1 ;;
  esac
done
[ "$failed" = 0 ] || exit 1
[ "$ran" = 1 ] || exit 77
