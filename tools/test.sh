#!/usr/bin/env bash
# ./hive test: every test; the last line sums all suites as "N passed, N failed".
set -euo pipefail
# shellcheck source=tools/hive_lib.sh
source "$HIVE_ROOT/tools/hive_lib.sh"

usage() {
  cat <<'TEXT'
Usage: ./hive test [OPTIONS] [SUITE...]

Builds and runs the tests. Suites: unit (C++ and shell, through ctest), e2e (the real programs, through Node's test
runner). Default: both. The last line says how many tests passed and failed.

  --filter REGEX   only unit tests whose name matches
  --asan, --tsan   run the unit tests with sanitizers instead
  --full           also with both sanitizers, the fuzz targets for a short time, the slow end-to-end checks, and
                   container units on an emulated machine

  HIVE_BIN=FOLDER      end-to-end tests of the programs of another build
  HIVE_REQUIRE_ALL=1   a test that cannot run here fails instead of being skipped

Examples:
  ./hive test
  ./hive test unit --filter audit
  ./hive test --asan
TEXT
}

full=false suites=() presets=() filter=''
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --filter) need_value "$1" $# && filter=$2 && shift ;;
    --filter=*) filter=${1#*=} ;;
    --full) full=true ;;
    --asan | --tsan) presets+=("${1#--}") ;;
    unit | e2e) suites+=("$1") ;;
    *) usage_error "test: unknown argument '$1'; see ./hive test --help" ;;
  esac
  shift
done
if [ ${#suites[@]} -eq 0 ]; then
  suites=(unit)
  [ ${#presets[@]} -gt 0 ] || [ -n "$filter" ] || suites+=(e2e)
fi
[ ${#presets[@]} -gt 0 ] || presets=(release)
! $full || presets=(release asan tsan)

if $full; then prepare run demo test lint; else prepare run demo test; fi

passed=0 failed=0 skipped=0 broken=()

# count_junit FILE: adds the numbers of ctest's report. Attributes of <testsuite>, as CMake documents --output-junit.
count_junit() {
  local head tests bad disabled absent
  [ -s "$1" ] || return 1
  head=$(grep -m 1 -A 12 '<testsuite ' "$1" | tr '\n\t' '  ')
  attribute() { sed -n "s/.*[[:space:]]$1=\"\([0-9]*\)\".*/\1/p" <<<"$head"; }
  tests=$(attribute tests) bad=$(attribute failures) disabled=$(attribute disabled) absent=$(attribute skipped)
  passed=$((passed + tests - bad - disabled - absent))
  failed=$((failed + bad))
  skipped=$((skipped + disabled + absent))
  [ "$tests" -gt 0 ]
}

# run_unit PRESET
run_unit() {
  local preset=$1 report=$HIVE_ROOT/build/$1/ctest.xml options=()
  rm -f -- "$report"
  run_tool build --preset "$preset" || {
    broken+=("build of $preset")
    return 0
  }
  [ -z "$filter" ] || options+=(--tests-regex "$filter")
  say "unit tests, $preset"
  local before=$failed status=0
  ctest --test-dir "$HIVE_ROOT/build/$preset" --parallel "$(nproc)" --output-on-failure --no-tests=error \
    --output-junit "$report" --progress "${options[@]}" || status=$?
  count_junit "$report" || broken+=("unit tests of $preset: no test ran")
  # What ctest complains of beyond failed tests, for example a test program that is missing.
  [ "$status" -eq 0 ] || [ "$failed" -gt "$before" ] || broken+=("ctest of $preset")
}

run_e2e() {
  local node report=$HIVE_ROOT/build/e2e.tap key
  node=$(hive_node) || die "no Node.js 22 here; run ./hive setup test"
  [ -n "${HIVE_BIN-}" ] || run_tool build --quiet || {
    broken+=("build of release")
    return 0
  }
  mkdir -p "$HIVE_ROOT/build"
  say "end-to-end tests"
  rm -f -- "$report"
  HIVE_READY=1 HIVE_FULL=$($full && echo 1 || echo 0) PATH=$hive_bin:$PATH "$node" --test --test-concurrency=1 \
    --test-reporter=spec --test-reporter-destination=stdout \
    --test-reporter=tap --test-reporter-destination="$report" \
    "$HIVE_ROOT"/tests/e2e/*.test.mjs || true
  number() { sed -n "s/^# $1 \([0-9]*\)$/\1/p" "$report" | tail -n 1; }
  for key in pass fail cancelled skipped; do
    [ -n "$(number $key)" ] || {
      broken+=("end-to-end tests: the runner ended early")
      return 0
    }
  done
  passed=$((passed + $(number pass)))
  failed=$((failed + $(number fail) + $(number cancelled)))
  skipped=$((skipped + $(number skipped)))
  [ "$(number pass)" -gt 0 ] || broken+=("end-to-end tests: no test passed")
}

start=$EPOCHSECONDS
for suite in "${suites[@]}"; do
  case $suite in
    unit) for preset in "${presets[@]}"; do run_unit "$preset"; done ;;
    e2e) run_e2e ;;
  esac
done
if $full; then
  say "fuzz targets"
  "$HIVE_ROOT/tools/fuzz_smoke" || broken+=(fuzzing)
  # What an outer container cannot hold: limits of memory and tasks, and Debian's own kernel.
  say "container units on an emulated machine; ten minutes or more"
  status=0
  HIVE_BIN=$hive_bin "$HIVE_ROOT/tests/rig/rig_test.sh" qemu || status=$?
  case $status in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) broken+=("container units on an emulated machine") ;;
  esac
fi

for what in "${broken[@]}"; do
  say "failed: $what"
  failed=$((failed + 1))
done
say "tests took $(seconds_since "$start") s"
if [ "$skipped" -gt 0 ]; then
  echo "$passed passed, $failed failed, $skipped skipped"
else
  echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
