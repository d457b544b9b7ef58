#!/usr/bin/env bash
# The scenario of container units on a booted host, with the programs of HIVE_BIN. Once a machine, the host's image is
# built, which takes a minute; after that a run takes some ten seconds.
#
# Usage: tests/rig/rig_test.sh [nspawn|qemu] [SCENARIO]
set -u
here=$(cd "$(dirname -- "$0")" && pwd)
kind=${1:-nspawn} scenario=${2:-$here/scenario}

skip() {
  if [ "${HIVE_REQUIRE_ALL-}" = 1 ]; then
    echo "FAILED: $1, and HIVE_REQUIRE_ALL=1 allows no skipping"
    exit 1
  fi
  echo "SKIPPED: $1"
  exit 77
}
for program in hive-priv hive-container hive-container-start myrmex myrmex-agent myrmex-gateway hive-journal-forwarder; do
  [ -x "${HIVE_BIN:?names the folder of the programs}/$program" ] || skip "$HIVE_BIN/$program is not built"
done

problem=$(mktemp)
trap 'rm -f -- "$problem"' EXIT
image=$("$here/build_image" 2> >(tee "$problem" >&2)) || {
  status=$?
  [ $status = 77 ] || exit $status
  skip "the image cannot be built here ($(tail -n 1 "$problem"))"
}
# A collector of telemetry for the agents' scenario; it says so when it has none.
packages=$(cd "$here/../node_modules" 2>/dev/null && pwd)
[ -z "$packages" ] || export RIG_BIND=$packages:/opt/node_modules
RIG_PREPARE=$here/install_product "$here/in_$kind" "$image" "$scenario" 2> >(tee "$problem" >&2)
status=$?
[ $status != 77 ] || skip "the rig cannot run here ($(tail -n 1 "$problem"))"
exit $status
